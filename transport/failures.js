/*
 * What errors of Node's connections and parser mean: the status to refuse a request with, or the reason that a stream
 * ended.
 */

/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/** @param {string} code of an error @returns {import('../lib/reasons.js').RefusalStatus | 0} 0 if nobody is left to answer */
export function statusOfError(code) {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'HPE_INVALID_VERSION') return 505;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return code.startsWith('HPE_') ? 400 : 0;
}

/** @param {string} code of an error @returns {CloseReason} */
export function reasonOfError(code) {
  if (code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'bad-request';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'client-gone';
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return 'dead-peer';
  return 'error';
}

/**
 * Why a response closed, if it was not us who closed it.
 * @param {import('node:http').ServerResponse} response
 * @returns {CloseReason}
 */
export function reasonOfEnd(response) {
  if (response.writableEnded) return 'drain'; // by the application
  const { errored } = /** @type {{ errored?: Error & { code?: string } | null }} */ (
    response.req.socket ?? {}
  );
  return errored ? reasonOfError(errored.code ?? '') : 'client-gone';
}
