/*
 * The durations that drones measure: one histogram for each row of the table, merged and never averaged. They travel
 * as EncodedHistograms (lib/histogram.js), in JSON.
 */
import { Histogram, mergeHistograms } from '../../lib/histogram.js';
import { HISTOGRAMS } from './counters.js';

const UNIT = 'µs';

/** What is measured, by the name of its histogram. */
export const MEASURES = HISTOGRAMS.map(({ name }) => name);

/** @typedef {import('./counters.js').Measure} Measure */
/** @typedef {import('../../lib/histogram.js').EncodedHistogram} EncodedHistogram */
/** @typedef {{ count: number, p50: number, p90: number, p99: number, max: number }} Percentiles in ms, except for the count */

/** @returns {Histogram} */
export function emptyHistogram() {
  return new Histogram(UNIT);
}

/** @returns {Record<Measure, Histogram>} one of each */
export function emptyHistograms() {
  const made = MEASURES.map((name) => [name, emptyHistogram()]);
  return /** @type {Record<Measure, Histogram>} */ (Object.fromEntries(made));
}

/** @param {EncodedHistogram} encoded @returns {Histogram} @throws {TypeError} if its unit is not µs */
export function decode(encoded) {
  return mergeHistograms([encoded], UNIT);
}

/** @param {unknown} value from elsewhere @returns {value is EncodedHistogram} */
export function isEncoded(value) {
  const { unit, count, sum, min, max, buckets } = /** @type {EncodedHistogram} */ (value ?? {});
  const isNumeric = [count, sum, min, max].every((number) => typeof number === 'number');
  return unit === UNIT && isNumeric && Array.isArray(buckets);
}

/** @param {Histogram} histogram @returns {Percentiles} zeroes if it is empty */
export function percentilesOf(histogram) {
  return {
    count: histogram.count,
    p50: histogram.percentile(0.5, 'ms'),
    p90: histogram.percentile(0.9, 'ms'),
    p99: histogram.percentile(0.99, 'ms'),
    max: histogram.maximum('ms'),
  };
}
