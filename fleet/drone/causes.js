/*
 * Every way a stream of a drone fails to open or is lost. The native dialer counts them in this order
 * (native/core/src/dial).
 */

/** @typedef {'refused' | 'unreachable' | 'timeout' | 'no-port' | 'descriptors' | 'reset' | 'closed' | 'close-1001' | 'close-1008' | 'close-1012' | 'close-1013' | 'close-other' | 'unauthorized' | 'forbidden' | 'too-many' | 'unavailable' | 'status' | 'unexpected' | 'certificate' | 'handshake' | 'tls-alert' | 'bad-record' | 'truncated' | 'other'} Cause */

/**
 * `timeout`: connecting or answering took too long, or the peer is dead; `closed`: the server ended the stream; `close-1001` and so on: it
 * closed a WebSocket with this code, `close-other`: with another one than 1000;
 * `unauthorized`, `forbidden`, `too-many`, `unavailable`: status 401, 403, 429, 503; `status`: another one than 200;
 * `unexpected`: bytes that no stream of a Holdfast server contains; `certificate`: that of the server was not accepted; `handshake`:
 * TLS was not possible for another reason; `tls-alert`: the server reported a failure of TLS; `bad-record`: it sent something that is
 * not a valid TLS record; `truncated`: a TLS connection ended without a close_notify; `no-port`: no local port was
 * free; `descriptors`: the process reached its limit of file descriptors.
 * @type {Cause[]}
 */
export const CAUSES = [
  'refused',
  'unreachable',
  'timeout',
  'no-port',
  'descriptors',
  'reset',
  'closed',
  'close-1001',
  'close-1008',
  'close-1012',
  'close-1013',
  'close-other',
  'unauthorized',
  'forbidden',
  'too-many',
  'unavailable',
  'status',
  'unexpected',
  'certificate',
  'handshake',
  'tls-alert',
  'bad-record',
  'truncated',
  'other',
];

/** @type {Record<string, Cause>} */
const BY_CODE = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'timeout',
  EADDRNOTAVAIL: 'no-port',
  EADDRINUSE: 'no-port',
  EMFILE: 'descriptors',
  ENFILE: 'descriptors',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
};

/** @type {Record<string, Cause>} */
const BY_STATUS = { 401: 'unauthorized', 403: 'forbidden', 429: 'too-many', 503: 'unavailable' };

/** @param {string} status other than 200 @returns {Cause} */
export function causeOfStatus(status) {
  return BY_STATUS[status] ?? 'status';
}

/** @param {string} code of a system error @returns {Cause} */
export function causeOf(code) {
  return BY_CODE[code] ?? 'other';
}

/** @returns {Record<Cause, number>} a count of 0 for each */
export function noCauses() {
  return /** @type {Record<Cause, number>} */ (Object.fromEntries(CAUSES.map((cause) => [cause, 0])));
}

/** @param {Record<string, number>} counts @returns {number} */
export function sumOf(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
