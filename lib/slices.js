/*
 * Long work in slices: other callbacks run in between, and few of these works are in progress at the same time.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';

const SLICE_MS = 2;

/** Works at the same time; the others wait. */
export class Slices {
  /** @param {number} most */
  constructor(most) {
    this.free = most;
    /** @type {(() => void)[]} */
    this.waiting = [];
    this.beganMs = 0;
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  async run(work) {
    if (this.free > 0) this.free--;
    else await new Promise((resolve) => this.waiting.push(() => resolve(undefined)));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    }
  }

  /** To be awaited often: it waits for other callbacks if this slice is over. */
  async pause() {
    const nowMs = performance.now();
    if (nowMs - this.beganMs < SLICE_MS) return;
    await turn();
    this.beganMs = performance.now();
  }
}
