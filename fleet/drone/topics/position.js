/*
 * Where one stream is in the publications to one topic: whether each arrives exactly once and in order. Pure, and the same
 * as native/core/src/dial/position.rs.
 */

/** How far back missing numbers are remembered. */
const WINDOW = 64;

/**
 * What a publication turned out to be. `next`: in order, after `skipped` that are missing; `afterGap`: the same, but the
 * server had said that some may be missing; `late`: it was missing, and arrives after a later one; `beforeFirst`: it was sent
 * before the first one that this stream got, and arrives after it; `outdated`: of an earlier publisher than the last one;
 * `repeated`: it has arrived before, or is so old that nothing is known about it.
 * @typedef {{ what: 'next' | 'afterGap' | 'late' | 'beforeFirst' | 'outdated' | 'repeated', skipped: number }} Verdict
 */

export class Position {
  constructor() {
    this.first = 0;
    this.last = 0;
    this.hasGap = false;
    /** 0 if nothing has arrived yet. */
    this.publisher = 0;
    /** Numbers below the last one. @type {Set<number>} */
    this.missing = new Set();
  }

  /** From now on any number may come first. */
  forget() {
    this.begin(0, 0);
  }

  /** The server has said that publications may be missing before the next one. */
  expectGap() {
    this.hasGap = true;
  }

  /** @param {number} publisher @param {number} number */
  begin(publisher, number) {
    this.first = number;
    this.last = number;
    this.hasGap = false;
    this.publisher = publisher;
    this.missing.clear();
  }

  /** @param {number} publisher @param {number} number @returns {Verdict} */
  check(publisher, number) {
    if (publisher < this.publisher) return { what: 'outdated', skipped: 0 };
    if (publisher > this.publisher) {
      this.begin(publisher, number);
      return { what: 'next', skipped: 0 };
    }
    return number > this.last ? this.advance(number) : { what: this.lookBack(number), skipped: 0 };
  }

  /** @param {number} number @returns {Verdict} */
  advance(number) {
    const { last, hasGap, missing } = this;
    this.last = number;
    this.hasGap = false;
    for (const old of missing) if (old < number - WINDOW) missing.delete(old);
    for (let one = Math.max(last + 1, number - WINDOW); one < number && !hasGap; one++) missing.add(one);
    return { what: hasGap ? 'afterGap' : 'next', skipped: number - last - 1 };
  }

  /** @param {number} number */
  lookBack(number) {
    if (number < this.first) {
      if (number === this.first - 1) this.first = number; // so that it is noticed if this one is repeated
      return 'beforeFirst';
    }
    return this.missing.delete(number) ? 'late' : 'repeated';
  }
}
