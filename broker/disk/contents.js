/*
 * What is in a store. Everything that changes it is called within a transaction of store.js. If the transaction fails, this
 * object does not match the store any more, and is made anew.
 *
 *     log: ...... first ====== blocks ====== last        kept: those of cached topics that are below `first`
 */
import { HoldfastError } from '../../lib/errors.js';
import { Cached } from '../cached.js';
import { sequenceAt, withoutSequence, withSequence } from '../ids.js';
import { READ_BYTES } from '../limits.js';
import { TRIM_STEP } from '../parts.js';
import { BLOCK_HEAD, framesOf, makeBlock } from './frames.js';
import { keyOf } from './keys.js';
import { cut, Log, sizeOfFrame } from './log.js';

/** @typedef {import('./environment.js').Environment} Environment */
/** @typedef {import('./log.js').Part} Part */

/** @typedef {[index: number, sequence: number]} Known a draft whose id was known already, and where */

export class Contents {
  /**
   * @param {Environment} db within a transaction
   * @param {import('../index.js').Retention} retention
   * @param {boolean} isCopy
   */
  constructor(db, retention, isCopy) {
    this.db = db;
    this.retention = retention;
    this.isCopy = isCopy;
    this.log = new Log(db.log, db.meta.get('state'));
    this.cached = new Cached(() => true);
    for (const { key: sequence, value } of [...db.pins.getRange()]) {
      const [bytes, topics] = value;
      const released = this.cached.note({ topics, sequence }, bytes);
      for (const one of released) this.release(one); // only if the limits were higher before
    }
  }

  /**
   * @param {number} at ms since 1970
   * @param {Uint8Array<ArrayBuffer>} frames of drafts
   * @param {Map<number, string[]>} cachedTopics of each draft that has some, by index
   * @returns {Known[]}
   */
  append(at, frames, cachedTopics) {
    const { first: before } = this.log.state;
    const { fresh, known } = this.order(frames);
    const first = this.log.push(
      at,
      fresh.map(({ bytes }) => bytes),
    );
    for (const [index, { bytes, draft }] of fresh.entries())
      this.note(first + index, bytes.length, cachedTopics.get(draft) ?? []);
    this.trim(fresh.length + TRIM_STEP);
    if (fresh.length > 0 || this.log.state.first > before) this.db.meta.put('state', this.log.state);
    return known;
  }

  /** @param {Uint8Array<ArrayBuffer>} frames @returns {{ fresh: { bytes: Uint8Array, draft: number }[], known: Known[] }} */
  order(frames) {
    const fresh = [];
    /** @type {Known[]} */
    const known = [];
    let draft = 0;
    for (const { start, end, id } of framesOf(frames)) {
      const sequence = id === undefined || this.isCopy ? undefined : this.find(id);
      if (sequence !== undefined) known.push([draft, sequence]);
      else {
        fresh.push({ bytes: frames.subarray(start, end), draft });
        if (id !== undefined) this.remember(id, this.log.state.last + fresh.length);
      }
      draft++;
    }
    return { fresh, known };
  }

  /** @param {number} sequence of a new publication @param {number} length of its frame @param {string[]} topics that are cached */
  note(sequence, length, topics) {
    if (topics.length === 0) return;
    const bytes = sizeOfFrame(length);
    this.db.pins.put(sequence, [bytes, topics]);
    for (const released of this.cached.note({ topics, sequence }, bytes)) this.release(released);
  }

  /** @param {number} sequence of a publication that is not the last of a cached topic any more */
  release(sequence) {
    this.db.pins.remove(sequence);
    if (sequence >= this.log.state.first) return;
    const block = this.db.kept.get(sequence);
    if (!block) return;
    this.db.kept.remove(sequence);
    for (const { id } of framesOf(block, BLOCK_HEAD)) this.forget(id, sequence);
  }

  /** @param {readonly string[]} topics that are not cached any more */
  uncache(topics) {
    /** @type {number[]} */
    const released = [];
    for (const topic of topics) this.cached.forget(topic, released);
    for (const sequence of released) this.release(sequence);
  }

  /** @param {string} id of a publication that is stored now @param {number} sequence */
  remember(id, sequence) {
    const key = keyOf(id);
    this.db.ids.put(key, withSequence(this.db.ids.get(key), sequence));
  }

  /** @param {string | undefined} id of a publication that is stored nowhere any more @param {number} sequence */
  forget(id, sequence) {
    if (id === undefined) return;
    const key = keyOf(id);
    const before = this.db.ids.get(key);
    const where = withoutSequence(before, sequence);
    if (where === undefined) this.db.ids.remove(key);
    else if (where !== before) this.db.ids.put(key, where);
  }

  /** Drops what is beyond retention. @param {number} most */
  trim(most) {
    for (let count = 0; count < most && this.isOver(); count++) {
      const sequence = this.log.state.first;
      const { id, at, bytes } = this.log.shift();
      if (this.cached.has(sequence)) this.db.kept.put(sequence, makeBlock(at, [bytes]));
      else this.forget(id, sequence);
    }
  }

  /** @returns {boolean} whether the oldest publication is beyond retention */
  isOver() {
    const { historyCount, historyAgeMs, historyBytes } = this.retention;
    const { first, last, bytes } = this.log.state;
    if (first > last) return false;
    if (last - first + 1 > historyCount || bytes > historyBytes) return true;
    return this.oldestAt <= Date.now() - historyAgeMs;
  }

  /** @returns {number} when the oldest publication was stored; Infinity if there is none */
  get oldestAt() {
    return this.log.oldest()?.at ?? Number.POSITIVE_INFINITY;
  }

  /** @param {string} id @returns {number | undefined} */
  find(id) {
    return sequenceAt(this.db.ids.get(keyOf(id)));
  }

  /** @param {number} after a sequence @returns {Part[]} the next of those that are the last of cached topics; about READ_BYTES */
  latest(after) {
    /** @type {Part[]} */
    const parts = [];
    let bytes = 0;
    for (const [sequence, pin] of this.cached.pins) {
      if (sequence <= after) continue;
      bytes += pin.bytes;
      if (bytes > READ_BYTES && parts.length > 0) break;
      parts.push(this.get(sequence));
    }
    return parts;
  }

  /** @param {number} sequence of one that is the last of a cached topic @returns {Part} */
  get(sequence) {
    if (sequence >= this.log.state.first) return this.log.get(sequence);
    const block = this.db.kept.get(sequence);
    if (!block) throw new HoldfastError('STORE', `the stored publication ${sequence} is missing`);
    return cut(sequence, block, sequence, { count: 1, bytes: READ_BYTES, isFirst: true });
  }
}
