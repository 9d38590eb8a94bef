/*
 * A histogram of durations that can be sent between processes and merged: percentiles of the whole come from
 * merged counts, never from averaged percentiles.
 *
 * The buckets are log-linear, as in HdrHistogram: values below 256 µs have a bucket each, and every doubling
 * above that is cut into 128 equal steps, so that a value is known to within 0.8 %. 32 bits of microseconds
 * (71 minutes) take 3,328 buckets.
 */

const STEPS_LOG2 = 7;
const BUCKETS = 26 << STEPS_LOG2;
const MAX_US = 0xffffffff;

/**
 * A histogram as it travels in a message: only the buckets that hold something, as index, count, index, count…
 * @typedef {object} EncodedHistogram
 * @property {number} count
 * @property {number} sumUs
 * @property {number} minUs
 * @property {number} maxUs
 * @property {number[]} buckets
 */

export class Histogram {
  constructor() {
    this.counts = new Uint32Array(BUCKETS);
    this.count = 0;
    this.sumUs = 0;
    this.minUs = MAX_US;
    this.maxUs = 0;
  }

  reset() {
    this.counts.fill(0);
    this.count = 0;
    this.sumUs = 0;
    this.minUs = MAX_US;
    this.maxUs = 0;
  }

  /** @param {number} ms a duration; a negative one counts as 0 */
  record(ms) {
    const us = Math.min(Math.max(Math.round(ms * 1000), 0), MAX_US);
    this.counts[bucketOf(us)]++;
    this.count++;
    this.sumUs += us;
    if (us < this.minUs) this.minUs = us;
    if (us > this.maxUs) this.maxUs = us;
  }

  /** @returns {number} ms; 0 when empty */
  meanMs() {
    return this.count === 0 ? 0 : this.sumUs / this.count / 1000;
  }

  /** @returns {number} ms, exact; 0 when empty */
  maxMs() {
    return this.maxUs / 1000;
  }

  /**
   * The value below or at which the fraction of all values lies, as the middle of its bucket.
   * @param {number} fraction 0 to 1, so 0.99 for p99
   * @returns {number} ms; 0 when empty
   */
  percentileMs(fraction) {
    if (this.count === 0) return 0;
    const rank = Math.max(1, Math.ceil(fraction * this.count));
    let seen = 0;
    let index = 0;
    for (; index < BUCKETS - 1; index++) {
      seen += this.counts[index];
      if (seen >= rank) break;
    }
    return Math.min(Math.max(middleOf(index), this.minUs), this.maxUs) / 1000;
  }

  /**
   * Adds what another process recorded.
   * @param {EncodedHistogram} other
   * @returns {this}
   */
  merge(other) {
    for (let i = 0; i < other.buckets.length; i += 2) this.counts[other.buckets[i]] += other.buckets[i + 1];
    this.count += other.count;
    this.sumUs += other.sumUs;
    if (other.count > 0) {
      this.minUs = Math.min(this.minUs, other.minUs);
      this.maxUs = Math.max(this.maxUs, other.maxUs);
    }
    return this;
  }

  /**
   * @param {Histogram} earlier the same, some time ago
   * @returns {Histogram} what was recorded since; its least and its most are exact only where they are those of all
   */
  less(earlier) {
    const since = new Histogram();
    since.count = this.count - earlier.count;
    since.sumUs = this.sumUs - earlier.sumUs;
    for (let index = 0; index < BUCKETS; index++) {
      since.counts[index] = this.counts[index] - earlier.counts[index];
      if (since.counts[index] === 0) continue;
      since.minUs = Math.min(since.minUs, middleOf(index));
      since.maxUs = middleOf(index);
    }
    if (this.maxUs > earlier.maxUs) since.maxUs = this.maxUs;
    if (this.minUs < earlier.minUs) since.minUs = this.minUs;
    return since;
  }

  /** @returns {EncodedHistogram} what was recorded since the last time; empties the histogram */
  take() {
    const encoded = this.encode();
    this.reset();
    return encoded;
  }

  /** @returns {EncodedHistogram} */
  encode() {
    const buckets = [];
    for (let index = 0; index < BUCKETS; index++) {
      if (this.counts[index] > 0) buckets.push(index, this.counts[index]);
    }
    const { count, sumUs, minUs, maxUs } = this;
    return { count, sumUs, minUs, maxUs, buckets };
  }
}

/** @param {EncodedHistogram[]} parts @returns {Histogram} */
export function mergeHistograms(parts) {
  const whole = new Histogram();
  for (const part of parts) whole.merge(part);
  return whole;
}

/** @param {number} us an integer of at most 32 bits */
function bucketOf(us) {
  const shift = Math.max(0, 31 - Math.clz32(us) - STEPS_LOG2);
  return (shift << STEPS_LOG2) + (us >>> shift);
}

/** @param {number} index @returns {number} µs */
export function middleOf(index) {
  if (index < 2 << STEPS_LOG2) return index;
  const shift = (index >>> STEPS_LOG2) - 1;
  const low = (index - (shift << STEPS_LOG2)) * 2 ** shift;
  return low + (2 ** shift - 1) / 2;
}
