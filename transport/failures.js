/*
 * What errors of Node's connections and parser mean: the status to refuse a request with, the reason that a stream ended,
 * or why nothing can listen on a port. And the errors that a Hold has for several callers.
 */
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';

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

/** Why `listen` failed. @type {Record<string, string>} */
const LISTEN_FAILURES = {
  EADDRINUSE: 'another program is listening there',
  EACCES: 'permission denied (ports below 1024 need root)',
  EADDRNOTAVAIL: 'it is not an address of this machine',
  ENOTFOUND: 'no address is known for this name',
  EAI_AGAIN: 'the name can not be looked up now',
};

/**
 * @param {unknown} error of `listen`
 * @param {string} host '' for every address of the machine
 * @param {number} port
 * @returns {unknown} a system error that names them; an error of ours as it is
 */
export function listenFailure(error, host, port) {
  const code = codeOf(error);
  if (error instanceof HoldfastError || code === '') return error;
  const where = host === '' ? `port ${port}` : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const line = `can't listen on ${where}: ${LISTEN_FAILURES[code] ?? messageOf(error)} (${code})`;
  const { syscall = 'listen' } = /** @type {NodeJS.ErrnoException} */ (error);
  return Object.assign(new Error(line, { cause: error }), { code, syscall, address: host, port });
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

/** @param {string} why */
export function overCapacity(why) {
  return new HoldfastError('OVER_CAPACITY', `the stream can't be held: ${why}`);
}

export function closed() {
  return new HoldfastError('CLOSED', 'this Hold was closed: create a new one');
}
