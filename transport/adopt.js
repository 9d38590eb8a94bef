/*
 * How a response of node:http lets go of its connection, so that it can be held natively.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * The parts of node's objects that are not in its types: the handle, as every version from 20 to 26 has it.
 * @typedef {import('node:net').Socket & { encrypted?: boolean, parser?: { incoming?: object | null } | null, _handle?: { fd: number, readStop: () => void } | null }} HandledSocket
 * @typedef {import('node:http').ServerResponse & { chunkedEncoding: boolean, stream?: object, _hasBody?: boolean, _header?: string | null }} HandledResponse
 */

/** Responses that are on their way, or held already. @type {WeakSet<object>} */
const taken = new WeakSet();

/**
 * Checks all that can be before anything is sent, sends the head, and checks that.
 * @param {import('node:http').ServerResponse} response
 * @returns {{ socket: HandledSocket, isEvents: boolean, isChunked: boolean }}
 * @throws {HoldfastError} NOT_ADOPTABLE, and why
 */
export function adoptable(response) {
  const { stream, _hasBody } = /** @type {HandledResponse} */ (response);
  if (taken.has(response)) throw notAdoptable('it was adopted already');
  if (stream) throw notAdoptable('it is of HTTP/2, where streams share a connection');
  const socket = socketOf(response);
  if (socket.encrypted)
    throw notAdoptable('it is on TLS, whose keys are in JS: end TLS in front, in a proxy');
  if (!socket._handle || !(socket._handle.fd >= 0)) throw notAdoptable('its connection has no descriptor');
  if (!_hasBody || response.statusCode === 204 || response.statusCode === 304)
    throw notAdoptable('it has no body');
  checkHeaders((name) => response.hasHeader(name));
  // Does nothing where the head has left; one that writeHead made waits for it, or for a body.
  response.flushHeaders();
  const header = headerIn(/** @type {HandledResponse} */ (response)._header ?? '');
  checkHeaders((name) => header(name) !== undefined);
  return {
    socket,
    isEvents: isEventStream(header('content-type') ?? ''),
    isChunked: /** @type {HandledResponse} */ (response).chunkedEncoding,
  };
}

/** @param {string} contentType */
export function isEventStream(contentType) {
  return /^text\/event-stream\b/i.test(contentType);
}

/** @param {(name: string) => boolean} has */
function checkHeaders(has) {
  if (has('content-length')) throw notAdoptable('it has a Content-Length, so it is no stream');
  if (has('content-encoding')) throw notAdoptable('it has a Content-Encoding: leave it out of compression');
}

/**
 * Reads the head as it was sent: what is given to `writeHead` alone is kept nowhere else.
 * @param {string} head
 * @returns {(name: string) => string | undefined} the value of a header, by its name in lower case
 */
function headerIn(head) {
  const fields = head.split('\r\n').slice(1);
  return (name) =>
    fields
      .find((field) => field.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim();
}

/** @param {import('node:http').ServerResponse} response @returns {HandledSocket} */
function socketOf(response) {
  if (response.writableEnded) throw notAdoptable('it has ended');
  const { socket } = response;
  // A response to a pipelined request has none until those before it have ended.
  if (!socket && response.req.socket?.destroyed === false)
    throw notAdoptable('the response before it on its connection has not ended');
  if (!socket || socket.destroyed) throw notAdoptable('its connection is gone');
  return socket;
}

/**
 * Waits until what was written has left, and reads no more.
 * @param {import('node:http').ServerResponse} response
 * @param {HandledSocket} socket
 * @returns {Promise<{ fd: () => number, takeBack: () => void }>} `fd` reads the descriptor, which is valid while the
 *   socket lives; `takeBack` makes the response what it was
 * @throws {HoldfastError} NOT_ADOPTABLE where the connection goes meanwhile, or turns out not to be at rest
 */
export async function letGo(response, socket) {
  taken.add(response);
  try {
    do await written(response, socket);
    while (socket.writableLength > 0);
    checkAtRest(response, socket);
  } catch (error) {
    taken.delete(response);
    throw error;
  }
  socket.pause();
  socket._handle?.readStop();
  return {
    fd: () => {
      if (!socket._handle || socket.destroyed) throw notAdoptable('its connection is gone');
      return socket._handle.fd;
    },
    takeBack: () => {
      taken.delete(response);
      socket.resume();
    },
  };
}

/** @param {import('node:http').ServerResponse} response @param {HandledSocket} socket @returns {Promise<void>} */
function written(response, socket) {
  return new Promise((resolve, reject) => {
    const gone = () => reject(notAdoptable('its connection is gone'));
    response.once('close', gone);
    while (response.writableCorked > 0) response.uncork();
    // It is called once all that was written before is with the kernel.
    socket.write('', () => {
      response.off('close', gone);
      resolve();
    });
  });
}

/**
 * What was read by node of the connection is lost to us, so that it must be the request and no more.
 * @param {import('node:http').ServerResponse} response
 * @param {HandledSocket} socket
 */
function checkAtRest(response, socket) {
  if (socketOf(response) !== socket) throw notAdoptable('its connection is gone');
  const { req } = response;
  if (!req.complete) throw notAdoptable('its request is not read to the end');
  const { incoming } = socket.parser ?? {};
  if (incoming && incoming !== req) throw notAdoptable('its client sent another request behind it');
}

/** @param {string} why */
function notAdoptable(why) {
  return new HoldfastError('NOT_ADOPTABLE', `the response can't be adopted: ${why}`);
}
