/*
 * When requests are sent: a connection that is free waits here, and the one that has waited longest gets the next
 * request. With a rate, request k is due k / rps seconds after the first, whatever happened to those before it: one
 * schedule for all connections, and one timer. Without a rate, a request is due as soon as a connection is free.
 */

/**
 * A connection that sends one request at a time.
 * @typedef {object} Taker
 * @property {(dueMs: number) => void} take sends one
 * @property {() => void} leave there are no more requests for it
 */

export class Pacer {
  /** @param {number} rps requests per second; 0 for no rate @param {number} most requests in total */
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

  /** @param {Taker} taker */
  wait(taker) {
    if (this.isStopped) return;
    this.waiting.add(taker);
    this.pump();
  }

  /** Hands out the requests that are due. */
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

  /** @param {number} nowMs @returns {number} when the next request is due */
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

  /** @param {number} nowMs @returns {number} requests that are due but had no free connection */
  overdue(nowMs) {
    if (this.rps === 0 || this.startMs < 0) return 0;
    const due = Math.floor(((nowMs - this.startMs) * this.rps) / 1000) + 1;
    return Math.max(0, Math.min(due, this.most) - this.given - this.waiting.size);
  }

  stop() {
    this.isStopped = true;
    if (this.timer) clearTimeout(this.timer);
    this.waiting.clear();
  }
}
