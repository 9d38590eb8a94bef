/*
 * When requests leave: a connection that is free waits here, and the first in line is given the next request. With a
 * rate, request k is due k / rps seconds after the first, whatever became of those before: one schedule for all
 * connections together, and one timer. Without a rate it is due as soon as a connection is free.
 */

/**
 * A connection that takes requests, one at a time.
 * @typedef {object} Taker
 * @property {(dueMs: number) => void} take sends one
 * @property {() => void} leave there is none left for it
 */

export class Pacer {
  /** @param {number} rps 0 for none @param {number} most requests in all */
  constructor(rps, most) {
    this.rps = rps;
    this.most = most;
    this.given = 0;
    this.startMs = -1;
    /** First in, first out. @type {Set<Taker>} */
    this.waiting = new Set();
    /** @type {NodeJS.Timeout | null} */
    this.timer = null;
    this.isStopped = false;
  }

  /** @param {Taker} taker who may wait already */
  wait(taker) {
    if (this.isStopped) return;
    this.waiting.add(taker);
    this.pump();
  }

  /** @param {Taker} taker */
  remove(taker) {
    this.waiting.delete(taker);
  }

  pump() {
    const nowMs = performance.now();
    if (this.startMs < 0) this.startMs = nowMs;
    for (const taker of this.waiting) {
      const dueMs = this.dueMs(nowMs);
      if (this.given < this.most && dueMs > nowMs) return this.wake(dueMs - nowMs);
      this.waiting.delete(taker);
      if (this.given >= this.most) taker.leave();
      else {
        this.given++;
        taker.take(dueMs);
      }
    }
  }

  /** @param {number} nowMs @returns {number} of the next request */
  dueMs(nowMs) {
    return this.rps > 0 ? this.startMs + (this.given * 1000) / this.rps : nowMs;
  }

  /** @param {number} inMs */
  wake(inMs) {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.pump();
    }, Math.ceil(inMs));
  }

  /** @param {number} nowMs @returns {number} requests that are due and that no connection was free for */
  overdue(nowMs) {
    if (this.rps === 0 || this.startMs < 0) return 0;
    const due = Math.floor(((nowMs - this.startMs) * this.rps) / 1000) + 1;
    return Math.max(0, Math.min(due, this.most) - this.given);
  }

  stop() {
    this.isStopped = true;
    if (this.timer) clearTimeout(this.timer);
    this.waiting.clear();
  }
}
