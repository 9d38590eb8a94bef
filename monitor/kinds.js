/*
 * The kinds of fields that the table in fields.js is made of. Each function returns one row.
 */
import { COUNTS } from '../lib/counters.js';
import { HUB_COUNTS } from '../lib/hubcounters.js';

/** @typedef {import('./fields.js').Field} Field */
/** @typedef {import('./fields.js').Value} Value */
/** @typedef {import('./frame.js').Reading} Reading */
/** @typedef {import('./frame.js').WorkerReading} WorkerReading */
/** @typedef {import('../lib/histogram.js').Histogram} Histogram */

/**
 * @param {string} name @param {Field['unit']} unit @param {Field['kind']} kind @param {string} help
 * @param {string} [metric]
 * @returns {Field}
 */
export function row(name, unit, kind, help, metric) {
  return {
    name,
    unit,
    kind,
    help,
    worker: null,
    total: () => null,
    metric: metric ? { name: metric, labels: {} } : null,
  };
}

/**
 * A value of the server or the machine as a whole.
 * @param {string} name @param {Field['unit']} unit @param {string} help @param {(reading: Reading) => Value} total
 * @param {string} [metric]
 * @returns {Field}
 */
export function whole(name, unit, help, total, metric) {
  return { ...row(name, unit, 'gauge', help, metric), total };
}

/**
 * A value of each worker; the total is the sum.
 * @param {string} name @param {Field['unit']} unit @param {Field['kind']} kind @param {string} help
 * @param {(worker: WorkerReading) => number | null} worker @param {string} [metric]
 * @returns {Field}
 */
export function sum(name, unit, kind, help, worker, metric) {
  return { ...row(name, unit, kind, help, metric), worker, total: (reading) => sumOver(reading, worker) };
}

/**
 * A counter of each worker; the total includes dead workers, so that it never falls.
 * @param {string} name @param {Field['unit']} unit @param {string} help
 * @param {(worker: WorkerReading) => number} worker @param {(reading: Reading) => Value} total
 * @param {string} [metric]
 * @returns {Field}
 */
export function counter(name, unit, help, worker, total, metric) {
  return { ...row(name, unit, 'counter', help, metric), worker, total };
}

/**
 * A row of COUNTS in lib/counters.js or of HUB_COUNTS in lib/hubcounters.js, which says what it means.
 * @param {import('../lib/counters.js').CountName | import('../lib/hubcounters.js').HubCountName} name @param {string} metric
 * @returns {Field}
 */
export function count(name, metric) {
  const found =
    /** @type {import('../lib/counters.js').CountRow | import('../lib/hubcounters.js').HubCountRow} */ (
      [...COUNTS, ...HUB_COUNTS].find((one) => one.name === name)
    );
  const unit = /bytes/i.test(name) ? 'bytes' : 'count';
  const read = (/** @type {WorkerReading} */ worker) => worker.snapshot?.[name] ?? 0;
  if (found.kind === 'gauge') return sum(name, unit, 'gauge', found.help, read, metric);
  return counter(name, unit, found.help, read, (reading) => reading.counts[found.name], metric);
}

/**
 * How fast a total grew since the last frame.
 * @param {string} name @param {Field['unit']} unit @param {string} help @param {import('./frame.js').RateName} of
 * @returns {Field}
 */
export function rate(name, unit, help, of) {
  return whole(name, unit, help, (reading) => reading.rates[of]);
}

/**
 * A figure of a distribution; the total comes from the merged histograms. Null if nothing was recorded.
 * @param {string} name @param {'ms' | 'µs'} unit @param {string} help @param {import('./frame.js').HistogramName} of
 * @param {(histogram: Histogram, unit: 'ms' | 'µs') => number} figure @param {string} metric
 * @returns {Field}
 */
export function merged(name, unit, help, of, figure, metric) {
  const read = (/** @type {WorkerReading | Reading} */ { [of]: histogram }) =>
    histogram.count === 0 ? null : figure(histogram, unit);
  return { ...row(name, unit, 'gauge', help, metric), worker: read, total: read };
}

/** @type {(histogram: Histogram, unit: 'ms' | 'µs') => number} */
export const mean = (histogram, unit) => histogram.mean(unit);

/** @type {(histogram: Histogram, unit: 'ms' | 'µs') => number} */
export const worst = (histogram, unit) => histogram.maximum(unit);

/** @param {number} percent @returns {(histogram: Histogram, unit: 'ms' | 'µs') => number} */
export const percentile = (percent) => (histogram, unit) => histogram.percentile(percent / 100, unit);

/**
 * @param {Reading} reading @param {(worker: WorkerReading) => number | null} value
 * @returns {number | null} null if no worker has one
 */
export function sumOver({ workers }, value) {
  const values = workers.map(value).filter((one) => one !== null);
  return values.length === 0 ? null : values.reduce((total, one) => total + one, 0);
}
