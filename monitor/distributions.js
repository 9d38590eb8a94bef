/*
 * The histograms of Prometheus: every duration since the server started, workers that died included, so that buckets never
 * fall. The gauges next to them (p99 and others) are those of one frame, and can't be aggregated.
 */
import { HISTOGRAMS } from '../lib/counters.js';

/** Upper bounds of the buckets, s. An idle tick of the default interval is 10 ms, hence the bounds just above it. */
const TICK_BOUNDS = [0.001, 0.002, 0.005, 0.0105, 0.0125, 0.015, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const LATENESS_BOUNDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const CPU_BOUNDS = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2];

/** @typedef {import('./frame.js').HistogramName} HistogramName */

/** @type {{ of: HistogramName, metric: string, bounds: number[], help: string }[]} */
export const DISTRIBUTIONS = [
  distribution('ticks', 'holdfast_tick_seconds', TICK_BOUNDS, 'ticks of the workers'),
  distribution('lateness', 'holdfast_ping_lateness_seconds', LATENESS_BOUNDS),
  distribution('openCpu', 'holdfast_open_cpu_seconds', CPU_BOUNDS),
  distribution('pingCpu', 'holdfast_ping_cpu_seconds', CPU_BOUNDS),
  distribution('deliveryCpu', 'holdfast_delivery_cpu_seconds', CPU_BOUNDS),
];

/**
 * @param {HistogramName} of @param {string} metric @param {number[]} bounds
 * @param {string} [help] by default that of the counters' table
 */
function distribution(of, metric, bounds, help = HISTOGRAMS.find(({ name }) => name === of)?.help ?? '') {
  return { of, metric, bounds, help };
}

/**
 * @typedef {object} Distribution
 * @property {number[]} counts values at or below each bound
 * @property {number} count all of them
 * @property {number} sum s
 *
 * @typedef {Record<string, Distribution>} Distributions by metric
 */

/**
 * @param {Distributions | null} before null at the first frame
 * @param {import('./frame.js').Histograms} histograms of one frame
 * @returns {Distributions} since the start
 */
export function addToDistributions(before, histograms) {
  const pairs = DISTRIBUTIONS.map(({ of, metric, bounds }) => {
    const found = histograms[of];
    const { counts, count, sum } = before?.[metric] ?? { counts: bounds.map(() => 0), count: 0, sum: 0 };
    const fresh = found.upTo(bounds, 's');
    return [
      metric,
      {
        counts: counts.map((one, i) => one + fresh[i]),
        count: count + found.count,
        sum: sum + found.mean('s') * found.count,
      },
    ];
  });
  return Object.fromEntries(pairs);
}
