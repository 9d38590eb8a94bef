/*
 * What is counted. Each thread has its own row of counters, so that counting needs no lock; `stats` adds them up.
 */
const NAMES = /** @type {const} */ ([
  'get_hits',
  'get_misses',
  'cmd_set',
  'cmd_flush',
  'cmd_touch',
  'cmd_meta',
  'touch_hits',
  'touch_misses',
  'delete_hits',
  'delete_misses',
  'incr_hits',
  'incr_misses',
  'decr_hits',
  'decr_misses',
  'cas_hits',
  'cas_misses',
  'cas_badval',
  'store_too_large',
  'store_no_memory',
  'bytes_read',
  'bytes_written',
  'total_connections',
  'rejected_connections',
]);

/** The place of each counter in a row. */
export const COUNTER = /** @type {Record<typeof NAMES[number], number>} */ (
  Object.fromEntries(NAMES.map((name, index) => [name, index]))
);

/** Words of the state that all threads share. */
export const SHARED = /** @type {const} */ ({ now: 0, connections: 1, verbosity: 2 });
const HEAD_BYTES = 64;

/** Seconds that an item's times count from, as memcached does: 0 means never, and 1 long ago. */
const BEFORE_START = 62;

/**
 * @typedef {object} Shared what all threads see besides the items
 * @property {ArrayBufferLike} memory
 * @property {Int32Array} words see SHARED
 * @property {Float64Array[]} rows counters of each thread
 * @property {number} startedAt Unix time that `now` counts from
 */

/** @param {number} threads @returns {ArrayBufferLike} */
export function sharedMemory(threads) {
  const bytes = HEAD_BYTES + threads * NAMES.length * 8;
  return threads > 1 ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
}

/** @param {ArrayBufferLike} memory @param {number} threads @param {number} startedAt @returns {Shared} */
export function openShared(memory, threads, startedAt) {
  const rows = Array.from(
    { length: threads },
    (_, thread) => new Float64Array(memory, HEAD_BYTES + thread * NAMES.length * 8, NAMES.length),
  );
  return { memory, words: new Int32Array(memory, 0, HEAD_BYTES / 4), rows, startedAt };
}

/** Unix time that the times of items count from. */
export const epoch = () => Math.floor(Date.now() / 1000) - BEFORE_START;

/** Sets the clock, every second: asking the system for each request would cost more. @param {Shared} shared */
export function startClock({ words, startedAt }) {
  const tick = () => {
    words[SHARED.now] = Math.floor(Date.now() / 1000) - startedAt;
  };
  tick();
  setInterval(tick, 250).unref();
}

/** @param {Shared} shared @param {keyof typeof COUNTER} name @returns {number} of all threads */
export const total = ({ rows }, name) => rows.reduce((sum, row) => sum + row[COUNTER[name]], 0);
