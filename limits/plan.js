/*
 * How many workers are needed, given the limit of file descriptors per process. Pure: the caller reads the machine
 * (`descriptorLimit` in lib/descriptors.js).
 */
import { IN_FLIGHT_SHARE, limitsOf, MOST_WORKERS, OWN_DESCRIPTORS } from '../lib/descriptors.js';
import { HoldfastError } from '../lib/errors.js';

/** What the primary has open per worker: its channel, its stdout, its stderr. */
const PRIMARY_DESCRIPTORS_A_WORKER = 3;
/** With fewer, a worker is useless. */
const FEWEST_DESCRIPTORS = 128;

/** How far a random share of the connections may be above the average, in standard deviations. */
const SPREAD = 6;

/**
 * @typedef {object} Plan
 * @property {number} workers
 * @property {number} shards per worker: parts of it with their own file descriptor table
 * @property {number} capacity streams per shard; above it 503
 * @property {number} connectionLimit connections per shard, streams and others
 * @property {'shared' | 'round-robin'} scheduling who accepts in the http transport: the workers themselves, on one
 *   shared socket, or the primary, which distributes connections. The first is cheaper (docs/accept.md) but uneven, so if
 *   more than half of the workers' file descriptors are needed it is the second
 */

/**
 * @param {object} wish
 * @param {number | 'auto'} wish.workers
 * @param {number} wish.streams 0 for as many as the workers can hold
 * @param {number} wish.cores
 * @param {number} wish.descriptorLimit file descriptors per process or shard (nofile)
 * @param {number} [wish.mostShards] per worker; 1 if a worker has only one file descriptor table
 * @returns {Plan}
 * @throws {HoldfastError} NO_PLAN: which limit, its value, what is needed, and what to change
 */
export function planWorkers({ workers, streams, cores, descriptorLimit, mostShards = 1 }) {
  const { capacity, connectionLimit } = limitsOf(descriptorLimit);
  if (descriptorLimit < FEWEST_DESCRIPTORS) {
    throw noPlan(
      `a process may have ${descriptorLimit} file descriptors (nofile), but a worker needs ${FEWEST_DESCRIPTORS}: raise it with 'ulimit -n'`,
    );
  }
  const tables = tablesFor(streams, capacity, mostShards > 1);
  const needed = Math.ceil(tables / mostShards);
  const most = Math.min(MOST_WORKERS, Math.floor(connectionLimit / PRIMARY_DESCRIPTORS_A_WORKER));
  if (needed > most) {
    const each = capacity * mostShards;
    throw noPlan(
      `--streams ${streams} needs ${needed} workers with ${each} streams each (nofile is ${descriptorLimit}), but ${most} is the maximum here: raise nofile or ask for fewer streams`,
    );
  }
  const count = workers === 'auto' ? Math.max(cores, needed) : workers;
  if (count > most) {
    throw noPlan(
      `${count} workers are too many: the primary may have ${descriptorLimit} file descriptors (nofile), enough for ${most}; use fewer --workers, or raise nofile with 'ulimit -n'`,
    );
  }
  if (count < needed) throw tooFew({ streams, count, needed, capacity, descriptorLimit, mostShards });
  const shards = Math.max(1, Math.ceil(tables / count));
  const scheduling = streams > (count * capacity) / 2 ? 'round-robin' : 'shared';
  return { workers: count, shards, capacity, connectionLimit, scheduling };
}

/**
 * How many file descriptor tables are needed for the streams.
 * @param {number} streams
 * @param {number} capacity of one
 * @param {boolean} isRandom whether connections are distributed at random (the hash of SO_REUSEPORT), so that some get more
 * @returns {number}
 */
function tablesFor(streams, capacity, isRandom) {
  let tables = Math.ceil(streams / capacity);
  if (!isRandom || tables < 2) return tables;
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
    `--streams ${streams} does not fit --workers ${count}: a process may have ${descriptorLimit} file descriptors (nofile), ` +
      `enough for ${capacity} streams; use --workers ${needed}, or set '* hard nofile ${nofile}' in /etc/security/limits.conf`,
  );
}

/** @param {string} line */
function noPlan(line) {
  return new HoldfastError('NO_PLAN', line);
}
