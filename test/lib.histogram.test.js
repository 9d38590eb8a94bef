import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram, mergeHistograms } from '../lib/histogram.js';

/** @param {number[]} values @param {import('../lib/histogram.js').RecordedUnit} [unit] of the values */
function histogramOf(values, unit) {
  const histogram = new Histogram(unit);
  for (const value of values) histogram.record(value);
  return histogram;
}

test('a percentile is within 0.8 % of the exact one, from microseconds to an hour', () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const values = Array.from({ length: 20_000 }, () => 10 ** (random() * 9.5));
  const histogram = histogramOf(values);
  values.sort((a, b) => a - b);
  for (const fraction of [0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1]) {
    const exact = values[Math.ceil(fraction * values.length) - 1];
    const found = histogram.percentile(fraction);
    assert.ok(Math.abs(found - exact) <= exact * 0.008 + 0.6, `p${fraction}: ${found} instead of ${exact}`);
  }
});

/** @param {number} found @param {number} expected to within a bucket */
function assertClose(found, expected) {
  assert.ok(Math.abs(found - expected) <= expected * 0.008, `${found} instead of ${expected}`);
}

test('mean and maximum are exact, and an idle tick of 10 ms reads 10', () => {
  const histogram = histogramOf([10_000, 10_000, 10_000]);
  assert.equal(histogram.mean('ms'), 10);
  assert.equal(histogram.percentile(0.9, 'ms'), 10);
  assert.equal(histogramOf([1000, 2000, 40_123]).maximum('ms'), 40.123);
});

test('a figure can be read in another unit; without one it is in the unit recorded', () => {
  const histogram = histogramOf([2500], 'ns');
  assert.equal(histogram.unit, 'ns');
  assert.deepEqual(
    [histogram.mean(), histogram.mean('ns'), histogram.mean('µs'), histogram.maximum('ms')],
    [2500, 2500, 2.5, 0.0025],
  );
  assert.equal(histogram.percentile(0.5, 'µs'), 2.5);
  assert.equal(histogramOf([3]).mean('ns'), 3000);
});

test('histograms of different units are never added up', () => {
  assert.throws(
    () => new Histogram('µs').merge(histogramOf([1], 'ns').encode()),
    /of µs can't take one of ns/,
  );
  assert.throws(() => mergeHistograms([histogramOf([1]).encode()], 'ns'), TypeError);
  assert.throws(() => histogramOf([1]).less(histogramOf([1], 'ns')), TypeError);
  assert.equal(mergeHistograms([], 'ns').unit, 'ns');
});

test('an empty histogram reads 0, a negative value counts as 0, a huge one as the largest possible', () => {
  assert.equal(new Histogram().percentile(0.5), 0);
  assert.equal(new Histogram().mean(), 0);
  assert.equal(histogramOf([-3]).maximum(), 0);
  assert.equal(histogramOf([1e15]).maximum(), 0xffffffff);
});

test('percentiles of the whole come from merged counts, not from averaged percentiles', () => {
  const fast = histogramOf(Array(990).fill(10_000)).take();
  const slow = histogramOf(Array(10).fill(1_000_000)).take();
  const whole = mergeHistograms([fast, slow]);
  assert.equal(whole.count, 1000);
  assertClose(whole.percentile(0.99), 10_000);
  assertClose(whole.percentile(0.995), 1_000_000);
  assert.equal(whole.mean('ms'), 19.9);
});

test('a taken histogram survives JSON, and the one it was taken from is empty', () => {
  const histogram = histogramOf([1000, 5000, 5000, 300_000]);
  const copy = mergeHistograms([JSON.parse(JSON.stringify(histogram.take()))]);
  assertClose(copy.percentile(0.5, 'ms'), 5);
  assert.equal(copy.maximum('ms'), 300);
  assert.equal(copy.min, 1000);
  assert.equal(histogram.count, 0);
  assert.deepEqual(histogram.take().buckets, []);
});

test('the values between two readings have percentiles of their own, and an exact maximum if it is a new one', () => {
  const histogram = histogramOf([1000, 2000, 400_000]);
  const before = mergeHistograms([histogram.encode()]);
  for (const us of [10_000, 10_000, 30_000]) histogram.record(us);
  const quiet = mergeHistograms([histogram.encode()]);
  const between = quiet.less(before);
  assert.equal(between.count, 3);
  assertClose(between.percentile(0.5), 10_000);
  assertClose(between.maximum(), 30_000);
  assertClose(between.min, 10_000);
  assertClose(between.mean(), 50_000 / 3);
  histogram.record(500_123);
  assert.equal(histogram.less(quiet).maximum(), 500_123);
  assert.equal(quiet.less(quiet).count, 0);
});

test('values at or below bounds are counted in any unit', () => {
  const histogram = new Histogram('µs');
  for (const us of [0, 1, 990, 1010, 5_000_000]) histogram.record(us);
  assert.deepEqual(histogram.upTo([0.000001, 0.001, 1, 10], 's'), [2, 3, 4, 5]);
  assert.deepEqual(new Histogram('ns').upTo([1, 2], 's'), [0, 0]);
});
