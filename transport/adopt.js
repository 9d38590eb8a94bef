/*
 * How a response of node:http, node:https or HTTP/2 becomes a stream: what it must be, and how it comes to rest. Where
 * the native core can take its connection, it leaves JS; else it is held in JS.
 */
import { HoldfastError } from '../lib/errors.js';
import { badArgument, shown } from './checks.js';
import { streamHeaders } from './responses.js';

/**
 * The parts of node's objects that its types don't have, the same in every version from 20 to 26, and what middleware
 * that compresses adds.
 * @typedef {import('node:net').Socket & { encrypted?: boolean, parser?: { incoming?: object | null } | null, _handle?: { fd: number, readStop: () => void } | null }} HandledSocket
 * @typedef {import('node:http').ServerResponse & { chunkedEncoding: boolean, stream?: import('node:http2').ServerHttp2Stream, flush?: () => void, _hasBody?: boolean, _header?: string | null }} HandledResponse
 */

/**
 * @typedef {object} Adoptable
 * @property {HandledSocket | null} socket null on HTTP/2, whose streams share one
 * @property {boolean} isChunked
 * @property {boolean} isCompressed middleware encodes what is written to it
 * @property {boolean} canLeaveJs its connection is a descriptor that carries plain bytes
 */

/** Responses that are being adopted, or were. @type {WeakSet<object>} */
const taken = new WeakSet();

/**
 * Checks what it can before anything is sent, sends the head, and checks that.
 * @param {import('node:http').ServerResponse} given
 * @param {import('../native/protocol.js').Encoding} encoding
 * @returns {Adoptable}
 * @throws {HoldfastError} NOT_ADOPTABLE with the reason, CLIENT_GONE, BAD_ARGUMENT
 */
export function adoptable(given, encoding) {
  const response = /** @type {HandledResponse} */ (given);
  if (typeof response?.flushHeaders !== 'function')
    throw badArgument(`adopt takes a ServerResponse (of Fastify: reply.raw), not ${shown(given)}`);
  if (taken.has(response)) throw notAdoptable('it was adopted already');
  if (response.writableEnded) throw notAdoptable('it has ended');
  const socket = response.stream ? null : socketOf(response);
  if (socket === null && response.stream?.destroyed !== false) throw clientGone();
  if (!hasBody(response)) throw notAdoptable('it has no body');
  checkLength((name) => response.hasHeader(name));
  if (!response.headersSent) setDefaults(response, encoding);
  // Does nothing where the head was sent. One that writeHead made is sent with the body, or now.
  response.flushHeaders();
  const header = headersOf(response);
  checkLength((name) => header(name) !== undefined);
  const isCompressed = isEncoded(header('content-encoding'));
  if (isCompressed && !Object.hasOwn(response, 'write'))
    throw notAdoptable('it has a Content-Encoding, and no middleware encodes what is written to it');
  const { chunkedEncoding: isChunked } = response;
  return { socket, isChunked, isCompressed, canLeaveJs: !isCompressed && isPlain(socket) };
}

/** @param {HandledResponse} response @param {import('../native/protocol.js').Encoding} encoding */
function setDefaults(response, encoding) {
  for (const [name, value] of Object.entries(streamHeaders(encoding)))
    if (name !== 'Connection' && !response.hasHeader(name)) response.setHeader(name, value);
}

/** @param {HandledSocket | null} socket @returns {boolean} */
function isPlain(socket) {
  return socket?._handle != null && !socket.encrypted && socket._handle.fd >= 0;
}

/** @param {HandledResponse} response */
function hasBody({ req, statusCode, stream, _hasBody }) {
  if (statusCode === 204 || statusCode === 304) return false;
  return stream ? req.method !== 'HEAD' : _hasBody;
}

/** @param {(name: string) => boolean} has */
function checkLength(has) {
  if (has('content-length')) throw notAdoptable('it has a Content-Length, so it is no stream');
}

/** @param {string | undefined} encoding of the content */
function isEncoded(encoding) {
  return encoding !== undefined && encoding.toLowerCase() !== 'identity';
}

/**
 * Reads the head as it was sent: on HTTP/1 what was given to `writeHead` alone is kept nowhere else.
 * @param {HandledResponse} response
 * @returns {(name: string) => string | undefined} the value of a header, by its name in lower case
 */
