/*
 * Things that wait for an answer, all with the same deadline period and one timer.
 */
import { performance } from 'node:perf_hooks';

/** @template T */
export class Waiting {
  /**
   * @param {number} periodMs
   * @param {(thing: T) => void} onTimeout called for each that has waited that long, after removing it
   */
  constructor(periodMs, onTimeout) {
    this.periodMs = periodMs;
    this.onTimeout = onTimeout;
    /** When each is due, in order, because all wait equally long. @type {Map<T, number>} */
    this.dueMs = new Map();
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.expire = this.expire.bind(this);
  }

  /** @param {T} thing */
  add(thing) {
    this.dueMs.set(thing, performance.now() + this.periodMs);
    this.timer ??= setTimeout(this.expire, this.periodMs).unref();
  }

  /** @param {T} thing @returns {boolean} whether it was still waiting */
  delete(thing) {
    return this.dueMs.delete(thing);
  }

  /** Forgets all of them. */
  clear() {
    this.dueMs.clear();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  expire() {
    this.timer = undefined;
    for (const [thing, dueMs] of this.dueMs) {
      const restMs = dueMs - performance.now();
      if (restMs > 0) {
        this.timer = setTimeout(this.expire, restMs).unref();
        return;
      }
      this.dueMs.delete(thing);
      this.onTimeout(thing);
    }
  }
}
