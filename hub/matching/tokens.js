/*
 * Tokens of a URL pattern: https://urlpattern.spec.whatwg.org/#tokenizing. Characters that mean nothing anywhere in a pattern
 * are one token together, which the standard does not do.
 */

/**
 * @typedef {'open' | 'close' | 'regexp' | 'name' | 'char' | 'escaped' | 'modifier' | 'asterisk' | 'end' | 'invalid'} TokenType
 * @typedef {{ type: TokenType, index: number, value: string }} Token  index: where it starts in the input. Only an `end` has no value
 */

/** A pattern is not valid. The message is for whoever wrote it. */
export class PatternError extends Error {}

const NAME = /[$_\p{ID_Start}](?:[$\p{ID_Continue}]|\u200c|\u200d)*/uy;
/** What separates no components and no parts. */
const TEXT = /[^\\*+?{}():/@#[\]]+/y;
/** @type {Record<string, TokenType>} */
const SIGNS = { '*': 'asterisk', '+': 'modifier', '?': 'modifier', '{': 'open', '}': 'close' };

/**
 * @param {string} input
 * @param {boolean} isLenient what is not valid becomes a token too, as long as it is not known what it belongs to
 * @returns {Token[]} ends with a token of type `end`
 */
export function tokenize(input, isLenient) {
  /** @type {Token[]} */
  const tokens = [];
  let index = 0;
  while (index < input.length) {
    const token = next(input, index);
    if (token.type === 'invalid' && !isLenient) throw new PatternError(`unexpected character at ${index}`);
    tokens.push(token);
    index += lengthOf(token);
  }
  tokens.push({ type: 'end', index, value: '' });
  return tokens;
}

/** @param {Token} token @returns {number} what it takes in the input */
function lengthOf({ type, value }) {
  return value.length + (type === 'regexp' ? 2 : type === 'name' || type === 'escaped' ? 1 : 0);
}

/** @param {string} input @param {number} index @returns {Token} */
function next(input, index) {
  const char = input[index];
  if (SIGNS[char]) return { type: SIGNS[char], index, value: char };
  if (char === '\\') return orInvalid('escaped', input, index, escapedAt(input, index + 1));
  if (char === ':') return orInvalid('name', input, index, matchAt(NAME, input, index + 1));
  if (char === '(') return orInvalid('regexp', input, index, regexpAt(input, index + 1));
  return { type: 'char', index, value: matchAt(TEXT, input, index) || char };
}

/** @param {TokenType} type @param {string} input @param {number} index @param {string} value '' if there is none @returns {Token} */
function orInvalid(type, input, index, value) {
  return value ? { type, index, value } : { type: 'invalid', index, value: input[index] };
}

/** @param {string} input @param {number} index @returns {string} a code point */
function escapedAt(input, index) {
  const code = input.codePointAt(index);
  return code === undefined ? '' : String.fromCodePoint(code);
}

/** @param {RegExp} sticky @param {string} input @param {number} index @returns {string} */
function matchAt(sticky, input, index) {
  sticky.lastIndex = index;
  return sticky.exec(input)?.[0] ?? '';
}

/**
 * Only its end has to be found: patterns with regular expressions are refused.
 * @param {string} input @param {number} start after the parenthesis @returns {string} '' if it is not valid
 */
function regexpAt(input, start) {
  if (input[start] === '?') return '';
  let depth = 1;
  for (let i = start; i < input.length; i++) {
    if (input.charCodeAt(i) > 0x7f) return '';
    if (input[i] === '\\') {
      if (++i === input.length || input.charCodeAt(i) > 0x7f) return '';
    } else if (input[i] === ')' && --depth === 0) return input.slice(start, i);
    else if (input[i] === '(') {
      if (input[i + 1] !== '?') return '';
      depth++;
    }
  }
  return '';
}
