/*
 * Small parts that several brokers need.
 */
import { randomBytes } from 'node:crypto';
import { HoldfastError } from '../lib/errors.js';
import { Slices } from '../lib/slices.js';

/** How often publications that are too old are looked for, and most that are dropped at once. */
export const TRIM_MS = 1000;
export const TRIM_STEP = 1000;

const KEY_BYTES = 16;

/** @returns {{ epoch: number, key: Uint8Array }} of a new order; the epoch is above 0 */
export function newEpoch() {
  return { epoch: randomBytes(4).readUInt32LE() || 1, key: new Uint8Array(randomBytes(KEY_BYTES)) };
}

/** @returns {Promise<void>} when everything that has already arrived is handled */
export function endOfTurn() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Identical reads in progress share their answer. */
export class SharedReads {
  /** @param {number} [most] reads at a time; the others wait */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.slices = new Slices(most);
    /** @type {Map<string, Promise<any>>} */
    this.answers = new Map();
  }

  /**
   * @template T
   * @param {string} key the same for identical reads
   * @param {() => Promise<T>} read
   * @returns {Promise<T>}
   */
  share(key, read) {
    const { answers } = this;
    const answer = answers.get(key);
    if (answer) return answer;
    const fresh = this.slices
      .run(async () => {
        this.check(answers);
        const found = await read();
        this.check(answers);
        return found;
      })
      .finally(() => answers.delete(key));
    answers.set(key, fresh);
    return fresh;
  }

  /** The order has begun anew: whoever has asked before gets BUSY, because the answer would be about another order. */
  restart() {
    this.answers = new Map();
  }

  /** @param {Map<string, Promise<any>>} answers of the time of the question */
  check(answers) {
    if (answers === this.answers) return;
    throw new HoldfastError('BUSY', 'the order of publications has begun anew in the meantime: try again');
  }
}
