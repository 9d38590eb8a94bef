/*
 * From raw samples to a frame: rates since the last frame, merged histograms, the cost of a stream. Pure.
 */
import { HISTOGRAMS } from '../lib/counters.js';
import { addCounts, closedOf, lostOf } from '../lib/counts.js';
import { mergeHistograms } from '../lib/histogram.js';
import { costsOf, memoryOf, watchSockets } from './cost.js';
import { addToDistributions } from './distributions.js';
import { FIELDS, METRICS_ONLY } from './fields.js';

/** @typedef {import('./collect.js').Sample} Sample */
/** @typedef {import('./collect.js').WorkerSample} WorkerSample */
/** @typedef {import('../lib/counters.js').Snapshot} Snapshot */

/** The counters that have a rate. */
const RATES = /** @type {const} */ (['opened', 'pings', 'deliveries', 'bytesWritten']);
/** The histograms of a snapshot. */
const ALL_HISTOGRAMS = /** @type {const} */ ([{ name: 'ticks', unit: 'µs' }, ...HISTOGRAMS]);

/** @typedef {(typeof RATES)[number] | 'ended'} RateName */
/** @typedef {(typeof ALL_HISTOGRAMS)[number]['name']} HistogramName */
/** @typedef {Record<HistogramName, import('../lib/histogram.js').Histogram>} Histograms */

/**
 * A worker's sample with its histograms decoded.
 * @typedef {WorkerSample & Histograms} WorkerReading
 */

/**
 * A sample, and everything derived from it and the reading before.
 * @typedef {object} Derived
 * @property {WorkerReading[]} workers
 * @property {import('../lib/counts.js').Counts} counts since the server started, dead workers included
 * @property {number} ended streams that were closed or lost
 * @property {Record<RateName, number>} rates per second
 * @property {{ userPercent: number, sysPercent: number, idlePercent: number } | null} cpu of the machine; 100 is one core
 * @property {Map<number, number>} cpuSecondsOf every process so far, by pid
 * @property {import('./distributions.js').Distributions} distributions since the server started
 * @property {import('./cost.js').Base} base memory at the last frame before the first stream
 * @property {import('./cost.js').Sockets | null} sockets
 * @property {number} peakStreams the most so far
 * @property {import('./cost.js').Costs} cost of one stream
 *
 * @typedef {Omit<Sample, 'workers'> & Derived & Histograms} Reading its histograms are those of all workers
 */

/**
 * The data of one second, as all views get it.
 * @typedef {object} Frame
 * @property {Record<string, import('./fields.js').Value>} totals by field
 * @property {{ pid: number, values: Record<string, number | null> }} primary the worker fields that it has
 * @property {FrameWorker[]} workers
 * @property {import('./distributions.js').Distributions} distributions
 * @property {import('./collect.js').NodeState | null} node how this server is connected to others; null if it is alone
 * @property {{ path: string, bytes: number, rowsDropped: number, problem: string } | null} log
 *
 * @typedef {object} FrameWorker
 * @property {number} id
 * @property {number} pid
 * @property {import('../lib/states.js').WorkerState | 'late'} state
 * @property {Record<string, number | null>} values by field
 */

/**
 * @param {Reading | null} previous
 * @param {Sample} sample
 * @returns {Reading}
 */
export function deriveReading(previous, sample) {
  const workers = sample.workers.map((worker) => ({ ...worker, ...histogramsOf(worker.unread) }));
  const unread = sample.workers.flatMap((worker) => worker.unread);
  const { counts, ended } = countsOf(sample);
  const streams = sample.workers.reduce((sum, { snapshot }) => sum + (snapshot?.streams ?? 0), 0);
  const peakStreams = Math.max(previous?.peakStreams ?? 0, streams);
  const base = counts.opened === 0 || !previous ? memoryOf(sample) : previous.base;
  const sockets = watchSockets(previous?.sockets ?? null, sample.host);
  const histograms = histogramsOf(unread);
  return {
    ...sample,
    workers,
    ...histograms,
    distributions: addToDistributions(previous?.distributions ?? null, histograms),
    counts,
    ended,
    rates: ratesOf(previous, { elapsedMs: sample.elapsedMs, counts, ended }),
    cpu: cpuOf(previous?.host ?? null, sample.host),
    cpuSecondsOf: cpuSecondsAfter(previous, sample),
    base,
    sockets,
    peakStreams,
    cost: costsOf({ sample, streams, peakStreams, base, sockets }),
  };
}

