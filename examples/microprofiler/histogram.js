/*
 * Durations of one key in nanoseconds. Everything is allocated when the histogram is created, so recording allocates nothing.
 *
 * The buckets are log-linear, as in HdrHistogram: values below 128 have a bucket each, and every doubling above that is cut into 64
 * equal steps, so a percentile is right to within 0.8 %. Count, sum, largest value and overruns are exact.
 */

const STEPS_LOG2 = 6;
const BUCKETS = 27 << STEPS_LOG2;
/** Longer durations (4.3 s) share the last bucket. */
const MOST = 0xffffffff;

/**
 * What was recorded, as it travels between processes.
 * @typedef {object} Recorded
 * @property {number} count
 * @property {number} sumNs
 * @property {number} minNs 0 when empty, as `maxNs`
 * @property {number} maxNs
 * @property {number} over how many were longer than the budget
 * @property {number[]} buckets index, count, index, count…: only those that hold something
 */

export class Histogram {
  /** @param {number} [budgetNs] */
  constructor(budgetNs = Number.POSITIVE_INFINITY) {
    this.budgetNs = budgetNs;
    this.counts = new Uint32Array(BUCKETS);
    this.count = 0;
    this.sumNs = 0;
    this.minNs = Number.POSITIVE_INFINITY;
    this.maxNs = 0;
    this.over = 0;
  }

  /** @param {number} ns below 0 counts as 0: the subtracted cost of measuring is an average */
  record(ns) {
    const value = Math.max(ns, 0);
    this.counts[bucketOf(Math.min(value, MOST))]++;
    this.count++;
    this.sumNs += value;
    if (value < this.minNs) this.minNs = value;
    if (value > this.maxNs) this.maxNs = value;
    if (value > this.budgetNs) this.over++;
  }

  get meanNs() {
    return this.count === 0 ? 0 : this.sumNs / this.count;
  }

  /** @param {number} fraction 0.99 for p99 @returns {number} ns; 0 when empty */
  percentile(fraction) {
    if (this.count === 0) return 0;
    const rank = Math.max(1, Math.ceil(fraction * this.count));
    let index = 0;
    for (let seen = this.counts[0]; seen < rank; seen += this.counts[index]) index++;
    if (index === BUCKETS - 1) return this.maxNs;
    return Math.min(Math.max(middleOf(index), this.minNs), this.maxNs);
  }

  /** @returns {Recorded} what was recorded since the last call; the histogram is empty afterwards */
  take() {
    const { count, sumNs, minNs, maxNs, over } = this;
    const buckets = [];
    for (let index = 0; index < BUCKETS; index++)
      if (this.counts[index] > 0) buckets.push(index, this.counts[index]);
    this.reset();
    return { count, sumNs, minNs: count === 0 ? 0 : minNs, maxNs, over, buckets };
  }

  reset() {
    this.counts.fill(0);
    this.count = 0;
    this.sumNs = 0;
    this.minNs = Number.POSITIVE_INFINITY;
    this.maxNs = 0;
    this.over = 0;
  }

  /** Adds what another histogram has recorded. @param {Recorded} recorded */
  merge({ count, sumNs, minNs, maxNs, over, buckets }) {
    for (let i = 0; i < buckets.length; i += 2) this.counts[buckets[i]] += buckets[i + 1];
    this.count += count;
    this.sumNs += sumNs;
    this.over += over;
    if (count === 0) return;
    this.minNs = Math.min(this.minNs, minNs);
    this.maxNs = Math.max(this.maxNs, maxNs);
  }
}

/** @param {number} value at most 32 bits */
function bucketOf(value) {
  const shift = Math.max(0, 31 - Math.clz32(value) - STEPS_LOG2);
  return (shift << STEPS_LOG2) + (value >>> shift);
}

/** @param {number} index of a bucket @returns {number} the value in its middle */
function middleOf(index) {
  if (index < 2 << STEPS_LOG2) return index;
  const shift = (index >>> STEPS_LOG2) - 1;
  const low = (index - (shift << STEPS_LOG2)) * 2 ** shift;
  return low + (2 ** shift - 1) / 2;
}
