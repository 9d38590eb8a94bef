/*
 * URI templates (RFC 6570), as hubs of Mercure 0.x match them: yosida95/uritemplate turns a template into a regular expression,
 * which says less than the RFC. A value is a run of the characters that its operator leaves as they are, of any length:
 *
 *   {a} {a,b}                  letters, digits, - . _ ~ , and percent-encoded characters; those of {a*} also =
 *   {+a} {#a}                  all reserved characters too; # precedes the latter
 *   {.a} {/a} {;a} {?a} {&a}   nothing, or the sign and such a run; with another sign before each further variable
 */
import { Charset, FORK, JOIN } from './operations.js';
import { PatternError } from './tokens.js';

/** @typedef {import('./operations.js').Operation} Operation */

/** A template with more operations than that is refused: they are what a match costs. */
const MOST_OPERATIONS = 32;
/** What may be outside of braces. */
const LITERALS =
  /^(?:[!#-$&-;=?-[\]_a-z~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\uffef\u{10000}-\u{10fffd}]|%[\da-f]{2})*$/iu;
const VARIABLE = /^(?:\w|%[\da-f]{2})+(?:\.(?:\w|%[\da-f]{2})+)*(?:\*|:[1-9]\d{0,3})?$/i;

const UNRESERVED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,';
const RESERVED = "!#$&'()*+/:;=?@[]";

/** By operator: what comes first, what is between variables, whether they have names in the text, which characters they have. */
const OPERATORS = {
  '': { first: '', separator: ',', isNamed: false, chars: UNRESERVED },
  '+': { first: '', separator: ',', isNamed: false, chars: UNRESERVED + RESERVED },
  '#': { first: '#', separator: ',', isNamed: false, chars: UNRESERVED + RESERVED },
  '.': { first: '.', separator: '.', isNamed: false, chars: UNRESERVED },
  '/': { first: '/', separator: '/', isNamed: false, chars: UNRESERVED },
  ';': { first: ';', separator: ';', isNamed: true, chars: UNRESERVED },
  '?': { first: '?', separator: '&', isNamed: true, chars: UNRESERVED },
  '&': { first: '&', separator: '&', isNamed: true, chars: UNRESERVED },
};

/** There are only a few sets. @type {Map<string, Charset>} */
const charsets = new Map();

/**
 * @param {string} value
 * @returns {Operation[] | null} null if it is not a template: then it only matches itself
 * @throws {PatternError} if it is one that would cost too much
 */
export function compileTemplate(value) {
  if (!value.includes('{')) return null;
  const pieces = value.split(/(\{[^{}]*\})/);
  /** @type {Operation[]} */
  const program = [];
  for (const [i, piece] of pieces.entries()) {
    const operations = i % 2 === 1 ? operationsOf(piece.slice(1, -1)) : LITERALS.test(piece) ? [piece] : null;
    if (!operations) return null;
    program.push(...operations.filter((operation) => operation !== ''));
  }
  if (program.length > MOST_OPERATIONS) throw new PatternError('too many variables');
  return program;
}

/** @param {string} expression what is in the braces @returns {Operation[] | null} null if it is not valid */
function operationsOf(expression) {
  const sign = /^[+#./;?&]?/.exec(expression)?.[0] ?? '';
  const names = expression.slice(sign.length).split(',');
  if (!names.every((name) => VARIABLE.test(name))) return null;
  const { first, separator, isNamed, chars } = OPERATORS[/** @type {keyof typeof OPERATORS} */ (sign)];
  const isList = names.some((name) => name.endsWith('*'));
  const head = charset(chars, isNamed || names[0].endsWith('*'));
  const tail = charset(chars + (isList ? separator : ''), isNamed || isList);
  const times =
    isList || chars.includes(separator) ? Math.min(names.length - (isList ? 0 : 1), 1) : names.length - 1;
  const more = Array.from({ length: times }, () => [FORK, separator, tail, JOIN]).flat();
  return first ? [FORK, first, head, ...more, JOIN] : [head, ...more];
}

/** @param {string} chars @param {boolean} hasEquals */
function charset(chars, hasEquals) {
  const all = hasEquals ? `${chars}=` : chars;
  const found = charsets.get(all) ?? new Charset(all);
  charsets.set(all, found);
  return found;
}
