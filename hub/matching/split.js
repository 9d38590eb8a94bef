/*
 * Splits a URL pattern into its components: https://urlpattern.spec.whatwg.org/#constructor-string-parsing. It is a state machine
 * over tokens, whose states are the components and `init`, `authority` and `done`:
 *
 *   init ─ protocol ─┬─ authority ─┬─ username ─ password ─┐
 *     │              │             └───────────────────────┴─ hostname ─ port ─┐
 *     └──────────────┴─────────────────────────────────────────────────────────┴─ pathname ─ search ─ hash
 */
import { tokenize } from './tokens.js';

/**
 * @typedef {'protocol' | 'username' | 'password' | 'hostname' | 'port' | 'pathname' | 'search' | 'hash'} Component
 * @typedef {{ [name in Component]?: string }} Components  the pattern of each; those that it does not mention are missing
 * @typedef {Component | 'init' | 'authority' | 'done'} State
 */

/** @type {State[]} what precedes a state, so that the components before it are empty and not wildcards */
const ORDER = [
  'protocol',
  'authority',
  'username',
  'password',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
];

class Splitter {
  /** @type {Components} */
  components = {};
  /** @type {State} */
  #state = 'init';
  #index = 0;
  #start = 0;
  /** By how much the index grows after this step. */
  #increment = 1;
  #groupDepth = 0;
  #ipv6Depth = 0;
  #isSpecial = false;

  /** @param {string} input @param {(protocol: string) => boolean} matchesSpecial whether this pattern matches a special scheme */
  constructor(input, matchesSpecial) {
    this.input = input;
    this.tokens = tokenize(input, true);
    this.matchesSpecial = matchesSpecial;
  }

  /** @returns {Components} */
  run() {
    for (; this.#index < this.tokens.length && this.#state !== 'done'; this.#index += this.#increment) {
      this.#increment = 1;
      if (this.tokens[this.#index].type === 'end') this.#end();
      else if (!this.#isInGroup()) this.#step();
    }
    if (this.components.hostname !== undefined) this.components.port ??= '';
    return this.components;
  }

  #end() {
    if (this.#state === 'init') {
      this.#rewind();
      if (this.#is('#')) this.#change('hash', 1);
      else if (this.#isSearch()) this.#change('search', 1);
      else this.#change('pathname', 0);
    } else if (this.#state === 'authority') this.#rewind('hostname');
    else this.#change('done', 0);
  }

  /** Braces hide what is in them. */
  #isInGroup() {
    const { type } = this.tokens[this.#index];
    if (type === 'open') this.#groupDepth++;
    else if (this.#groupDepth > 0 && type === 'close') {
      this.#groupDepth--;
      return this.#groupDepth > 0;
    }
    return this.#groupDepth > 0;
  }

  #step() {
    switch (this.#state) {
      case 'init':
        if (this.#is(':')) this.#rewind('protocol');
        break;
      case 'protocol':
        if (this.#is(':')) this.#endProtocol();
        break;
      case 'authority':
        if (this.#is('@')) this.#rewind('username');
        else if (this.#is('/') || this.#isSearch() || this.#is('#')) this.#rewind('hostname');
        break;
      case 'username':
        if (this.#is(':')) this.#change('password', 1);
        else if (this.#is('@')) this.#change('hostname', 1);
        break;
      case 'password':
        if (this.#is('@')) this.#change('hostname', 1);
        break;
      case 'hostname':
        if (this.#is('[')) this.#ipv6Depth++;
        else if (this.#is(']')) this.#ipv6Depth--;
        else if (this.#is(':') && this.#ipv6Depth === 0) this.#change('port', 1);
        else this.#afterHost();
        break;
      case 'port':
        this.#afterHost();
        break;
      case 'pathname':
        if (this.#isSearch()) this.#change('search', 1);
        else if (this.#is('#')) this.#change('hash', 1);
        break;
      case 'search':
        if (this.#is('#')) this.#change('hash', 1);
    }
  }

  #endProtocol() {
    this.#isSpecial = this.matchesSpecial(this.#text());
    if (this.#is('/', 1) && this.#is('/', 2)) this.#change('authority', 3);
    else this.#change(this.#isSpecial ? 'authority' : 'pathname', 1);
  }

  #afterHost() {
    if (this.#is('/')) this.#change('pathname', 0);
    else if (this.#isSearch()) this.#change('search', 1);
    else if (this.#is('#')) this.#change('hash', 1);
  }

  /** @param {State} state @param {number} skip how many tokens are between them */
  #change(state, skip) {
    const from = this.#state;
    if (from !== 'init' && from !== 'authority')
      this.components[/** @type {Component} */ (from)] = this.#text();
    if (from !== 'init' && state !== 'done') this.#fill(ORDER.indexOf(from), ORDER.indexOf(state));
    this.#state = state;
    this.#index += skip;
    this.#start = this.#index;
    this.#increment = 0;
  }

  /** What lies between two components that are given is empty. @param {number} from @param {number} to positions in ORDER */
  #fill(from, to) {
    const isSkipped = (/** @type {State} */ state) =>
      from < ORDER.indexOf(state) && ORDER.indexOf(state) < to;
    if (isSkipped('hostname') && to >= ORDER.indexOf('port')) this.components.hostname ??= '';
    if (isSkipped('pathname')) this.components.pathname ??= this.#isSpecial ? '/' : '';
    if (isSkipped('search')) this.components.search ??= '';
  }

  /** @param {State} [state] */
  #rewind(state = this.#state) {
    this.#state = state;
    this.#index = this.#start;
    this.#increment = 0;
  }

  #text() {
    return this.input.slice(this.#token(this.#start).index, this.#token(this.#index).index);
  }

  /** @param {number} index */
  #token(index) {
    return this.tokens[Math.min(index, this.tokens.length - 1)];
  }

  /** Whether a token stands for this character itself. @param {string} char @param {number} [offset] */
  #is(char, offset = 0) {
    const { type, value } = this.#token(this.#index + offset);
    return value === char && (type === 'char' || type === 'escaped' || type === 'invalid');
  }

  /** Whether a search starts here. A question mark after a group is its modifier. */
  #isSearch() {
    if (this.#is('?')) return true;
    if (this.#token(this.#index).value !== '?') return false;
    const before = this.tokens[this.#index - 1]?.type;
    return before !== 'name' && before !== 'regexp' && before !== 'close' && before !== 'asterisk';
  }
}

/**
 * @param {string} input
 * @param {(protocol: string) => boolean} matchesSpecial whether this pattern of a protocol matches a special scheme
 * @returns {Components}
 */
export function split(input, matchesSpecial) {
  return new Splitter(input, matchesSpecial).run();
}
