/*
 * What a program (program.js) consists of. An operation goes on from a position in a text in two ways:
 *
 *   only     the one position from which it is enough to go on, as long as what follows does not need any other
 *   spread   from a set of positions to all that can be reached, in one pass over the text
 *
 * A set is an array with a 1 at each of its positions, which are from `from` on. For `spread`, the text is an array of character codes.
 */
import { blank, follow } from './positions.js';

/**
 * @typedef {object} Wildcard
 * @property {(text: string, at: number, program: readonly Operation[], index: number) => number} only  or NONE, or SEVERAL. `index` is
 *   its own in the program
 * @property {(codes: Uint16Array, from: number, now: Uint8Array, then: Uint8Array) => boolean} spread  false if it reaches nothing.
 *   `then` is empty
 * @typedef {string | Wildcard} Operation  a string is text that has to be there
 */

export const NONE = -1;
export const SEVERAL = -2;

/** `indexOf` may take the product of the lengths. */
const MOST_TO_SEARCH = 32;

/** Zero or more characters. */
class Anything {
  /**
   * If another one follows after a text, the first place of this text is as good as the others.
   * @type {Wildcard['only']}
   */
  only(text, at, program, index) {
    const next = program[index + 1];
    if (next === undefined) return text.length;
    if (typeof next !== 'string') return SEVERAL;
    if (index + 2 === program.length) return endBefore(text, at, next);
    return program[index + 2] === ANY && next.length <= MOST_TO_SEARCH ? text.indexOf(next, at) : SEVERAL;
  }

  /** @type {Wildcard['spread']} */
  spread(codes, from, now, then) {
    const first = now.indexOf(1, from);
    if (first < 0 || first > codes.length) return false;
    then.fill(1, first, codes.length + 1);
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
  only(text, at, program, index) {
    const next = program[index + 1];
    const delimiter = this.delimiter ? text.indexOf(this.delimiter, at) : -1;
    const end = delimiter < 0 ? text.length : delimiter;
    if (end === at) return NONE;
    if (next === undefined) return end;
    if (typeof next !== 'string') return SEVERAL;
    if (next[0] === this.delimiter) return end;
    if (index + 2 < program.length) return SEVERAL;
    const last = endBefore(text, at + 1, next);
    return last <= end ? last : NONE;
  }

  /** @type {Wildcard['spread']} */
  spread(codes, from, now, then) {
    let reached = 0;
    let isRunning = false;
    for (let i = from; i < codes.length; i++) {
      isRunning = (isRunning || now[i] === 1) && codes[i] !== this.code;
      if (isRunning) reached = then[i + 1] = 1;
    }
    return reached === 1;
  }
}

/** Those of paths, of hosts, and of everything else. */
export const RUNS = { '/': new Run('/'), '.': new Run('.'), '': new Run('') };

/** A text, one or more times. */
export class Repeat {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  only() {
    return SEVERAL;
  }

  /** @type {Wildcard['spread']} */
  spread(codes, from, now, then) {
    if (!follow(this.text, codes, from, now, then)) return false;
    follow(this.text, codes, from, then, then);
    return true;
  }
}

/** One or more times: the prefix, the run, the suffix. */
export class Loop {
  /** @param {string} prefix @param {Run} run @param {string} suffix */
  constructor(prefix, run, suffix) {
    this.prefix = prefix;
    this.run = run;
    this.suffix = suffix;
  }

  only() {
    return SEVERAL;
  }

  /**
   * From left to right: what is inside a run may go on with it; where the suffix ends, the next turn starts.
   * @type {Wildcard['spread']}
   */
  spread(codes, from, now, then) {
    const { prefix, suffix, run } = this;
    const prefixEnds = endsOf(prefix, codes, from, 2);
    const suffixEnds = endsOf(suffix, codes, from, 3);
    const inside = blank(4, codes.length);
    let reached = 0;
    let isIn = false;
    for (let i = from; i <= codes.length; i++) {
      if (isIn && codes[i - 1] !== run.code) inside[i] = 1;
      if (suffixEnds[i] === 1 && inside[i - suffix.length] === 1) reached = then[i] = 1;
      const start = i - prefix.length;
      isIn = inside[i] === 1 || (prefixEnds[i] === 1 && (now[start] === 1 || then[start] === 1));
    }
    return reached === 1;
  }
}

/** @param {string} piece @param {Uint16Array} codes @param {number} from @param {number} slot @returns {Uint8Array} where it ends */
function endsOf(piece, codes, from, slot) {
  const all = blank(5, codes.length).fill(1, from, codes.length + 1);
  const ends = blank(slot, codes.length);
  if (piece === '') ends.set(all.subarray(0, codes.length + 1));
  else follow(piece, codes, from, all, ends);
  return ends;
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
  only(text, at, program, index) {
    const next = program[index + 1];
    if (next !== undefined && (typeof next !== 'string' || next[0] === '%' || this.takes(next)))
      return SEVERAL;
    let end = at;
    for (;;) {
      const code = text.charCodeAt(end);
      if (this.has[code] === 1) end++;
      else if (isEncoded(code, text.charCodeAt(end + 1), text.charCodeAt(end + 2))) end += 3;
      else return end;
    }
  }

  /** @type {Wildcard['spread']} */
  spread(codes, from, now, then) {
    let reached = 0;
    for (let i = from; i <= codes.length; i++) {
      if (now[i] === 0 && then[i] === 0) continue;
      reached = then[i] = 1;
      if (this.has[codes[i]] === 1) then[i + 1] = 1;
      else if (isEncoded(codes[i], codes[i + 1], codes[i + 2])) then[i + 3] = 1;
    }
    return reached === 1;
  }

  /** @param {string} text that starts with a character */
  takes(text) {
    return this.has[text.charCodeAt(0)] === 1;
  }
}

const PERCENT = 0x25;

/** @param {number} code @param {number} second @param {number} third  the codes of three characters, such as %C3 */
const isEncoded = (code, second, third) => code === PERCENT && isHex(second) && isHex(third);

/** @param {number} code */
const isHex = (code) => (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);

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
 * @param {string} text @param {number} least @param {string} rest what follows at the very end
 * @returns {number} where the rest starts, if that is not before `least`, or NONE
 */
function endBefore(text, least, rest) {
  const end = text.length - rest.length;
  return end >= least && text.endsWith(rest) ? end : NONE;
}