/** @param {Snapshot[]} snapshots @returns {Histograms} merged */
function histogramsOf(snapshots) {
  const merged = ALL_HISTOGRAMS.map(({ name, unit }) => [
    name,
    mergeHistograms(
      snapshots.map((one) => one[name]),
      unit,
    ),
  ]);
  return /** @type {Histograms} */ (Object.fromEntries(merged));
}

/** @param {Reading} reading @returns {Frame} */
export function frameOf(reading) {
  const { workers, primary, distributions, node, log } = reading;
  return {
    totals: Object.fromEntries(FIELDS.map(({ name, total }) => [name, rounded(total(reading))])),
    primary: { pid: primary.pid, values: primaryValues(primary) },
    workers: workers.map((worker) => ({
      id: worker.id,
      pid: worker.pid,
      state: worker.late ? 'late' : worker.state,
      values: valuesOf(worker),
    })),
    distributions,
    node,
    log,
  };
}

/** @param {Sample['primary']} primary */
function primaryValues({ cpuPercent, rssBytes, heapUsedBytes, heapTotalBytes }) {
  return { processCpuPercent: cpuPercent, rssBytes, heapUsedBytes, heapTotalBytes };
}

/** @param {WorkerReading} worker */
function valuesOf(worker) {
  /** @type {Record<string, number | null>} */
  const values = {};
  for (const { name, worker: read } of [...FIELDS, ...METRICS_ONLY]) {
    if (read) values[name] = /** @type {number | null} */ (rounded(read(worker)));
  }
  return values;
}

/** @param {import('./fields.js').Value} value @returns {import('./fields.js').Value} to three decimals */
function rounded(value) {
  return typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
}

/** @param {Sample} sample */
function countsOf({ workers, retired }) {
  const counts = structuredClone(retired);
  for (const { snapshot } of workers) if (snapshot) addCounts(counts, snapshot);
  return { counts, ended: closedOf(counts) + lostOf(counts) };
}

/**
 * @param {Reading | null} previous
 * @param {Pick<Reading, 'elapsedMs' | 'counts' | 'ended'>} now
 * @returns {Record<RateName, number>}
 */
function ratesOf(previous, now) {
  const seconds = previous ? (now.elapsedMs - previous.elapsedMs) / 1000 : 0;
  const rate = (/** @type {number} */ after, /** @type {number} */ before) =>
    seconds > 0 ? (after - before) / seconds : 0;
  const pairs = RATES.map((name) => [name, rate(now.counts[name], previous?.counts[name] ?? 0)]);
  return { ...Object.fromEntries(pairs), ended: rate(now.ended, previous?.ended ?? 0) };
}

/**
 * @param {Reading | null} previous @param {Sample} sample
 * @returns {Map<number, number>} including the last known values of processes that are gone
 */
function cpuSecondsAfter(previous, { primary, workers }) {
  const seconds = new Map(previous?.cpuSecondsOf);
  for (const { pid, usage } of [{ pid: primary.pid, usage: primary }, ...workers]) {
    if (usage) seconds.set(pid, usage.cpuSeconds);
  }
  return seconds;
}

/** @param {import('./host.js').Host | null} before @param {import('./host.js').Host | null} now */
function cpuOf(before, now) {
  if (!before || !now || now.cpu.total <= before.cpu.total) return null;
  const percent = (/** @type {'user' | 'sys' | 'idle'} */ name) =>
    (100 * now.cpu.cores * (now.cpu[name] - before.cpu[name])) / (now.cpu.total - before.cpu.total);
  return { userPercent: percent('user'), sysPercent: percent('sys'), idlePercent: percent('idle') };
}
