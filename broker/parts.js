/*
 * Small parts that several brokers need.
 */
import { randomBytes } from 'node:crypto';

/** How often publications that are too old are looked for, and most that are dropped at once. */
export const TRIM_MS = 1000;
export const TRIM_STEP = 1000;

const KEY_BYTES = 16;

/** @returns {{ epoch: number, key: Uint8Array }} of a new order; the epoch is above 0 */
export function newEpoch() {
  return { epoch: randomBytes(4).readUInt32LE() || 1, key: new Uint8Array(randomBytes(KEY_BYTES)) };
}

/** Identical reads in progress share their answer. */
export class SharedReads {
  constructor() {
    /** @type {Map<string, Promise<any>>} */
    this.running = new Map();
  }

  /**
   * @template T
   * @param {string} key the same for identical reads
   * @param {() => Promise<T>} read
   * @returns {Promise<T>}
   */
  share(key, read) {
    const running = this.running.get(key);
    if (running) return running;
    const fresh = read().finally(() => this.running.delete(key));
    this.running.set(key, fresh);
    return fresh;
  }
}
