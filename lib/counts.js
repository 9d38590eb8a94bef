/*
 * Counters added up over all workers, dead ones included.
 */
import { COUNTS } from './counters.js';
import { HUB_COUNTS } from './hubcounters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from './reasons.js';

/** @typedef {import('./counters.js').CounterName | import('./hubcounters.js').HubCounterName} CounterName */

const COUNTERS = [...COUNTS, ...HUB_COUNTS]
  .filter(({ kind }) => kind === 'counter')
  .map(({ name }) => /** @type {CounterName} */ (name));

/**
 * @typedef {Record<CounterName, number> & OtherCounts} Counts
 *
 * @typedef {object} OtherCounts
 * @property {Record<import('./reasons.js').CloseReason, number>} closed
 * @property {Record<import('./reasons.js').RefusalStatus, number>} refused
 * @property {number} gcCount garbage collections of all kinds
 * @property {number} gcMs time in them
 * @property {number} lostWithWorkers streams of workers that died
 */

/** @returns {Counts} all at 0 */
export function noCounts() {
  return {
    ...zeroes(COUNTERS),
    closed: zeroes(CLOSE_REASONS),
    refused: zeroes(REFUSAL_STATUSES),
    gcCount: 0,
    gcMs: 0,
    lostWithWorkers: 0,
  };
}

/**
 * @param {Counts} counts added to in place
 * @param {import('./counters.js').Snapshot} snapshot
 */
export function addCounts(counts, snapshot) {
  for (const name of COUNTERS) counts[name] += snapshot[name];
  for (const reason of CLOSE_REASONS) counts.closed[reason] += snapshot.closed[reason];
  for (const status of REFUSAL_STATUSES) counts.refused[status] += snapshot.refused[status];
  counts.gcCount += totalOf(snapshot.gcCount);
  counts.gcMs += totalOf(snapshot.gcMs);
}

/**
 * @param {Counts} counts added to in place
 * @param {Counts} others of another server; it may be of another version, and not have all
 */
export function joinCounts(counts, others) {
  for (const [name, value] of Object.entries(others)) {
    const own = /** @type {any} */ (counts)[name];
    if (typeof own === 'number' && typeof value === 'number') /** @type {any} */ (counts)[name] = own + value;
    else if (own !== undefined && typeof value === 'object')
      for (const [key, count] of Object.entries(value)) own[key] = (own[key] ?? 0) + count;
  }
}

/** @param {Counts} counts @returns {number} streams lost when a worker or a shard failed */
export function lostOf({ lostWithWorkers, closed }) {
  return lostWithWorkers + closed.failed;
}

/** @param {Counts} counts @returns {number} streams closed, not counting lost ones */
export function closedOf({ closed }) {
  return totalOf(closed) - closed.failed;
}

/** @param {Record<string, number>} record @returns {number} the sum of its values */
export function totalOf(record) {
  return Object.values(record).reduce((total, value) => total + value, 0);
}
