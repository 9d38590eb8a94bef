/*
 * How many workers hold the streams, from the limit of descriptors a process. Pure: the caller reads the
 * machine (`descriptorLimit` below) and hands it in.
 */
import { readFileSync } from 'node:fs';
import { HoldfastError } from './errors.js';

/** Descriptors a worker has for itself: the event loop's, its channel to the primary, the listening socket. */
const OWN_DESCRIPTORS = 64;
/** The share of the rest that stays free for requests whose head is still coming in, and for refusals. */
const IN_FLIGHT_SHARE = 0.05;
/** What the primary has open for a worker: its channel, its stdout, its stderr. */
const PRIMARY_DESCRIPTORS_A_WORKER = 3;
/** Below this a worker is of no use. */
const FEWEST_DESCRIPTORS = 128;
/** The most workers that --workers takes and that a plan may have. */
export const MOST_WORKERS = 1024;

/**
 * @typedef {object} Plan
 * @property {number} workers
 * @property {number} capacity streams that one worker takes; past it 503
 * @property {number} connectionLimit connections that one worker takes, streams and others; past it they are cut
 * @property {'shared' | 'round-robin'} scheduling who accepts: the workers themselves, on one shared socket, or
 *   the primary, which hands connections round. The first is cheaper (docs/accept.md) but shares out unevenly,
 *   so where the descriptors of the workers are wanted to more than a half it is the second
 */

/**
 * @param {object} wish
 * @param {number | 'auto'} wish.workers
 * @param {number} wish.streams 0 for as many as the workers hold
 * @param {number} wish.cores
 * @param {number} wish.descriptorLimit descriptors a process may have (nofile)
 * @returns {Plan}
 * @throws {HoldfastError} NO_PLAN: which limit, what it is, what is needed, and the line to change
 */
export function planWorkers({ workers, streams, cores, descriptorLimit }) {
  const connectionLimit = descriptorLimit - OWN_DESCRIPTORS;
  const capacity = Math.floor(connectionLimit * (1 - IN_FLIGHT_SHARE));
  if (descriptorLimit < FEWEST_DESCRIPTORS) {
    throw new HoldfastError(
      'NO_PLAN',
      `a process may have ${descriptorLimit} descriptors (nofile); a worker needs ${FEWEST_DESCRIPTORS}: raise it with 'ulimit -n'`,
    );
  }
  const needed = Math.ceil(streams / capacity);
  const most = Math.min(MOST_WORKERS, Math.floor(connectionLimit / PRIMARY_DESCRIPTORS_A_WORKER));
  if (needed > most) {
    throw new HoldfastError(
      'NO_PLAN',
      `--streams ${streams} needs ${needed} workers of ${capacity} streams each (nofile is ${descriptorLimit}), and ${most} are the most here: raise nofile or ask for fewer streams`,
    );
  }
  const count = workers === 'auto' ? Math.max(cores, needed) : workers;
  if (count > most) {
    throw new HoldfastError(
      'NO_PLAN',
      `${count} workers do not fit: the primary may have ${descriptorLimit} descriptors (nofile), enough for ${most}; give fewer --workers, or raise nofile with 'ulimit -n'`,
    );
  }
  if (count < needed) throw tooFew(streams, count, needed, capacity, descriptorLimit);
  const scheduling = streams > (count * capacity) / 2 ? 'round-robin' : 'shared';
  return { workers: count, capacity, connectionLimit, scheduling };
}

/**
 * @param {number} streams @param {number} count @param {number} needed @param {number} capacity
 * @param {number} limit
 */
function tooFew(streams, count, needed, capacity, limit) {
  const nofile = Math.ceil(streams / count / (1 - IN_FLIGHT_SHARE)) + OWN_DESCRIPTORS;
  return new HoldfastError(
    'NO_PLAN',
    `--streams ${streams} does not fit --workers ${count}: a process may have ${limit} descriptors (nofile), ` +
      `which hold ${capacity} streams; give --workers ${needed}, or set '* hard nofile ${nofile}' in /etc/security/limits.conf`,
  );
}

/**
 * The descriptors this process may have. Node raises its soft limit to the hard one when it starts.
 * @returns {number} Infinity becomes the kernel's usual ceiling of 1,048,576, as does a system without /proc
 */
export function descriptorLimit() {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return found ? Number(found[1]) : 1_048_576;
  } catch {
    return 1_048_576;
  }
}
