import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram, mergeHistograms } from '../lib/histogram.js';

/** @param {number[]} values ms */
function histogramOf(values) {
  const histogram = new Histogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

test('a percentile is within 0.8 % of the exact one, from microseconds to an hour', () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const values = Array.from({ length: 20_000 }, () => 0.001 * 10 ** (random() * 9.5));
  const histogram = histogramOf(values);
  values.sort((a, b) => a - b);
  for (const fraction of [0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1]) {
    const exact = values[Math.ceil(fraction * values.length) - 1];
    const found = histogram.percentileMs(fraction);
    assert.ok(Math.abs(found - exact) <= exact * 0.008 + 0.0006, `p${fraction}: ${found} against ${exact}`);
  }
});

/** @param {number} found @param {number} expected ms, to within a bucket */
function assertClose(found, expected) {
  assert.ok(Math.abs(found - expected) <= expected * 0.008, `${found} against ${expected}`);
}

test('mean and max are exact, and an idle tick of 10 ms reads 10', () => {
  const histogram = histogramOf([10, 10, 10]);
  assert.equal(histogram.meanMs(), 10);
  assert.equal(histogram.percentileMs(0.9), 10);
  assert.equal(histogramOf([1, 2, 40.123]).maxMs(), 40.123);
});

test('an empty histogram reads 0, a negative value counts as 0, a huge one as the most it holds', () => {
  assert.equal(new Histogram().percentileMs(0.5), 0);
  assert.equal(new Histogram().meanMs(), 0);
  assert.equal(histogramOf([-3]).maxMs(), 0);
  assert.equal(histogramOf([1e12]).maxMs(), 0xffffffff / 1000);
});

test('percentiles of the whole come from merged counts, not from averaged percentiles', () => {
  const fast = histogramOf(Array(990).fill(10)).take();
  const slow = histogramOf(Array(10).fill(1000)).take();
  const whole = mergeHistograms([fast, slow]);
  assert.equal(whole.count, 1000);
  assertClose(whole.percentileMs(0.99), 10);
  assertClose(whole.percentileMs(0.995), 1000);
  assert.equal(whole.meanMs(), 19.9);
});

test('what is taken survives JSON and leaves the histogram empty', () => {
  const histogram = histogramOf([1, 5, 5, 300]);
  const copy = mergeHistograms([JSON.parse(JSON.stringify(histogram.take()))]);
  assertClose(copy.percentileMs(0.5), 5);
  assert.equal(copy.maxMs(), 300);
  assert.equal(copy.minUs, 1000);
  assert.equal(histogram.count, 0);
  assert.deepEqual(histogram.take().buckets, []);
});

test('what was recorded between two times has percentiles of its own, and an exact worst where it was the worst of all', () => {
  const histogram = histogramOf([1, 2, 400]);
  const before = mergeHistograms([histogram.encode()]);
  for (const ms of [10, 10, 30]) histogram.record(ms);
  const quiet = mergeHistograms([histogram.encode()]);
  const between = quiet.less(before);
  assert.equal(between.count, 3);
  assertClose(between.percentileMs(0.5), 10);
  assertClose(between.maxMs(), 30);
  assertClose(between.minUs / 1000, 10);
  assertClose(between.meanMs(), 50 / 3);
  histogram.record(500.123);
  assert.equal(histogram.less(quiet).maxMs(), 500.123);
  assert.equal(quiet.less(quiet).count, 0);
});
