/*
 * Bytes that wait in JS for clients that don't read fast enough.
 */

/**
 * @typedef {object} Writable
 * @property {number} backlogBytes bytes that its connection has not taken
 * @property {boolean} isWritten set here: written to since backlogs were last measured
 * @property {boolean} isBehind set here: more than the limit was still waiting a while after a write
 */

/** @template {Writable} T */
export class Backlogs {
  /** @param {number} limitBytes of one stream */
  constructor(limitBytes) {
    this.limitBytes = limitBytes;
    /** @type {T[]} written to since they were last measured */
    this.written = [];
    /** @type {Set<T>} had bytes waiting when last measured */
    this.waiting = new Set();
    /** How many bytes may wait for a stream in addition, because of something large. @type {Map<T, number>} */
    this.exempt = new Map();
    this.measureSoon = this.measureSoon.bind(this);
    this.measure = this.measure.bind(this);
  }

  /** @param {T} stream @returns {boolean} whether it has been behind for a while, and still is */
  isSlow(stream) {
    return stream.isBehind && stream.backlogBytes > this.limitOf(stream);
  }

  /** @param {T} stream */
  limitOf(stream) {
    return this.limitBytes + (this.exempt.get(stream) ?? 0);
  }

  /** @param {T} stream to which something was written that may be large, and does not make it slow @param {number} bytes */
  noteExemptWrite(stream, bytes) {
    this.exempt.set(stream, (this.exempt.get(stream) ?? 0) + bytes);
    this.noteWrite(stream);
  }

  /** @param {T} stream */
  noteWrite(stream) {
    stream.isBehind = false;
    if (stream.isWritten) return;
    stream.isWritten = true;
    if (this.written.push(stream) === 1) setImmediate(this.measureSoon);
  }

  /** Writes are sent at the end of a turn of the event loop, and confirmed in the next. Only the rest is a backlog. */
  measureSoon() {
    setImmediate(this.measure);
  }

  measure() {
    for (const stream of this.written) {
      const { backlogBytes } = stream;
      if (backlogBytes > 0) this.waiting.add(stream);
      stream.isWritten = false;
      const exempt = this.exempt.get(stream);
      // So much that was exempt can still be waiting.
      if (exempt !== undefined && backlogBytes === 0) this.exempt.delete(stream);
      else if (exempt !== undefined) this.exempt.set(stream, Math.min(exempt, backlogBytes));
      stream.isBehind = backlogBytes > this.limitOf(stream);
    }
    this.written.length = 0;
  }

  /** @param {T} stream that is gone */
  delete(stream) {
    this.waiting.delete(stream);
    this.exempt.delete(stream);
  }

  /** @returns {number} bytes waiting in all streams */
  totalBytes() {
    let total = 0;
    for (const stream of this.waiting) {
      const { backlogBytes } = stream;
      if (backlogBytes === 0) this.waiting.delete(stream);
      total += backlogBytes;
    }
    return total;
  }
}