function headersOf(response) {
  if (response.stream) return (name) => response.getHeader(name)?.toString();
  const fields = (response._header ?? '').split('\r\n').slice(1);
  return (name) =>
    fields
      .find((field) => field.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim();
}

/** @param {HandledResponse} response @returns {HandledSocket} */
function socketOf(response) {
  if (response.writableEnded) throw notAdoptable('it has ended');
  const { socket } = response;
  // A response to a pipelined request has none until those before it have ended.
  if (!socket && response.req.socket?.destroyed === false)
    throw notAdoptable('the response before it on its connection has not ended');
  if (!socket || socket.destroyed) throw clientGone();
  return socket;
}

/**
 * Waits until what was written has left.
 * @param {import('node:http').ServerResponse} given
 * @param {HandledSocket | null} socket
 * @throws {HoldfastError} CLIENT_GONE, and NOT_ADOPTABLE where the connection turns out to have more to come
 */
export async function comeToRest(given, socket) {
  const response = /** @type {HandledResponse} */ (given);
  taken.add(response);
  try {
    if (socket === null) await drained(response);
    else await allWritten(response, socket);
  } catch (error) {
    taken.delete(response);
    throw error;
  }
}

/** @param {import('node:http').ServerResponse} response that was not adopted after all */
export function giveBack(response) {
  taken.delete(response);
}

/** @param {HandledResponse} response @param {HandledSocket} socket */
async function allWritten(response, socket) {
  do await written(response, socket);
  while (socket.writableLength > 0);
  checkAtRest(response, socket);
}

/** @param {HandledResponse} response @param {HandledSocket} socket @returns {Promise<void>} */
function written(response, socket) {
  return new Promise((resolve, reject) => {
    const gone = () => reject(clientGone());
    response.once('close', gone);
    while (response.writableCorked > 0) response.uncork();
    // The callback comes once all that was written before is with the kernel.
    socket.write('', () => {
      response.off('close', gone);
      resolve();
    });
  });
}

/** @param {HandledResponse} response on HTTP/2 */
async function drained(response) {
  while (response.writableCorked > 0) response.uncork();
  while (response.writableLength > 0 && !response.stream?.destroyed)
    await new Promise((resolve) => setImmediate(resolve));
  if (response.writableEnded) throw notAdoptable('it has ended');
  if (response.stream?.destroyed !== false) throw clientGone();
}

/**
 * What node has read of the connection is lost to us, so it must be the request and no more.
 * @param {HandledResponse} response
 * @param {HandledSocket} socket
 */
function checkAtRest(response, socket) {
  if (socketOf(response) !== socket) throw clientGone();
  const { req } = response;
  if (!req.complete) throw notAdoptable('its request was not read to the end');
  const { incoming } = socket.parser ?? {};
  if (incoming && incoming !== req) throw notAdoptable('its client sent another request after it');
}

/**
 * Stops JS from reading a connection that the native core is about to take.
 * @param {HandledSocket} socket
 * @returns {() => number} reads the descriptor, which is valid while the socket lives
 */
export function stopReading(socket) {
  socket.pause();
  socket._handle?.readStop();
  return () => {
    if (!socket._handle || socket.destroyed) throw clientGone();
    return socket._handle.fd;
  };
}

/**
 * Takes a connection from node's parser of requests: nothing but empty lines may come on it from now on.
 * @param {HandledSocket} socket
 * @param {() => void} onMore called when something does
 */
export function watchForMore(socket, onMore) {
  socket.removeAllListeners('data');
  socket.on('data', (data) => {
    if (/[^\r\n]/.test(data.toString('latin1'))) onMore();
  });
  socket.setTimeout?.(0); // a connection of the application's own making may not have it
  socket.resume();
}

/** The usual case among those that can't be adopted: `adopt` does not fail because of it. */
function clientGone() {
  return new HoldfastError('CLIENT_GONE', 'the client has closed its connection');
}

/** @param {string} why */
function notAdoptable(why) {
  return new HoldfastError('NOT_ADOPTABLE', `the response can't be adopted: ${why}`);
}
