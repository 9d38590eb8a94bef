/*
 * Durations in HDR histograms, in µs: what drones measure, merged and never averaged. They travel in the compressed
 * form of HdrHistogram (V2, base64), which other tools of that family read too.
 */
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64 } from 'hdr-histogram-js';
import { middleOf } from '../../lib/histogram.js';

/** What is measured, by the name of its histogram. */
export const MEASURES = /** @type {const} */ (['connect', 'firstByte', 'lateness', 'delivery']);
/** An hour, in µs. */
const MOST_US = 3_600_000_000;
const DIGITS = 3;

/** @typedef {import('hdr-histogram-js').Histogram} Hdr */
/** @typedef {(typeof MEASURES)[number]} Measure */
/** @typedef {{ count: number, p50: number, p90: number, p99: number, max: number }} Percentiles in ms, but for the count */

/** @returns {Hdr} */
export function emptyHistogram() {
  return build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: MOST_US,
    numberOfSignificantValueDigits: DIGITS,
    useWebAssembly: false,
  });
}

/** @returns {Record<Measure, Hdr>} one of each */
export function emptyHistograms() {
  const made = MEASURES.map((name) => [name, emptyHistogram()]);
  return /** @type {Record<Measure, Hdr>} */ (Object.fromEntries(made));
}

/**
 * Adds what a dialer recorded.
 * @param {Hdr} histogram
 * @param {import('../../lib/histogram.js').EncodedHistogram} recorded
 */
export function addRecorded(histogram, { minUs, maxUs, buckets }) {
  for (let i = 0; i < buckets.length; i += 2) {
    const us = Math.round(Math.min(Math.max(middleOf(buckets[i]), minUs), maxUs));
    histogram.recordValueWithCount(Math.min(us, MOST_US), buckets[i + 1]);
  }
}

/** @param {Hdr} histogram @returns {string} */
export function encode(histogram) {
  return encodeIntoCompressedBase64(histogram);
}

/** @param {string} text @returns {Hdr} @throws {Error} where it is none */
export function decode(text) {
  return decodeFromCompressedBase64(text, 64, false);
}

/** @param {Hdr} histogram @returns {Percentiles} zeroes where it is empty */
export function percentilesOf(histogram) {
  // A percentile is the upper end of its bucket, which may lie above all that was recorded.
  const ms = (/** @type {number} */ percentile) =>
    Math.min(histogram.getValueAtPercentile(percentile), histogram.maxValue) / 1000;
  if (histogram.totalCount === 0) return { count: 0, p50: 0, p90: 0, p99: 0, max: 0 };
  return {
    count: histogram.totalCount,
    p50: ms(50),
    p90: ms(90),
    p99: ms(99),
    max: histogram.maxValue / 1000,
  };
}
