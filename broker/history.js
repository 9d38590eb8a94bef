/*
 * Consecutive publications in memory, by sequence: appended at one end, dropped at the other. They are in blocks, so that
 * neither takes longer when there are millions.
 */
import { READ_BYTES } from './limits.js';

const BLOCK = 1024;

/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {{ publication: Publication, bytes: number }} Entry */

export class History {
  /** @param {number} last sequence before the first one */
  constructor(last) {
    this.first = last + 1;
    this.last = last;
    this.bytes = 0;
    /** @type {Map<number, (Entry | undefined)[]>} by sequence / BLOCK, rounded down */
    this.blocks = new Map();
  }

  /** @returns {number} how many are stored */
  get count() {
    return this.last - this.first + 1;
  }

  /** @param {Publication} publication with the sequence last + 1 @param {number} bytes */
  push(publication, bytes) {
    this.last = publication.sequence;
    this.bytes += bytes;
    const index = Math.floor(this.last / BLOCK);
    const entry = { publication, bytes };
    const block = this.blocks.get(index);
    if (block) block[this.last % BLOCK] = entry;
    else {
      const fresh = new Array(BLOCK);
      fresh[this.last % BLOCK] = entry;
      this.blocks.set(index, fresh);
    }
  }

  /** @param {number} sequence @returns {Entry | undefined} undefined if it is not stored */
  get(sequence) {
    return this.blocks.get(Math.floor(sequence / BLOCK))?.[sequence % BLOCK];
  }

  /** Drops the first one. @returns {Entry | undefined} it */
  shift() {
    const entry = this.get(this.first);
    if (!entry) return undefined;
    const index = Math.floor(this.first / BLOCK);
    const block = this.blocks.get(index);
    if (block) block[this.first % BLOCK] = undefined;
    this.first++;
    this.bytes -= entry.bytes;
    if (Math.floor(this.first / BLOCK) !== index) this.blocks.delete(index);
    return entry;
  }

  /** @param {number} after @param {number} most @returns {Publication[]} as `read` of the broker */
  range(after, most) {
    /** @type {Publication[]} */
    const found = [];
    let bytes = 0;
    for (let at = Math.max(after + 1, this.first); at <= this.last && found.length < most; at++) {
      const entry = /** @type {Entry} */ (this.get(at));
      bytes += entry.bytes;
      if (bytes > READ_BYTES && found.length > 0) break;
      found.push(entry.publication);
    }
    return found;
  }
}
