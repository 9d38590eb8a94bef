/*
 * A histogram of durations that can be sent between processes and merged: percentiles of the whole come from
 * merged counts, never from averaged percentiles. It records integers of one unit, which is part of it.
 *
 * The buckets are log-linear, as in HdrHistogram: values below 256 have a bucket each, and every doubling above that
 * is cut into 128 equal steps, so that a value is known to within 0.8 %. The 32 bits of a value (71 minutes of µs,
 * 4.3 seconds of ns) take 3,328 buckets.
 */

const STEPS_LOG2 = 7;
const BUCKETS = 26 << STEPS_LOG2;
const MOST = 0xffffffff;

const NANOSECONDS = { ns: 1, µs: 1000, ms: 1_000_000, s: 1_000_000_000 };

/** @typedef {'ns' | 'µs'} RecordedUnit what a histogram can hold */
/** @typedef {keyof typeof NANOSECONDS} Unit what it can be read in */

/**
 * A histogram as it travels in a message: only the buckets that hold something, as index, count, index, count…
 * @typedef {object} EncodedHistogram
 * @property {RecordedUnit} unit of `sum`, `min` and `max`
 * @property {number} count
 * @property {number} sum
 * @property {number} min 0 when empty, as `max`
 * @property {number} max
 * @property {number[]} buckets
 */

export class Histogram {
  /** @param {RecordedUnit} [unit] */
  constructor(unit = 'µs') {
    this.unit = unit;
    this.counts = new Uint32Array(BUCKETS);
    this.count = 0;
    this.sum = 0;
    this.min = MOST;
    this.max = 0;
  }

  reset() {
    this.counts.fill(0);
    this.count = 0;
    this.sum = 0;
    this.min = MOST;
    this.max = 0;
  }

  /** @param {number} duration in the histogram's own unit; rounded, and a negative one counts as 0 */
  record(duration) {
    const value = Math.min(Math.max(Math.round(duration), 0), MOST);
    this.counts[bucketOf(value)]++;
    this.count++;
    this.sum += value;
    if (value < this.min) this.min = value;
    if (value > this.max) this.max = value;
  }

  /** @param {Unit} [unit] @returns {number} 0 when empty */
  mean(unit) {
    return this.count === 0 ? 0 : this.in(unit, this.sum / this.count);
  }

  /** @param {Unit} [unit] @returns {number} exact; 0 when empty */
  maximum(unit) {
    return this.in(unit, this.max);
  }

  /**
   * The value at or below which the fraction of all values lies, as the middle of its bucket.
   * @param {number} fraction 0 to 1, so 0.99 for p99
   * @param {Unit} [unit]
   * @returns {number} 0 when empty
   */
  percentile(fraction, unit) {
    if (this.count === 0) return 0;
    const middle = middleOf(this.bucketAt(Math.max(1, Math.ceil(fraction * this.count))));
    return this.in(unit, Math.min(Math.max(middle, this.min), this.max));
  }

  /**
   * @param {number[]} bounds smallest first
   * @param {Unit} unit of the bounds
   * @returns {number[]} how many values are at or below each bound, as far as a bucket tells (0.8 %)
   */
  upTo(bounds, unit) {
    const found = bounds.map(() => 0);
    for (let index = 0; index < BUCKETS; index++) {
      if (this.counts[index] === 0) continue;
      const value = this.in(unit, Math.min(Math.max(middleOf(index), this.min), this.max));
      const at = bounds.findIndex((bound) => value <= bound);
      if (at !== -1) found[at] += this.counts[index];
    }
    for (let i = 1; i < found.length; i++) found[i] += found[i - 1];
    return found;
  }

  /** @param {number} rank from 1 @returns {number} index of the bucket that holds the value of this rank */
  bucketAt(rank) {
    let seen = 0;
    let index = 0;
    for (; index < BUCKETS - 1; index++) {
      seen += this.counts[index];
      if (seen >= rank) break;
    }
    return index;
  }

  /** @param {Unit | undefined} unit @param {number} value in the own unit @returns {number} in the unit asked for */
  in(unit, value) {
    return unit && unit !== this.unit ? (value * NANOSECONDS[this.unit]) / NANOSECONDS[unit] : value;
  }

  /**
   * Adds what another process recorded.
   * @param {EncodedHistogram} other
   * @returns {this}
   * @throws {TypeError} if it has another unit
   */
  merge(other) {
    this.mustBe(other.unit);
    for (let i = 0; i < other.buckets.length; i += 2) this.counts[other.buckets[i]] += other.buckets[i + 1];
    this.count += other.count;
    this.sum += other.sum;
    if (other.count > 0) {
      this.min = Math.min(this.min, other.min);
      this.max = Math.max(this.max, other.max);
    }
    return this;
  }

  /**
   * @param {Histogram} earlier the same histogram, some time ago
   * @returns {Histogram} what was recorded since; its minimum and maximum are exact only if they are also those of the whole histogram
   */
  less(earlier) {
    this.mustBe(earlier.unit);
    const since = new Histogram(this.unit);
    since.count = this.count - earlier.count;
    since.sum = this.sum - earlier.sum;
    for (let index = 0; index < BUCKETS; index++) {
      since.counts[index] = this.counts[index] - earlier.counts[index];
      if (since.counts[index] === 0) continue;
      since.min = Math.min(since.min, middleOf(index));
      since.max = middleOf(index);
    }
    if (this.max > earlier.max) since.max = this.max;
    if (this.min < earlier.min) since.min = this.min;
    return since;
  }

  /** @param {RecordedUnit} unit */
  mustBe(unit) {
    if (unit !== this.unit) throw new TypeError(`a histogram of ${this.unit} can't take one of ${unit}`);
  }

  /** @returns {EncodedHistogram} what was recorded since the last call; empties the histogram */
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
    const { unit, count, sum, min, max } = this;
    return { unit, count, sum, min: count === 0 ? 0 : min, max, buckets };
  }
}

/**
 * @param {EncodedHistogram[]} parts
 * @param {RecordedUnit} [unit] of all of them
 * @returns {Histogram}
 */
export function mergeHistograms(parts, unit = 'µs') {
  const whole = new Histogram(unit);
  for (const part of parts) whole.merge(part);
  return whole;
}

/** @param {number} value an integer of at most 32 bits */
function bucketOf(value) {
  const shift = Math.max(0, 31 - Math.clz32(value) - STEPS_LOG2);
  return (shift << STEPS_LOG2) + (value >>> shift);
}

/** @param {number} index of a bucket @returns {number} the value in its middle */
export function middleOf(index) {
  if (index < 2 << STEPS_LOG2) return index;
  const shift = (index >>> STEPS_LOG2) - 1;
  const low = (index - (shift << STEPS_LOG2)) * 2 ** shift;
  return low + (2 ** shift - 1) / 2;
}
