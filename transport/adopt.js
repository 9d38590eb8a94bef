/*
 * How a response of node:http lets go of its connection, so that it can be held natively.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * The parts of node's objects that are not in its types: the handle, as every version from 20 to 26 has it.
 * @typedef {import('node:net').Socket & { encrypted?: boolean, _handle?: { fd: number, readStop: () => void } | null }} HandledSocket
 * @typedef {import('node:http').ServerResponse & { chunkedEncoding: boolean, stream?: object, _hasBody?: boolean }} HandledResponse
 */

/**
 * @param {import('node:http').ServerResponse} response
 * @returns {{ socket: HandledSocket, isEvents: boolean, isChunked: boolean }}
 * @throws {HoldfastError} NOT_ADOPTABLE, and why
 */
export function adoptable(response) {
  const { stream, writableEnded, _hasBody } = /** @type {HandledResponse} */ (response);
  const socket = /** @type {HandledSocket | null} */ (response.socket);
  if (stream) throw notAdoptable('it is of HTTP/2, where streams share a connection');
  if (writableEnded) throw notAdoptable('it has ended');
  if (!socket || socket.destroyed) throw notAdoptable('its connection is gone');
  if (socket.encrypted)
    throw notAdoptable('it is on TLS, whose keys are in JS: end TLS in front, in a proxy');
  if (!socket._handle || !(socket._handle.fd >= 0)) throw notAdoptable('its connection has no descriptor');
  if (!_hasBody || response.statusCode === 204 || response.statusCode === 304)
    throw notAdoptable('it has no body');
  if (response.hasHeader('content-length')) throw notAdoptable('it has a Content-Length, so it is no stream');
  if (response.hasHeader('content-encoding'))
    throw notAdoptable('it has a Content-Encoding: leave it out of compression');
  if (!response.headersSent) response.flushHeaders();
  return {
    socket,
    isEvents: /^text\/event-stream\b/i.test(String(response.getHeader('content-type') ?? '')),
    isChunked: /** @type {HandledResponse} */ (response).chunkedEncoding,
  };
}

/**
 * Waits until what was written has left, and reads no more.
 * @param {import('node:http').ServerResponse} response
 * @param {HandledSocket} socket
 * @returns {Promise<() => number>} reads the descriptor, which is valid while the socket lives
 * @throws {HoldfastError} NOT_ADOPTABLE where the connection goes meanwhile
 */
export async function letGo(response, socket) {
  await new Promise((resolve, reject) => {
    const gone = () => reject(notAdoptable('its connection is gone'));
    response.once('close', gone);
    // It is called once all that was written before is with the kernel.
    socket.write('', () => {
      response.off('close', gone);
      resolve(undefined);
    });
  });
  socket.pause();
  socket._handle?.readStop();
  return () => {
    if (!socket._handle || socket.destroyed) throw notAdoptable('its connection is gone');
    return socket._handle.fd;
  };
}

/** @param {string} why */
function notAdoptable(why) {
  return new HoldfastError('NOT_ADOPTABLE', `the response can't be adopted: ${why}`);
}
