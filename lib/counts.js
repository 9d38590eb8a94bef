/*
 * What is counted, and added up over workers: those that live, and those that died.
 */
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from './reasons.js';

/** Those that are a number in a snapshot and in the sum alike. */
const PLAIN = /** @type {const} */ (['opened', 'cut', 'pings', 'deliveries', 'bytesWritten']);

/**
 * @typedef {object} Counts
 * @property {number} opened
 * @property {Record<import('./reasons.js').CloseReason, number>} closed
 * @property {Record<import('./reasons.js').RefusalStatus, number>} refused
 * @property {number} cut
 * @property {number} pings
 * @property {number} deliveries
 * @property {number} bytesWritten
 * @property {number} gcCount of all kinds
 * @property {number} gcMs of all kinds
 * @property {number} lost streams of workers that died
 */

/** @returns {Counts} all at 0 */
export function noCounts() {
  return {
    opened: 0,
    closed: zeroes(CLOSE_REASONS),
    refused: zeroes(REFUSAL_STATUSES),
    cut: 0,
    pings: 0,
    deliveries: 0,
    bytesWritten: 0,
    gcCount: 0,
    gcMs: 0,
    lost: 0,
  };
}

/**
 * @param {Counts} counts added to in place
 * @param {import('../primary/messages.js').Snapshot} snapshot
 */
export function addCounts(counts, snapshot) {
  for (const name of PLAIN) counts[name] += snapshot[name];
  for (const reason of CLOSE_REASONS) counts.closed[reason] += snapshot.closed[reason];
  for (const status of REFUSAL_STATUSES) counts.refused[status] += snapshot.refused[status];
  counts.gcCount += totalOf(snapshot.gcCount);
  counts.gcMs += totalOf(snapshot.gcMs);
}

/** @param {Record<string, number>} record @returns {number} the sum of its values */
export function totalOf(record) {
  return Object.values(record).reduce((total, value) => total + value, 0);
}
