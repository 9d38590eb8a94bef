/*
 * Pings everything in a wheel, with one timer, which runs only while the wheel is not empty.
 */
import { performance } from 'node:perf_hooks';
import { Wheel } from './wheel.js';

const now = performance.now.bind(performance);

/** @template {import('./wheel.js').Seat} T */
export class Pinger {
  /**
   * @param {number} intervalMs
   * @param {(thing: T, lateMs: number) => void} ping
   */
  constructor(intervalMs, ping) {
    this.intervalMs = intervalMs;
    this.ping = ping;
    /** Created when something is first added: most native Holds need none. @type {Wheel<T> | undefined} */
    this.wheel = undefined;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.turn = this.turn.bind(this);
  }

  /** @param {T} thing */
  add(thing) {
    this.wheel ??= new Wheel(this.intervalMs, now());
    if (this.timer === undefined) {
      this.wheel.restart(now());
      this.timer = setTimeout(this.turn, this.wheel.slotMs).unref();
    }
    this.wheel.add(thing);
  }

  /** @param {T} thing may already be removed */
  remove(thing) {
    this.wheel?.remove(thing);
    if (this.wheel?.size === 0) {
      clearTimeout(this.timer);
      this.timer = undefined;
    }
  }

  /** Pings everything that is due, and sets the timer for the next slot. */
  turn() {
    const { wheel } = this;
    wheel?.turn(now, this.ping);
    this.timer = wheel?.size ? setTimeout(this.turn, Math.max(1, wheel.dueMs - now())).unref() : undefined;
  }
}
