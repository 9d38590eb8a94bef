/*
 * Merges the stats of several drones: counts are sums, percentiles come from merged histograms and are never averaged.
 */
import { noCauses } from './drone/causes.js';
import { COUNTS } from './drone/counters.js';
import { emptyHistograms, MEASURES, percentilesOf } from './drone/histograms.js';

const MOST_SAMPLES = 8;
/** What a drone knows of its streams besides what its dialer counts. */
const GAUGES = /** @type {const} */ ([
  'target',
  'waiting',
  ...COUNTS.filter(({ kind }) => kind === 'gauge').map(({ name }) => name),
]);
const NUMBERS = /** @type {const} */ (['target', 'waiting', ...COUNTS.map(({ name }) => name)]);
/** The cause of streams that were lost with their drone. No drone reports it itself. */
export const DRONE_DIED = 'drone died';

/** @typedef {import('./ask.js').Stats} Stats */
/** @typedef {import('./ask.js').Counts} Counts */
/** @typedef {import('./drone/dial.js').ServerCounts} ServerCounts */

/**
 * @typedef {object} Total
 * @property {number} drones
 * @property {Counts} counts
 * @property {Record<string, import('./drone/histograms.js').Percentiles>} percentiles by connectMs, firstByteMs, latenessMs, deliveryMs
 * @property {Stats['samples']} samples the last few
 * @property {ServerCounts[]} servers if there are several
 */

/** @returns {Partial<Counts>} the gauges, all 0 */
export function noGauges() {
  return Object.fromEntries(GAUGES.map((name) => [name, 0]));
}

/** @returns {Counts} */
function noCounts() {
  const none = Object.fromEntries(NUMBERS.map((name) => [name, 0]));
  const causes = () => ({ ...noCauses(), [DRONE_DIED]: 0 });
  return /** @type {Counts} */ (/** @type {unknown} */ ({ ...none, failed: causes(), lost: causes() }));
}

/** @param {Stats[]} all @returns {Total} */
export function merge(all) {
  const counts = mergeCounts(all.map((one) => one.counts));
  const servers = mergeServers(all.flatMap((one) => one.servers ?? []));
  const total = { drones: all.length, counts, servers, samples: all.flatMap(({ samples }) => samples) };
  total.samples.splice(0, total.samples.length - MOST_SAMPLES);
  return { ...total, percentiles: mergedPercentiles(all) };
}

/** @param {Counts[]} all @returns {Counts} */
export function mergeCounts(all) {
  const sum = noCounts();
  for (const counts of all) add(sum, counts);
  return sum;
}

/** @param {ServerCounts[]} all @returns {ServerCounts[]} one for each name, in the order in which they come first */
function mergeServers(all) {
  /** @type {Map<string, ServerCounts>} */
  const sums = new Map();
  for (const { name, open, opened, failed, lost } of all) {
    const sum = sums.get(name) ?? { name, open: 0, opened: 0, failed: 0, lost: 0 };
    sum.open += open;
    sum.opened += opened;
    sum.failed += failed;
    sum.lost += lost;
    sums.set(name, sum);
  }
  return [...sums.values()];
}

/** Adds only names it knows, since drones may run elsewhere. @param {Counts} sum @param {Counts} counts */
function add(sum, counts) {
  for (const name of NUMBERS) sum[name] += counts[name] ?? 0;
  for (const name of /** @type {const} */ (['failed', 'lost'])) {
    for (const cause of Object.keys(sum[name])) sum[name][cause] += counts[name][cause] ?? 0;
  }
}

/** @param {Stats[]} all @returns {Total['percentiles']} */
function mergedPercentiles(all) {
  const merged = emptyHistograms();
  for (const { histograms } of all) {
    for (const name of MEASURES) merged[name].merge(histograms[name]);
  }
  return Object.fromEntries(MEASURES.map((name) => [`${name}Ms`, percentilesOf(merged[name])]));
}
