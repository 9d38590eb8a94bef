/*
 * Measures pieces of code that take microseconds, so cheaply that it can stay on:
 *
 *     const start = profiler.start();
 *     parse(line);
 *     profiler.measure(start, 'parse');
 *
 * What measuring itself costs is measured too, and subtracted: from the duration of the piece, and from the durations of pieces around
 * it. For that, the profiler's clock stands still while the profiler works.
 */
import { now } from './clock.js';
import { Histogram } from './histogram.js';
import { nextGap } from './sampling.js';

/** With so many calls at the beginning, the code of the profiler is compiled before it measures anything. */
const WARM_UP = 20_000;
/** Empty measurements of one calibration: about 25 µs. Their median is what counts, because a few are always interrupted. */
const EMPTY = 255;
const PER_GROUP = 15;
/** Of promises: the key of the time until they are settled. */
export const SETTLED = ' settled';

/** @typedef {import('./histogram.js').Recorded} Recorded */
/** @typedef {(this: any, ...args: any[]) => any} Callable */

/**
 * What a profiler has measured since it was last asked.
 * @typedef {object} Report
 * @property {number} ns how long that was
 * @property {number} every each measurement stands for so many calls
 * @property {[key: string, recorded: Recorded][]} keys
 */

export class Profiler {
  /**
   * @param {object} [options]
   * @param {number} [options.every] measures one call in so many, chosen at random
   * @param {Record<string, number>} [options.budgets] ns by key: longer calls are counted as overruns
   */
  constructor({ every = 1, budgets = {} } = {}) {
    this.every = every;
    this.budgets = budgets;
    /** Calls until the next one that is measured, including that. */
    this.gap = nextGap(every);
    /** @type {Map<string, Histogram>} */
    this.histograms = new Map();
    /** What an empty measurement would show. */
    this.innerNs = 0;
    /** What `start` and `measure` take together. */
    this.wholeNs = 0;
    /** What all measurements together have taken: the profiler's clock is behind by that. */
    this.spentNs = 0;
    this.calibrate(WARM_UP);
    this.calibrate();
    this.takenNs = now();
  }

  /** @returns {number} to be passed to `measure`: when the piece of code began, or 0 if this call isn't measured */
  start() {
    if (--this.gap > 0) return 0;
    return this.startNow();
  }

  startNow() {
    this.gap = this.every === 1 ? 1 : nextGap(this.every);
    return now() - this.spentNs;
  }

  /** @param {number} start @param {string} key what the piece of code is called */
  measure(start, key) {
    if (start === 0) return;
    const ns = now() - this.spentNs - start - this.innerNs;
    (this.histograms.get(key) ?? this.add(key)).record(ns);
    this.spentNs += this.wholeNs;
  }

  /** @param {string} key @returns {Histogram} */
  add(key) {
    const histogram = new Histogram(this.budgets[key]);
    this.histograms.set(key, histogram);
    return histogram;
  }

  /**
   * A function that is measured whenever it is called. If it returns a promise, the time until that is settled is measured as well,
   * with the key and ' settled'. (A promise that is rejected then counts as handled, even if nobody else handles it.)
   * @template {Callable} F
   * @param {F} fn @param {string} key
   * @returns {F}
   */
  wrap(fn, key) {
    const profiler = this;
    const settledKey = key + SETTLED;
    /** @type {Callable} */
    const wrapped = function (...args) {
      const start = profiler.start();
      if (start === 0) return fn.apply(this, args);
      try {
        const result = fn.apply(this, args);
        if (result instanceof Promise) profiler.whenSettled(result, start, settledKey);
        return result;
      } finally {
        profiler.measure(start, key);
      }
    };
    for (const name of ['name', 'length'])
      Object.defineProperty(wrapped, name, {
        .../** @type {any} */ (Object.getOwnPropertyDescriptor(fn, name)),
      });
    return /** @type {F} */ (wrapped);
  }

  /** @param {Promise<unknown>} promise @param {number} start @param {string} key */
  whenSettled(promise, start, key) {
    const done = () => this.measure(start, key);
    promise.then(done, done);
  }

  /**
   * Measures a method of a class (give its prototype) or of an object from now on.
   * @param {object} owner @param {string} name @param {string} key
   * @returns {() => void} undoes it
   * @throws {TypeError} if there is no such method
   */
  wrapMethod(owner, name, key) {
    const descriptor = Object.getOwnPropertyDescriptor(owner, name);
    if (typeof descriptor?.value !== 'function')
      throw new TypeError(`there is no method '${name}' to measure as '${key}'`);
    Object.defineProperty(owner, name, { ...descriptor, value: this.wrap(descriptor.value, key) });
    return () => void Object.defineProperty(owner, name, descriptor);
  }

  /** @returns {Report} of the time since the last call. Calibrates again, because code gets faster while it runs */
  take() {
    const nowNs = now();
    const ns = nowNs - this.takenNs;
    this.takenNs = nowNs;
    /** @type {Report['keys']} */
    const keys = [...this.histograms].map(([key, histogram]) => [key, histogram.take()]);
    this.calibrate();
    return { ns, every: this.every, keys };
  }

  /** Measures empty pieces of code. The time that this takes is the profiler's own, too. @param {number} [count] */
  calibrate(count = EMPTY) {
    const { gap, histograms, spentNs } = this;
    const begunNs = now();
    const histogram = new Histogram();
    this.histograms = new Map([['', histogram]]);
    this.innerNs = 0;
    this.wholeNs = 0;
    const groups = new Histogram();
    for (let i = 0; i < count; i += PER_GROUP) groups.record(this.measureNothing());
    this.innerNs = Math.round(histogram.percentile(0.5));
    this.wholeNs = Math.round(groups.percentile(0.5) / PER_GROUP);
    this.gap = gap;
    this.histograms = histograms;
    this.spentNs = spentNs + now() - begunNs;
  }

  /** @returns {number} ns that a group of empty measurements takes */
  measureNothing() {
    const begunNs = now();
    for (let i = 0; i < PER_GROUP; i++) {
      this.gap = 1;
      this.measure(this.start(), '');
    }
    return now() - begunNs;
  }
}
