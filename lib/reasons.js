/*
 * Every way to end a stream, and every status a request can be refused with. Counters, fields and metrics are
 * made from these two lists.
 */

/** @typedef {'client-gone' | 'slow' | 'drain' | 'dead-peer' | 'over-capacity' | 'bad-request' | 'error'} CloseReason */

/** @type {readonly CloseReason[]} */
export const CLOSE_REASONS = [
  'client-gone', // the client closed or reset the connection
  'slow', // its backlog passed --max-backlog
  'drain', // the server is ending
  'dead-peer', // a write to it failed because nobody answers any more
  'over-capacity', // let go to make room
  'bad-request', // the client sent more on a connection that carries a stream
  'error', // anything else that broke it
];

/** @typedef {400 | 404 | 405 | 408 | 431 | 503 | 505} RefusalStatus */

/** @type {readonly RefusalStatus[]} */
export const REFUSAL_STATUSES = [400, 404, 405, 408, 431, 503, 505];

/**
 * One counter a row of a list, all at 0.
 * @template {string | number} Name
 * @param {readonly Name[]} names
 * @returns {Record<Name, number>}
 */
export function zeroes(names) {
  return /** @type {Record<Name, number>} */ (Object.fromEntries(names.map((name) => [name, 0])));
}
