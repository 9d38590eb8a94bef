/*
 * The door of the http transport: a node:http server that counts connections, refuses requests that open no
 * stream, and hands in those that do. A connection moves so:
 *
 *     accepted --a head that `decide` holds--> held: the house's from here on
 *        |  \--over the limit--> cut
 *        \--any other request, or none--> answered --the client closes, or a second passes--> gone
 */
import { createServer } from 'node:http';
import { headAnswer, refusal } from './wire.js';

/**
 * How long an answered client may take to read and close before it is cut. A connection closed at once, with
 * bytes of the client unread, would be reset, and the answer lost.
 */
const LINGER_MS = 1000;

/** One for all streams that listen to none. @type {readonly string[]} */
const NO_CHANNELS = [];

const kDoor = Symbol('door');
const kStream = Symbol('stream');
const kAnswered = Symbol('answered');

/** @typedef {import('./http.js').HttpStream} HttpStream */

/**
 * Whose door it is.
 * @typedef {object} House
 * @property {{ refused: Record<import('../lib/reasons.js').RefusalStatus, number>, cut: number }} counters counted up here
 * @property {() => boolean} isFull
 * @property {(response: import('node:http').ServerResponse, format: import('./wire.js').Format, channels: readonly string[]) => HttpStream} hold
 * @property {(stream: HttpStream, reason: import('../lib/reasons.js').CloseReason) => void} destroy
 * @property {(stream: HttpStream) => void} forget its connection is gone
 */

/**
 * @typedef {object} Door
 * @property {House} house
 * @property {import('./index.js').TransportOptions} options
 * @property {number} connections
 * @property {Set<DoorSocket>} outside connections that carry no stream
 * @property {() => void} onEmpty called when the last connection is gone
 */

/**
 * Our marks on node's objects, instead of a closure a connection.
 * @typedef {import('node:http').Server & { [kDoor]: Door }} DoorServer
 * @typedef {import('node:net').Socket & { [kDoor]?: Door, [kStream]?: HttpStream, [kAnswered]?: boolean }} DoorSocket
 */

/**
 * @param {House} house
 * @param {import('./index.js').TransportOptions} options
 * @returns {DoorServer} that does not listen yet
 */
export function openDoor(house, options) {
  const { nagle, maxHeadBytes, headTimeoutMs } = options;
  const server = createServer({
    noDelay: !nagle,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: headTimeoutMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, headTimeoutMs / 4),
    requireHostHeader: false, // `decide` asks for it, so that its lack is counted like any other refusal
  });
  server.on('connection', onConnection);
  server.on('request', onRequest);
  // Without these node would answer an Expect header itself, and queue our response behind its own.
  server.on('checkExpectation', onRequest);
  server.on('checkContinue', onRequest);
  server.on('connect', onConnectMethod);
  server.on('clientError', onClientError);
  /** @type {Door} */
  const door = { house, options, connections: 0, outside: new Set(), onEmpty: () => {} };
  return Object.assign(server, { [kDoor]: door });
}

/**
 * Accepts no more, and cuts what is still outside after a moment.
 * @param {DoorServer} server
 * @returns {Promise<void>} when the last connection is gone, and counted
 */
export async function closeDoor(server) {
  const door = server[kDoor];
  const closed = new Promise((resolve) => server.close(resolve));
  const empty = new Promise((resolve) => {
    door.onEmpty = () => resolve(null);
    if (door.connections === 0) door.onEmpty();
  });
  const cut = setTimeout(() => door.outside.forEach(destroySocket), LINGER_MS);
  await Promise.all([closed, empty]);
  clearTimeout(cut);
}

/** @this {DoorServer} @param {DoorSocket} socket */
function onConnection(socket) {
  const door = this[kDoor];
  door.connections++;
  door.outside.add(socket);
  socket[kDoor] = door;
  socket.on('close', onSocketClose);
  if (door.connections <= door.options.connectionLimit) return;
  door.house.counters.cut++;
  socket.destroy();
}

/** @this {DoorSocket} */
function onSocketClose() {
  const door = /** @type {Door} */ (this[kDoor]);
  door.connections--;
  door.outside.delete(this);
  if (this[kStream]) door.house.forget(this[kStream]);
  if (door.connections === 0) door.onEmpty();
}

/**
 * @this {DoorServer}
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
function onRequest(request, response) {
  const socket = /** @type {DoorSocket} */ (request.socket);
  const { house, options, outside } = this[kDoor];
  if (socket[kStream]) return house.destroy(socket[kStream], 'bad-request');
  request.resume();
  if (socket[kAnswered] || response.socket === null) return;
  const { method = '', url = '', httpVersion, headers } = request;
  const decision = options.decide({ method, target: url, version: httpVersion, headers });
  if ('refuse' in decision) refuse(house, socket, decision.refuse, method === 'HEAD');
  else if ('head' in decision) answer(socket, headAnswer(decision.head));
  else if ('answer' in decision) answer(socket, decision.answer());
  else if (house.isFull()) refuse(house, socket, 503, false);
  else {
    socket[kStream] = house.hold(response, decision.hold, decision.channels ?? NO_CHANNELS);
    outside.delete(socket);
  }
}

/**
 * CONNECT reaches no 'request' listener: node hands over the bare socket.
 * @this {DoorServer} @param {import('node:http').IncomingMessage} _request @param {import('node:stream').Duplex} duplex
 */
function onConnectMethod(_request, duplex) {
  const socket = /** @type {DoorSocket} */ (duplex);
  const { house } = this[kDoor];
  socket.on('error', destroySocket.bind(null, socket));
  if (socket[kStream]) house.destroy(socket[kStream], 'bad-request');
  else if (!socket[kAnswered]) refuse(house, socket, 405, false);
}

/**
 * Every error of a connection, be it of the parser or of the socket, arrives here.
 * @this {DoorServer} @param {Error & { code?: string }} error @param {import('node:stream').Duplex} duplex
 */
function onClientError(error, duplex) {
  const socket = /** @type {DoorSocket} */ (duplex);
  const { house } = this[kDoor];
  const code = error.code ?? '';
  const status = statusOf(code);
  if (socket[kStream]) house.destroy(socket[kStream], reasonOf(code));
  else if (!status || !socket.writable) socket.destroy();
  else if (!socket[kAnswered]) refuse(house, socket, status, false);
}

/** @param {string} code @returns {import('../lib/reasons.js').RefusalStatus | 0} 0 where nobody is there to answer */
function statusOf(code) {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'HPE_INVALID_VERSION') return 505;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return code.startsWith('HPE_') ? 400 : 0;
}

/** @param {string} code @returns {import('../lib/reasons.js').CloseReason} */
function reasonOf(code) {
  if (code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'bad-request';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'client-gone';
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return 'dead-peer';
  return 'error';
}

/**
 * @param {House} house
 * @param {DoorSocket} socket
 * @param {import('../lib/reasons.js').RefusalStatus} status
 * @param {boolean} headOnly
 */
function refuse(house, socket, status, headOnly) {
  house.counters.refused[status]++;
  answer(socket, refusal(status, headOnly));
}

/** @param {DoorSocket} socket @param {string} bytes a whole response */
function answer(socket, bytes) {
  socket[kAnswered] = true;
  socket.end(bytes, 'latin1');
  socket.resume();
  setTimeout(destroySocket, LINGER_MS, socket);
}

/** @param {import('node:net').Socket} socket */
function destroySocket(socket) {
  socket.destroy();
}
