/*
 * A hash table of items in memory of a fixed size. With several threads there is one store for each part of the keys, and
 * every use of one is between lock() and unlock().
 */
import {
  BYTES,
  CAS,
  CHAIN,
  EXPIRES,
  FLUSHED_AT,
  FLUSHED_CAS,
  GET_EXPIRED,
  GET_FLUSHED,
  HASH,
  HEAD_BYTES,
  ITEMS,
  LAST_CAS,
  LENGTH,
  LINKED,
  LOCK,
  layoutOf,
  META,
  PAGE_BYTES,
  TOTAL_ITEMS,
  USED_AT,
} from './layout.js';
import { Slabs } from './slabs.js';

const FREE_LOCK = 0;
const LOCKED = 1;
const CONTENDED = 2; // somebody sleeps until it is free
const SPINS = 200;

/** Up to here a loop is faster than a call that copies. */
const COPY_BY_HAND = 64;

export class Store extends Slabs {
  /** @param {ArrayBufferLike} memory of memoryFor(pages) @param {number} pages @param {Int32Array} clock */
  constructor(memory, pages, clock) {
    super(memory, pages, clock);
    this.isShared = memory instanceof SharedArrayBuffer;
  }

  lock() {
    if (this.isShared && Atomics.compareExchange(this.words, LOCK, FREE_LOCK, LOCKED) !== FREE_LOCK)
      this.#wait();
  }

  /** Holders are quick, so it spins for a while before it sleeps. */
  #wait() {
    for (let spin = 0; spin < SPINS; spin++)
      if (Atomics.compareExchange(this.words, LOCK, FREE_LOCK, LOCKED) === FREE_LOCK) return;
    while (Atomics.exchange(this.words, LOCK, CONTENDED) !== FREE_LOCK)
      Atomics.wait(this.words, LOCK, CONTENDED);
  }

  unlock() {
    if (this.isShared && Atomics.exchange(this.words, LOCK, FREE_LOCK) === CONTENDED)
      Atomics.notify(this.words, LOCK, 1);
  }

  /**
   * @param {Uint8Array} bytes @param {number} start of the key @param {number} length
   * @param {number} hash
   * @returns {number} the item, or 0 if there is none, or none any more
   */
  find(bytes, start, length, hash) {
    const { words } = this;
    for (let item = this.table[hash & this.mask]; item !== 0; item = words[(item >> 2) + CHAIN]) {
      const at = item >> 2;
      if (words[at + HASH] !== hash || (words[at + META] & 255) !== length) continue;
      if (this.#isSame(bytes, start, item + HEAD_BYTES, length))
        return this.#isGone(at) ? this.#drop(item) : item;
    }
    return 0;
  }

  /** @param {Uint8Array} bytes @param {number} start @param {number} at @param {number} length */
  #isSame(bytes, start, at, length) {
    const own = this.bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== own[at + i]) return false;
    return true;
  }

  /** @param {number} at word of the item @returns {boolean} whether it has expired, or was flushed */
  #isGone(at) {
    const now = this.clock[0];
    const expires = this.words[at + EXPIRES];
    if (expires !== 0 && expires <= now) return this.#count(GET_EXPIRED);
    if (this.casOf(at << 2) < this.doubles[FLUSHED_CAS]) return this.#count(GET_FLUSHED);
    const flushedAt = this.words[FLUSHED_AT];
    if (flushedAt === 0 || flushedAt > now || this.words[at + USED_AT] > flushedAt) return false;
    return this.#count(GET_FLUSHED);
  }

  /** @param {number} counter @returns {true} */
  #count(counter) {
    this.doubles[counter]++;
    return true;
  }

  /** @param {number} item @returns {0} */
  #drop(item) {
    this.unlink(item);
    return 0;
  }

  /** Every change of an item gives it another one. @param {number} item */
  renew(item) {
    this.doubles[(item >> 3) + CAS / 2] = ++this.doubles[LAST_CAS];
  }

  /** @param {number} item @returns {number} */
  casOf(item) {
    return this.doubles[(item >> 3) + CAS / 2];
  }

  /** @param {number} keyLength @param {number} suffixLength @param {number} length @returns {number} bytes of the item */
  static sizeOf(keyLength, suffixLength, length) {
    return HEAD_BYTES + keyLength + suffixLength + length + 2;
  }

  /** @param {number} item @returns {number} where its value starts */
  valueAt(item) {
    const meta = this.words[(item >> 2) + META];
    return item + HEAD_BYTES + (meta & 255) + ((meta >> 8) & 255);
  }

  /** @param {number} item @returns {number} bytes that it takes, without what its class wastes */
  sizeOfItem(item) {
    const meta = this.words[(item >> 2) + META];
    return Store.sizeOf(meta & 255, (meta >> 8) & 255, this.words[(item >> 2) + LENGTH]);
  }

  /** Makes a filled chunk an item that can be found. @param {number} item */
  link(item) {
    const at = item >> 2;
    const bucket = this.words[at + HASH] & this.mask;
    this.words[at + CHAIN] = this.table[bucket];
    this.table[bucket] = item;
    this.words[at + META] |= LINKED;
    this.words[at + USED_AT] = this.clock[0];
    this.linkNewest(this.classAt((this.words[at + META] >> 16) & 255), item);
    this.doubles[BYTES] += this.sizeOfItem(item);
    this.doubles[ITEMS]++;
    this.doubles[TOTAL_ITEMS]++;
    this.renew(item);
  }

  /** Removes an item, and frees its chunk. @override @param {number} item */
  unlink(item) {
    const { words, table } = this;
    const at = item >> 2;
    const bucket = words[at + HASH] & this.mask;
    if (table[bucket] === item) table[bucket] = words[at + CHAIN];
    else {
      let before = table[bucket] >> 2;
      while (words[before + CHAIN] !== item) before = words[before + CHAIN] >> 2;
      words[before + CHAIN] = words[at + CHAIN];
    }
    this.doubles[BYTES] -= this.sizeOfItem(item);
    this.doubles[ITEMS]--;
    const cls = (words[at + META] >> 16) & 255;
    this.unlinkUsed(this.classAt(cls), item);
    words[at + META] = cls << 16;
    this.linkFree(this.classAt(cls), item);
  }

  /**
   * @param {Uint8Array} from @param {number} start @param {number} end
   * @param {number} to address in this memory
   */
  write(from, start, end, to) {
    const { bytes } = this;
    if (end - start > COPY_BY_HAND) {
      bytes.set(from.subarray(start, end), to);
      return;
    }
    for (let i = start; i < end; i++) bytes[to++] = from[i];
  }

  /** @param {number} start address @param {number} end @param {Buffer} to @param {number} at */
  read(start, end, to, at) {
    const { bytes } = this;
    if (end - start > COPY_BY_HAND) {
      bytes.copy(to, at, start, end);
      return;
    }
    for (let i = start; i < end; i++) to[at++] = bytes[i];
  }

  /** Items that are there at a time are gone then. @param {number} at seconds; those of now are gone at once */
  flush(at) {
    const isNow = at - 1 <= this.clock[0];
    if (isNow) this.doubles[FLUSHED_CAS] = ++this.doubles[LAST_CAS];
    this.words[FLUSHED_AT] = isNow ? 0 : at - 1;
  }
}

/** @param {number} pages @param {boolean} isShared @returns {ArrayBufferLike} */
export function memoryFor(pages, isShared) {
  const { bytes } = layoutOf(pages);
  return isShared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
}

/** The largest item, with its head. */
export const MOST_BYTES = PAGE_BYTES;
