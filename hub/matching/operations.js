/*
 * What a program (program.js) consists of. An operation goes on from a position in a text in two ways:
 *
 *   only     the one position from which it is possible to go on, as long as what follows leaves no other
 *   spread   from a set of positions to all that can be reached, in one pass over the text
 *
 * A set is an array with a 1 at each of its positions, which are from `from` on.
 */
import { blank, mark } from './positions.js';

/**
 * @typedef {object} Wildcard
 * @property {(text: string, at: number, next: Operation | undefined, isNextLast: boolean) => number} only  or NONE, or SEVERAL
 * @property {(text: string, from: number, now: Uint8Array, then: Uint8Array) => boolean} spread  false if it reaches nothing. `then` is empty
 * @typedef {string | Wildcard} Operation  a string is text that has to be there
 */

export const NONE = -1;
export const SEVERAL = -2;

/** Zero or more characters. */
class Anything {
  /** @type {Wildcard['only']} */
  only(text, at, next, isNextLast) {
    if (next !== undefined && !(isNextLast && typeof next === 'string')) return SEVERAL;
    return endBefore(text, at, next);
  }

  /** @type {Wildcard['spread']} */
  spread(text, from, now, then) {
    const first = now.indexOf(1, from);
    if (first < 0 || first > text.length) return false;
    then.fill(1, first, text.length + 1);
    return true;
  }
}

export const ANY = new Anything();

/** One or more characters that are not the delimiter. There is one of each kind, in RUNS. */
export class Run {
  /** @param {string} delimiter '' if all characters will do */
  constructor(delimiter) {
    this.delimiter = delimiter;
    this.code = delimiter ? delimiter.charCodeAt(0) : -1;
  }

  /** @type {Wildcard['only']} */
  only(text, at, next, isNextLast) {
    const delimiter = this.delimiter ? text.indexOf(this.delimiter, at) : -1;
    const end = delimiter < 0 ? text.length : delimiter;
    if (end === at) return NONE;
    if (next === undefined) return end;
    if (typeof next !== 'string') return SEVERAL;
    if (next[0] === this.delimiter) return end;
    if (!isNextLast) return SEVERAL;
    const last = endBefore(text, at + 1, next);
    return last <= end ? last : NONE;
  }

  /** @type {Wildcard['spread']} */
  spread(text, from, now, then) {
    let isRunning = false;
    let reached = 0;
    for (let i = from; i < text.length; i++) {
      isRunning = (isRunning || now[i] === 1) && text.charCodeAt(i) !== this.code;
      if (isRunning) reached = then[i + 1] = 1;
    }
    return reached === 1;
  }
}

/** Those of paths, of hosts, and of everything else. */
export const RUNS = { '/': new Run('/'), '.': new Run('.'), '': new Run('') };

/** One or more times: the prefix, the run (if there is one), the suffix. */
export class Loop {
  /** @param {string} prefix @param {Run | null} run @param {string} suffix */
  constructor(prefix, run, suffix) {
    this.prefix = prefix;
    this.run = run;
    this.suffix = suffix;
  }

  only() {
    return SEVERAL;
  }

  /**
   * From left to right: where the suffix ends, the next turn starts.
   * @type {Wildcard['spread']}
   */
  spread(text, from, now, then) {
    const { prefix, suffix, run } = this;
    const prefixes = mark(prefix, text, from, blank(2, text.length));
    const suffixes = mark(suffix, text, from, blank(3, text.length));
    const begun = blank(4, text.length);
    let isRunning = false;
    let reached = 0;
    for (let i = from; i <= text.length; i++) {
      const isThrough = run ? isRunning : begun[i] === 1;
      if (isThrough && suffixes[i] === 1) reached = then[i + suffix.length] = 1;
      if ((now[i] === 1 || then[i] === 1) && prefixes[i] === 1) begun[i + prefix.length] = 1;
      isRunning = (isRunning || begun[i] === 1) && text.charCodeAt(i) !== run?.code;
    }
    return reached === 1;
  }
}

/** Zero or more characters of a set, or percent-encoded ones. */
export class Charset {
  /** @param {string} chars ASCII, without % */
  constructor(chars) {
    this.has = new Uint8Array(128);
    for (const char of chars) this.has[char.charCodeAt(0)] = 1;
  }

  /**
   * It goes as far as it can if what follows can't be taken for a part of it.
   * @type {Wildcard['only']}
   */
  only(text, at, next) {
    if (
      next !== undefined &&
      (typeof next !== 'string' || next[0] === '%' || this.has[next.charCodeAt(0)] === 1)
    )
      return SEVERAL;
    for (let step = 1; step > 0; at += step) step = this.step(text, at);
    return at;
  }

  /** @type {Wildcard['spread']} */
  spread(text, from, now, then) {
    let reached = 0;
    for (let i = from; i <= text.length; i++) {
      if (now[i] === 0 && then[i] === 0) continue;
      reached = then[i] = 1;
      const step = this.step(text, i);
      if (step > 0) then[i + step] = 1;
    }
    return reached === 1;
  }

  /** @param {string} char */
  takes(char) {
    return this.has[char.charCodeAt(0)] === 1;
  }

  /** @param {string} text @param {number} at @returns {number} the length of what it takes there: 1, 3 or 0 */
  step(text, at) {
    const code = text.charCodeAt(at);
    if (this.has[code] === 1) return 1;
    return code === PERCENT && isHex(text.charCodeAt(at + 1)) && isHex(text.charCodeAt(at + 2)) ? 3 : 0;
  }
}

const PERCENT = 0x25;

/** @param {number} code */
function isHex(code) {
  return (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);
}

class Bracket {
  only() {
    return SEVERAL;
  }

  spread() {
    return false;
  }
}

/** What is between FORK and JOIN may be there or not. program.js takes care of it. */
export const FORK = new Bracket();
export const JOIN = new Bracket();

/**
 * @param {string} text @param {number} least @param {string} [rest] what follows at the very end
 * @returns {number} where the rest starts, if that is not before `least`, or NONE
 */
function endBefore(text, least, rest = '') {
  const end = text.length - rest.length;
  return end >= least && text.endsWith(rest) ? end : NONE;
}
