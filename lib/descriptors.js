/*
 * File descriptors: how many a process may have, and how many streams one file descriptor table can hold.
 */
import { readFileSync } from 'node:fs';

/** What a worker needs for itself: the event loop, its channel to the primary, the listening socket. */
export const OWN_DESCRIPTORS = 64;
/** The share of the rest that is kept for requests whose head is still arriving, and for refusals. */
export const IN_FLIGHT_SHARE = 0.05;
/** The most connections that have an id (MOST_ROWS in native/core/src/id.rs); in a container nofile may be 2^30. */
export const MOST_CONNECTIONS = 2 ** 21;
/** The most workers that --workers accepts and that a plan may have. */
export const MOST_WORKERS = 1024;

/**
 * What one file descriptor table can hold: at least one, and no more than there are ids.
 * @param {number} descriptors that it may have (nofile)
 * @returns {{ capacity: number, connectionLimit: number }}
 */
export function limitsOf(descriptors) {
  const connectionLimit = Math.max(1, Math.min(descriptors - OWN_DESCRIPTORS, MOST_CONNECTIONS));
  const capacity = Math.max(1, Math.floor(connectionLimit * (1 - IN_FLIGHT_SHARE)));
  return { capacity, connectionLimit };
}

/**
 * The file descriptors this process may have. Node raises its soft limit to the hard one when it starts.
 * @returns {number} 1,048,576, the kernel's default maximum, if it is unlimited or there is no /proc
 */
export function descriptorLimit() {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return found ? Number(found[1]) : 1_048_576;
  } catch {
    return 1_048_576;
  }
}
