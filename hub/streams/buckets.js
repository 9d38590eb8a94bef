/*
 * Token buckets: how often each of many may do something. A bucket holds the tokens of one second, so one that was not used for a
 * second is full, and needn't be kept. They are forgotten in two generations, without a timer.
 */

const FULL_MS = 1000;
/** Buckets of a generation. If there are more, the older ones are forgotten early, as if they were full. */
const MOST = 100_000;
/** For sums of fractions. */
const ALMOST = 1e-9;

/** @typedef {{ tokens: number, atMs: number }} Bucket */

export class Buckets {
  /** @param {number} perSecond also the most at once @param {() => number} [nowMs] of a clock that never goes back */
  constructor(perSecond, nowMs = () => performance.now()) {
    this.perSecond = perSecond;
    this.nowMs = nowMs;
    /** When the generation began. */
    this.sinceMs = nowMs();
    /** @type {Map<string, Bucket>} */
    this.young = new Map();
    /** Not used since the generation began. @type {Map<string, Bucket>} */
    this.old = new Map();
  }

  /** Buckets that are kept. */
  get size() {
    return this.young.size + this.old.size;
  }

  /** @param {string} key @returns {boolean} false if it has no token now */
  take(key) {
    const nowMs = this.nowMs();
    if (nowMs >= this.sinceMs + FULL_MS || this.young.size >= MOST) this.age(nowMs);
    const bucket = this.bucketOf(key, nowMs);
    const refilled = bucket.tokens + ((nowMs - bucket.atMs) * this.perSecond) / FULL_MS;
    bucket.tokens = Math.min(this.perSecond, refilled);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1 - ALMOST) return false;
    bucket.tokens -= 1;
    return true;
  }

  /** @param {string} key @param {number} nowMs @returns {Bucket} */
  bucketOf(key, nowMs) {
    const known = this.young.get(key);
    if (known) return known;
    const bucket = this.old.get(key) ?? { tokens: this.perSecond, atMs: nowMs };
    this.old.delete(key);
    this.young.set(key, bucket);
    return bucket;
  }

  /** Begins a generation. @param {number} nowMs */
  age(nowMs) {
    this.old = nowMs >= this.sinceMs + 2 * FULL_MS ? new Map() : this.young;
    this.young = new Map();
    this.sinceMs = nowMs;
  }
}
