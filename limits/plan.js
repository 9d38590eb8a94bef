/*
 * How many workers hold the streams, from the limit of descriptors a process. Pure: the caller reads the
 * machine (`descriptorLimit` in lib/descriptors.js) and hands it in.
 */
import { IN_FLIGHT_SHARE, limitsOf, MOST_WORKERS, OWN_DESCRIPTORS } from '../lib/descriptors.js';
import { HoldfastError } from '../lib/errors.js';

/** What the primary has open for a worker: its channel, its stdout, its stderr. */
const PRIMARY_DESCRIPTORS_A_WORKER = 3;
/** Below this a worker is of no use. */
const FEWEST_DESCRIPTORS = 128;

/** How far a share of connections, drawn by lot, may lie above the mean: this many standard deviations. */
const SPREAD = 6;

/**
 * @typedef {object} Plan
 * @property {number} workers
 * @property {number} shards of each worker: parts of it that have a table of descriptors of their own
 * @property {number} capacity streams that one shard takes; past it 503
 * @property {number} connectionLimit connections that one shard takes, streams and others
 * @property {'shared' | 'round-robin'} scheduling who accepts in the http transport: the workers themselves, on one
 *   shared socket, or the primary, which hands connections round. The first is cheaper (docs/accept.md) but shares
 *   out unevenly, so where the descriptors of the workers are wanted to more than a half it is the second
 */

/**
 * @param {object} wish
 * @param {number | 'auto'} wish.workers
 * @param {number} wish.streams 0 for as many as the workers hold
 * @param {number} wish.cores
 * @param {number} wish.descriptorLimit descriptors a process, or a shard, may have (nofile)
 * @param {number} [wish.mostShards] of a worker; 1 where a worker has but one table of descriptors
 * @returns {Plan}
 * @throws {HoldfastError} NO_PLAN: which limit, what it is, what is needed, and the line to change
 */
export function planWorkers({ workers, streams, cores, descriptorLimit, mostShards = 1 }) {
  const { capacity, connectionLimit } = limitsOf(descriptorLimit);
  if (descriptorLimit < FEWEST_DESCRIPTORS) {
    throw noPlan(
      `a process may have ${descriptorLimit} descriptors (nofile); a worker needs ${FEWEST_DESCRIPTORS}: raise it with 'ulimit -n'`,
    );
  }
  const tables = tablesFor(streams, capacity, mostShards > 1);
  const needed = Math.ceil(tables / mostShards);
  const most = Math.min(MOST_WORKERS, Math.floor(connectionLimit / PRIMARY_DESCRIPTORS_A_WORKER));
  if (needed > most) {
    const each = capacity * mostShards;
    throw noPlan(
      `--streams ${streams} needs ${needed} workers of ${each} streams each (nofile is ${descriptorLimit}), and ${most} are the most here: raise nofile or ask for fewer streams`,
    );
  }
  const count = workers === 'auto' ? Math.max(cores, needed) : workers;
  if (count > most) {
    throw noPlan(
      `${count} workers do not fit: the primary may have ${descriptorLimit} descriptors (nofile), enough for ${most}; give fewer --workers, or raise nofile with 'ulimit -n'`,
    );
  }
  if (count < needed) throw tooFew({ streams, count, needed, capacity, descriptorLimit, mostShards });
  const shards = Math.max(1, Math.ceil(tables / count));
  const scheduling = streams > (count * capacity) / 2 ? 'round-robin' : 'shared';
  return { workers: count, shards, capacity, connectionLimit, scheduling };
}

/**
 * How many tables of descriptors hold so many streams.
 * @param {number} streams
 * @param {number} capacity of one
 * @param {boolean} byLot whether connections come to them by lot (the hash of SO_REUSEPORT), so that some get more
 * @returns {number}
 */
function tablesFor(streams, capacity, byLot) {
  let tables = Math.ceil(streams / capacity);
  if (!byLot || tables < 2) return tables;
  const mostOf = (/** @type {number} */ mean) => mean + SPREAD * Math.sqrt(mean);
  while (mostOf(streams / tables) > capacity) tables++;
  return tables;
}

/**
 * @param {{ streams: number, count: number, needed: number, capacity: number, descriptorLimit: number, mostShards: number }} plan
 */
function tooFew({ streams, count, needed, capacity, descriptorLimit, mostShards }) {
  const nofile = Math.ceil(streams / count / mostShards / (1 - IN_FLIGHT_SHARE)) + OWN_DESCRIPTORS;
  return noPlan(
    `--streams ${streams} does not fit --workers ${count}: a process may have ${descriptorLimit} descriptors (nofile), ` +
      `which hold ${capacity} streams; give --workers ${needed}, or set '* hard nofile ${nofile}' in /etc/security/limits.conf`,
  );
}

/** @param {string} line */
function noPlan(line) {
  return new HoldfastError('NO_PLAN', line);
}
