/*
 * Turns a response of node:http, node:https or HTTP/2 into a stream: checks that it can be one, and waits until all that
 * was written to it has been sent. If the native core can take its connection, nothing of it stays in JS; otherwise it
 * is held in JS.
 */
import { HoldfastError } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { badArgument } from './checks.js';
import { isRelayed } from './relayed.js';
import { headOfStream } from './responses.js';

/**
 * Parts of Node's objects that its types lack (they are the same in every version from 20 to 26), and what compression
 * middleware adds.
 * @typedef {import('node:net').Socket & { encrypted?: boolean, parser?: { incoming?: object | null } | null, _handle?: { fd: number, readStop: () => void } | null }} HandledSocket
 * @typedef {import('node:http').ServerResponse & { chunkedEncoding: boolean, stream?: import('node:http2').ServerHttp2Stream, flush?: () => void, _header?: string | null }} HandledResponse
 */

/**
 * @typedef {object} Adoptable
 * @property {HandledSocket | null} socket null on HTTP/2, whose streams share one
 * @property {boolean} isChunked
 * @property {boolean} isCompressed middleware compresses what is written to it
 * @property {boolean} canLeaveJs its connection is a descriptor that carries plain bytes
 */

/** Successes without a body. */
const BODILESS = [204, 205];

/** Responses that are being adopted or have been. @type {WeakSet<object>} */
const taken = new WeakSet();

/**
 * Checks that an application may still write to a response.
 * @param {import('node:http').ServerResponse} given
 * @returns {HandledSocket | null} null on HTTP/2
 * @throws {HoldfastError} NOT_ADOPTABLE with the reason, CLIENT_GONE, BAD_ARGUMENT
 */
export function checkOpen(given) {
  const response = /** @type {HandledResponse} */ (given);
  if (typeof response?.flushHeaders !== 'function')
    throw badArgument(`adopt takes a ServerResponse (of Fastify: reply.raw), not ${shown(given)}`);
  if (taken.has(response)) throw notAdoptable('it was adopted already');
  if (response.writableEnded) throw notAdoptable('it has ended');
  checkStatus(response.statusCode);
  const socket = response.stream ? null : socketOf(response);
  if (socket === null && response.stream?.destroyed !== false) throw clientGone();
  return socket;
}

/**
 * Answers a HEAD with the head of the stream that a GET would get.
 * @param {import('node:http').ServerResponse} response after `checkOpen`
 * @param {import('../native/protocol.js').Format} encoding
 */
export function answerHead(response, encoding) {
  if (!response.headersSent) setDefaults(response, encoding);
  response.end();
}

/**
 * Checks everything it can before anything is sent, then sends the head and checks that too.
 * @param {import('node:http').ServerResponse} given
 * @param {HandledSocket | null} socket from `checkOpen`
 * @param {import('../native/protocol.js').Format} encoding
 * @returns {Adoptable}
 * @throws {HoldfastError} NOT_ADOPTABLE with the reason
 */
export function adoptable(given, socket, encoding) {
  const response = /** @type {HandledResponse} */ (given);
  checkLength((name) => response.hasHeader(name));
  if (!response.headersSent) setDefaults(response, encoding);
  // Does nothing if the head was sent. After writeHead it may still be waiting for the body.
  response.flushHeaders();
  const header = headersOf(response);
  checkLength((name) => header(name) !== undefined);
  const isCompressed = isEncoded(header('content-encoding'));
  if (isCompressed && !Object.hasOwn(response, 'write'))
    throw notAdoptable('it has a Content-Encoding, but no middleware compresses what is written to it');
  const { chunkedEncoding: isChunked } = response;
  return { socket, isChunked, isCompressed, canLeaveJs: !isCompressed && isPlain(socket) };
}

/**
 * Checks that a response can be the answer of a poll.
 * @param {import('node:http').ServerResponse} response after `checkOpen`
 * @throws {HoldfastError} NOT_ADOPTABLE with the reason
 */
export function takePoll(response) {
  checkLength((name) => response.hasHeader(name));
  if (response.headersSent)
    throw notAdoptable('its head was sent already: that of a poll comes with its answer');
  taken.add(response);
}

/** @param {import('node:http').ServerResponse} response @param {import('../native/protocol.js').Format} encoding */
function setDefaults(response, encoding) {
  for (const [name, value] of Object.entries(headOfStream(encoding).headers))
    if (!response.hasHeader(name)) response.setHeader(name, value);
}

/** @param {HandledSocket | null} socket @returns {boolean} */
export function isPlain(socket) {
  if (socket?._handle == null || (socket.encrypted && !isRelayed(socket))) return false;
  return socket._handle.fd >= 0;
}

/** An EventSource, for one, takes no other status than 200. Koa begins with 404. @param {number} status */
function checkStatus(status) {
  if (status < 200 || status > 299 || BODILESS.includes(status))
    throw notAdoptable(`its status is ${status}: set it to 200 first`);
}

/** @param {(name: string) => boolean} has */
function checkLength(has) {
  if (has('content-length')) throw notAdoptable('it has a Content-Length, so it is not a stream');
}

/** @param {string | undefined} encoding the Content-Encoding */
function isEncoded(encoding) {
  return encoding !== undefined && encoding.toLowerCase() !== 'identity';
}

/**
 * Reads the head as it was sent: on HTTP/1, headers passed to `writeHead` are kept nowhere else.
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
  // The response to a pipelined request gets its socket only after the responses before it have ended.
  if (!socket && response.req.socket?.destroyed === false)
    throw notAdoptable('an earlier response on the same connection has not ended');
  if (!socket || socket.destroyed) throw clientGone();
  return socket;
}

/**
 * Waits until everything that was written has been sent.
 * @param {import('node:http').ServerResponse} given
 * @param {HandledSocket | null} socket
 * @throws {HoldfastError} CLIENT_GONE, and NOT_ADOPTABLE if the client has sent more on the connection
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

/** Undoes `comeToRest`. @param {import('node:http').ServerResponse} response that was not adopted after all */
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
    // Called once the kernel has everything that was written before.
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
 * What Node has read from the connection can't be given to a stream, so it must be this request and nothing more.
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
 * Takes a connection away from Node's HTTP parser. From now on the client may send nothing but empty lines.
 * @param {HandledSocket} socket
 * @param {() => void} onMore called when it sends anything else
 */
export function watchForMore(socket, onMore) {
  socket.removeAllListeners('data');
  socket.on('data', (data) => {
    if (/[^\r\n]/.test(data.toString('latin1'))) onMore();
  });
  socket.setTimeout?.(0); // a connection that the application made itself may lack it
  socket.resume();
}

/** This happens all the time, so `adopt` does not fail because of it. */
function clientGone() {
  return new HoldfastError('CLIENT_GONE', 'the client has closed its connection');
}

/** @param {string} why */
function notAdoptable(why) {
  return new HoldfastError('NOT_ADOPTABLE', `the response can't be adopted: ${why}`);
}
