/*
 * Calls of `append` that wait to be stored. All that come in one turn of the event loop, or while others are being stored, are
 * stored together.
 */
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError } from '../lib/errors.js';
import { sizeOf } from './limits.js';
import { endOfTurn } from './parts.js';

/** Calls that are stored together, from which on it pays to wait for more. */
const MANY = 4;

/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Receipt} Receipt */

/**
 * @typedef {object} Call
 * @property {readonly Draft[]} drafts
 * @property {number} bytes
 * @property {(receipts: Receipt[]) => void} resolve
 * @property {(error: Error) => void} reject
 */

export class Appends {
  /**
   * @param {number} maxQueueBytes of what waits to be stored, is being stored, or waits to be delivered; a single call may be larger
   * @param {number} gatherMs if there are many at a time, they are stored at most this often
   * @param {(calls: Call[]) => void | Promise<void>} store resolves or rejects all of them; while its promise is pending, calls wait
   */
  constructor(maxQueueBytes, gatherMs, store) {
    this.maxQueueBytes = maxQueueBytes;
    this.gatherMs = gatherMs;
    this.store = store;
    this.bytes = 0;
    this.isClosed = false;
    /** @type {Call[]} */
    this.waiting = [];
    /** @type {Promise<void> | null} until nothing waits any more */
    this.running = null;
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<Receipt[]>} */
  add(drafts) {
    if (this.isClosed) return Promise.reject(new HoldfastError('CLOSED', 'the broker is closed'));
    let bytes = 0;
    for (const draft of drafts) bytes += sizeOf(draft);
    if (this.bytes > 0 && this.bytes + bytes > this.maxQueueBytes)
      return Promise.reject(busy(this.bytes, this.maxQueueBytes));
    this.bytes += bytes;
    return new Promise((resolve, reject) => {
      this.waiting.push({ drafts, bytes, resolve, reject });
      this.running ??= this.run();
    });
  }

  /** @param {number} bytes of publications that also wait, until they are delivered @param {Promise<void> | void} delivered */
  hold(bytes, delivered) {
    if (!delivered) return;
    this.bytes += bytes;
    void delivered.then(() => {
      this.bytes -= bytes;
    });
  }

  async run() {
    for (let startMs = 0, before = 0; this.waiting.length > 0; ) {
      await endOfTurn();
      const leftMs = startMs + this.gatherMs - performance.now();
      if (before >= MANY && leftMs > 0) await after(leftMs);
      startMs = performance.now();
      const calls = this.waiting;
      before = calls.length;
      this.waiting = [];
      await this.store(calls);
      for (const { bytes } of calls) this.bytes -= bytes;
    }
    this.running = null;
  }

  /** Refuses further calls. @returns {Promise<void>} once all others are answered */
  async close() {
    this.isClosed = true;
    await this.running;
  }
}

/** @param {number} bytes that wait @param {number} maxQueueBytes @returns {HoldfastError} */
export function busy(bytes, maxQueueBytes) {
  const line = `too many publications: ${bytes} bytes of them are waiting, and --max-queue is ${maxQueueBytes}`;
  return new HoldfastError('BUSY', line);
}
