/*
 * Every reason for which a stream can end, and every status with which a request can be refused. Counters, fields and
 * metrics are generated from these two lists. Native has the same reasons in the same order (`Reason` in native/core/src/telemetry.rs).
 */

/** @typedef {'client-gone' | 'slow' | 'drain' | 'dead-peer' | 'over-capacity' | 'bad-request' | 'error' | 'failed' | 'expired' | 'revoked' | 'restarted' | 'tls-alert' | 'bad-record' | 'answered'} CloseReason */

/** @type {readonly CloseReason[]} */
export const CLOSE_REASONS = [
  'client-gone', // the client closed or reset the connection
  'slow', // its backlog exceeded --max-backlog
  'drain', // the server is shutting down
  'dead-peer', // a write failed because the other side no longer answers, or a WebSocket client did not answer pings
  'over-capacity', // there was no room for it
  'bad-request', // the client sent something on a connection that carries a stream, or something invalid on a WebSocket
  'error', // any other error on the connection
  'failed', // its shard failed
  'expired', // what allowed it was valid until then
  'revoked', // what allowed it was taken back
  'restarted', // what it followed has begun anew, so it can't be continued
  'tls-alert', // the client reported a failure of TLS
  'bad-record', // the client sent something that is not a valid TLS record
  'answered', // it was a poll, and has got its answer
];

/** @typedef {400 | 404 | 405 | 408 | 426 | 431 | 503 | 505} RefusalStatus */

/** @type {readonly RefusalStatus[]} */
export const REFUSAL_STATUSES = [400, 404, 405, 408, 426, 431, 503, 505];

/**
 * One counter for each name of a list, all at 0.
 * @template {string | number} Name
 * @param {readonly Name[]} names
 * @returns {Record<Name, number>}
 */
export function zeroes(names) {
  return /** @type {Record<Name, number>} */ (Object.fromEntries(names.map((name) => [name, 0])));
}
