/*
 * What several drones say, as one: counts are sums, percentiles are those of merged histograms, never averages.
 */
import { noCauses } from './drone/causes.js';
import { decode, emptyHistograms, MEASURES, percentilesOf } from './drone/histograms.js';

const MOST_SAMPLES = 8;
const GAUGES_AND_COUNTS = /** @type {const} */ ([
  'target',
  'open',
  'inFlight',
  'waiting',
  'overdue',
  'opened',
  'closed',
  'pings',
  'messages',
  'bytes',
]);
/** The cause of streams that went with their drone. No drone says it of itself. */
export const DRONE_DIED = 'drone died';

/** @typedef {import('./ask.js').Stats} Stats */
/** @typedef {import('./ask.js').Counts} Counts */

/**
 * @typedef {object} Total
 * @property {number} drones
 * @property {Counts} counts
 * @property {Record<string, import('./drone/histograms.js').Percentiles>} percentiles by connectMs, firstByteMs, latenessMs, deliveryMs
 * @property {Stats['samples']} samples the last few
 */

/** @returns {Counts} */
function noCounts() {
  const none = Object.fromEntries(GAUGES_AND_COUNTS.map((name) => [name, 0]));
  const causes = () => ({ ...noCauses(), [DRONE_DIED]: 0 });
  return /** @type {Counts} */ (/** @type {unknown} */ ({ ...none, failed: causes(), lost: causes() }));
}

/** @param {Stats[]} all @returns {Total} */
export function merge(all) {
  const counts = mergeCounts(all.map((one) => one.counts));
  const total = { drones: all.length, counts, samples: all.flatMap(({ samples }) => samples) };
  total.samples.splice(0, total.samples.length - MOST_SAMPLES);
  return { ...total, percentiles: mergedPercentiles(all) };
}

/** @param {Counts[]} all @returns {Counts} */
export function mergeCounts(all) {
  const sum = noCounts();
  for (const counts of all) add(sum, counts);
  return sum;
}

/** Adds only what it knows: drones may run elsewhere. @param {Counts} sum @param {Counts} counts */
function add(sum, counts) {
  for (const name of GAUGES_AND_COUNTS) sum[name] += counts[name];
  for (const name of /** @type {const} */ (['failed', 'lost'])) {
    for (const cause of Object.keys(sum[name])) sum[name][cause] += counts[name][cause] ?? 0;
  }
}

/** @param {Stats[]} all @returns {Total['percentiles']} */
function mergedPercentiles(all) {
  const merged = emptyHistograms();
  for (const { histograms, percentiles } of all) {
    for (const name of MEASURES) {
      if (percentiles[`${name}Ms`].count > 0) merged[name].add(decode(histograms[name]));
    }
  }
  return Object.fromEntries(MEASURES.map((name) => [`${name}Ms`, percentilesOf(merged[name])]));
}
