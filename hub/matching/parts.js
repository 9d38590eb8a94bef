/*
 * Parses the pattern of one component into parts: https://urlpattern.spec.whatwg.org/#parse-a-pattern-string.
 */
import { PatternError, tokenize } from './tokens.js';

/**
 * @typedef {'fixed' | 'segment' | 'full'} PartType  text; everything up to the next delimiter, but something; everything
 * @typedef {'' | '?' | '*' | '+'} Modifier
 * @typedef {object} Part
 * @property {PartType} type
 * @property {string} prefix of a fixed part: its text
 * @property {string} suffix
 * @property {Modifier} modifier
 * @typedef {object} Syntax of a component
 * @property {string} delimiter  between segments, '' if there are none
 * @property {string} prefix     what belongs to a group that it precedes
 * @property {(text: string) => string} canonical  form of fixed text
 */

class Parser {
  /** @type {Part[]} */
  parts = [];
  #index = 0;
  #pending = '';
  /** @type {string[]} */
  #names = [];

  /** @param {string} input @param {Syntax} syntax */
  constructor(input, syntax) {
    this.tokens = tokenize(input, false);
    this.syntax = syntax;
  }

  run() {
    while (!this.#take('end')) {
      const prefix = this.#take('char');
      if (this.#group(prefix)) continue;
      const text = prefix || this.#take('escaped');
      if (text) this.#pending += text;
      else if (this.#take('open')) this.#braces();
      else throw new PatternError(`unexpected ${this.tokens[this.#index].value || 'end'}`);
    }
    this.#flush();
    return this.parts;
  }

  /** A group without braces, such as `/:id?` or `*`. @param {string} prefix the character before it @returns {boolean} if there is one */
  #group(prefix) {
    const type = this.#wildcard();
    if (!type) return false;
    if (prefix !== this.syntax.prefix) {
      this.#pending += prefix;
      prefix = '';
    }
    this.#add(type, prefix, '', this.#modifier());
    return true;
  }

  #braces() {
    const prefix = this.#text();
    const type = this.#wildcard();
    const suffix = this.#text();
    if (!this.#take('close')) throw new PatternError('a brace is not closed');
    const modifier = this.#modifier();
    if (type) this.#add(type, prefix, suffix, modifier);
    else if (!modifier) this.#pending += prefix;
    else if (prefix) this.#add('fixed', prefix, '', modifier);
    else this.#flush();
  }

  /** `:name`, `(…)`, `:name(…)` or `*`. @returns {PartType | ''} */
  #wildcard() {
    const name = this.#take('name');
    if (this.#names.includes(name)) throw new PatternError(`the name ${name} is used twice`);
    if (name) this.#names.push(name);
    const regexp = this.#take('regexp');
    if (regexp) return this.#wildcardOf(regexp);
    if (name) return 'segment';
    return this.#take('asterisk') && 'full';
  }

  /** Only a regular expression that says the same as a wildcard is supported. @param {string} regexp @returns {PartType} */
  #wildcardOf(regexp) {
    const { delimiter } = this.syntax;
    if (regexp === '.*') return 'full';
    if (regexp === `[^${delimiter && `\\${delimiter}`}]+?`) return 'segment';
    throw new PatternError('regular expressions are not supported: use :name or *');
  }

  /** @returns {Modifier} */
  #modifier() {
    return /** @type {Modifier} */ (this.#take('modifier') || this.#take('asterisk'));
  }

  #text() {
    let text = '';
    for (;;) {
      const more = this.#take('char') || this.#take('escaped');
      if (!more) return text;
      text += more;
    }
  }

  /** @param {PartType} type @param {string} prefix @param {string} suffix @param {Modifier} modifier */
  #add(type, prefix, suffix, modifier) {
    this.#flush();
    this.parts.push({ type, prefix: this.#canonical(prefix), suffix: this.#canonical(suffix), modifier });
  }

  #flush() {
    if (this.#pending)
      this.parts.push({ type: 'fixed', prefix: this.#canonical(this.#pending), suffix: '', modifier: '' });
    this.#pending = '';
  }

  /** @param {string} text */
  #canonical(text) {
    return text && this.syntax.canonical(text);
  }

  /** @param {import('./tokens.js').TokenType} type @returns {string} the value of the next token if it has this type, or '' */
  #take(type) {
    const token = this.tokens[this.#index];
    if (token.type !== type) return '';
    this.#index++;
    return token.value || 'end';
  }
}

/**
 * @param {string} input
 * @param {Syntax} syntax
 * @returns {Part[]}
 */
export function parseParts(input, syntax) {
  return new Parser(input, syntax).run();
}
