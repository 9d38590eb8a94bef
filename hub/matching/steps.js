/*
 * Patterns as steps and topics as words, for the tree in trie.js. A step only has to be true of every topic that the pattern matches:
 * it says less than the pattern.
 */
import { Charset, Run } from './operations.js';

/**
 * @typedef {import('./operations.js').Operation} Operation
 * @typedef {import('./component.js').Compiled} Compiled
 * @typedef {import('./patterns.js').UrlPattern} UrlPattern
 * @typedef {object} Step  what one word of a topic has to be
 * @property {string | null} word  or
 * @property {string} prefix  how it starts, and
 * @property {string} suffix  how it ends
 * @property {boolean} isRest  it may be several words: the suffix is that of the path, and further steps don't count
 * @typedef {object} Words  of a topic
 * @property {string} path
 * @property {(depth: number) => string | undefined} at
 */

/** Further ones are left to the matcher. */
const MOST_STEPS = 16;
/** The word after the last segment. It contains what no segment does. */
const END = '/';

/** @param {string} word @returns {Step} */
const given = (word) => ({ word, prefix: '', suffix: '', isRest: false });

/** @param {string} prefix @param {string} suffix @param {boolean} [isRest] @returns {Step} */
const partial = (prefix, suffix, isRest = false) => ({ word: null, prefix, suffix, isRest });

/** @param {UrlPattern} pattern @returns {Step[]} host, scheme, segments, end, search, hash */
export function stepsOfPattern(pattern) {
  const { hostname, protocol, pathname, search, hash } = pattern;
  const steps = [stepOf(hostname), stepOf(protocol), ...stepsOfPath(pathname)];
  if (search !== null || hash !== null) steps.push(stepOf(search), stepOf(hash));
  return steps.slice(0, MOST_STEPS);
}

/** @param {readonly Operation[]} program of a template @returns {Step[]} segments of the topic, end */
export function stepsOfTemplate(program) {
  return stepsOfPath(program).slice(0, MOST_STEPS);
}

/** @param {Compiled} compiled of a component that is one word */
function stepOf(compiled) {
  if (typeof compiled === 'string') return given(compiled);
  return compiled === null ? partial('', '') : partial(textAt(compiled, 0), textAt(compiled, -1));
}

/** @param {null | string | readonly Operation[]} path @returns {Step[]} */
function stepsOfPath(path) {
  const operations = path === null ? [null] : typeof path === 'string' ? [path] : path;
  /** @type {Step[]} */
  const steps = [];
  let step = given('');
  for (const operation of operations) {
    if (typeof operation === 'string') {
      const [first, ...others] = operation.split('/');
      step = extended(step, first);
      for (const other of others) {
        steps.push(step);
        step = given(other);
      }
    } else if (operation !== null && staysInWord(operation)) step = partial(step.word ?? step.prefix, '');
    else {
      const suffix = path === null ? '' : textAt(/** @type {Operation[]} */ (operations), -1);
      return [...steps, partial(step.word ?? step.prefix, suffix, true)];
    }
  }
  return [...steps, step, given(END)];
}

/** @param {Step} step @param {string} text that follows in the same word */
function extended(step, text) {
  return step.word === null ? partial(step.prefix, step.suffix + text) : given(step.word + text);
}

/** @param {Operation} operation */
function staysInWord(operation) {
  return operation instanceof Run
    ? operation.delimiter === '/'
    : operation instanceof Charset && !operation.takes('/');
}

/** @param {readonly Operation[]} program @param {0 | -1} index @returns {string} the text at its start or end, if it has one there */
function textAt(program, index) {
  const operation = program.at(index);
  return typeof operation === 'string' ? operation : '';
}

/** @implements {Words} */
export class UrlWords {
  /** @type {string[]} */
  #after = [];

  /** @param {URL} url */
  constructor(url) {
    this.url = url;
    this.path = url.pathname;
  }

  /** @param {number} depth */
  at(depth) {
    if (depth === 0) return this.url.hostname;
    if (depth === 1) return this.url.protocol.slice(0, -1);
    if (this.#after.length === 0)
      this.#after = [...segmentsOf(this.path), this.url.search.slice(1), this.url.hash.slice(1)];
    return this.#after[depth - 2];
  }
}

/** @implements {Words} */
export class TopicWords {
  /** @type {string[]} */
  #segments;

  /** @param {string} topic */
  constructor(topic) {
    this.path = topic;
    this.#segments = segmentsOf(topic);
  }

  /** @param {number} depth */
  at(depth) {
    return this.#segments[depth];
  }
}

/** @param {string} path */
function segmentsOf(path) {
  const segments = path.split('/', MOST_STEPS);
  segments.push(END);
  return segments;
}
