/*
 * The node:http server in front of a door: it passes Node's events on to the door. A symbol on Node's objects points back to
 * the door, and all listeners are functions of this module, so no closure is created per connection.
 */
import { createServer } from 'node:http';
import { incomingWith, takesUpgrades } from './incoming.js';

/** Length of the accept queue: the kernel reduces it to somaxconn. */
const ACCEPT_QUEUE = 65_535;

const kDoor = Symbol('door');

/** @typedef {import('./door.js').Door} Door */
/** @typedef {import('./doorsocket.js').DoorSocket} DoorSocket */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('node:stream').Duplex} Duplex */
/** @typedef {import('node:http').Server & { [kDoor]: Door }} DoorServer */
/** @typedef {DoorSocket & { [kDoor]?: Door }} MarkedSocket */

/**
 * @param {Door} door
 * @param {import('./options.js').Settings} settings
 * @returns {DoorServer} not listening yet
 */
export function openServer(door, settings) {
  const { server: application, nagle, maxHeadBytes, headTimeoutMs, keepAliveTimeoutMs } = settings;
  const server = createServer({
    IncomingMessage: incomingWith(() => takesUpgrades(application)),
    keepAliveTimeout: keepAliveTimeoutMs,
    noDelay: !nagle,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: headTimeoutMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, headTimeoutMs / 4),
    requireHostHeader: false, // the policy decides that
  });
  server.on('connection', onConnection);
  server.on('request', onRequest);
  // Without these two, Node would answer an Expect header itself, and queue our response behind its own.
  server.on('checkContinue', onCheckContinue);
  server.on('checkExpectation', onCheckExpectation);
  server.on('connect', onConnect);
  server.on('clientError', onClientError);
  server.on('upgrade', onUpgrade);
  return Object.assign(server, { [kDoor]: door });
}

/**
 * @param {import('node:http').Server} server
 * @param {string} address '' for all @param {number} port
 * @param {(error: Error) => void} onError called with errors after it is listening
 * @returns {Promise<number>} the port
 */
export function listenOn(server, address, port, onError) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address || undefined, backlog: ACCEPT_QUEUE }, () => {
      server.off('error', reject);
      server.on('error', onError);
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port);
    });
  });
}

/** Undoes `onConnection`. @param {MarkedSocket} socket that was passed on */
export function release(socket) {
  socket.off('close', onSocketClose);
}

/** Has the door told when a response is written. @param {ServerResponse} response */
export function goOnAfter(response) {
  response.on('finish', onFinish);
}

/** @this {ServerResponse} */
function onFinish() {
  const socket = /** @type {MarkedSocket} */ (this.req.socket);
  socket[kDoor]?.goOn(socket);
}

/** @this {DoorServer} @param {MarkedSocket} socket */
function onConnection(socket) {
  socket[kDoor] = this[kDoor];
  socket.on('close', onSocketClose);
  this[kDoor].accept(socket);
}

/** @this {MarkedSocket} */
function onSocketClose() {
  this[kDoor]?.leave(this);
}

/** @this {DoorServer} @param {IncomingMessage} request @param {ServerResponse} response */
function onRequest(request, response) {
  this[kDoor].enter(request, { event: 'request', args: [request, response], response });
}

/** @this {DoorServer} @param {IncomingMessage} request @param {ServerResponse} response */
function onCheckContinue(request, response) {
  this[kDoor].enter(request, { event: 'checkContinue', args: [request, response], response });
}

/** @this {DoorServer} @param {IncomingMessage} request @param {ServerResponse} response */
function onCheckExpectation(request, response) {
  this[kDoor].enter(request, { event: 'checkExpectation', args: [request, response], response });
}

/** @this {DoorServer} @param {IncomingMessage} request @param {Duplex} socket @param {Buffer} rest */
function onConnect(request, socket, rest) {
  socket.on('error', onBareError);
  this[kDoor].enter(request, { event: 'connect', args: [request, socket, rest], response: null });
}

/** @this {DoorServer} @param {IncomingMessage} request @param {Duplex} socket @param {Buffer} rest */
function onUpgrade(request, socket, rest) {
  socket.on('error', onBareError);
  this[kDoor].enter(request, { event: 'upgrade', args: [request, socket, rest], response: null });
}

/** @this {Duplex} */
function onBareError() {
  this.destroy();
}

/**
 * Node reports all errors of connections here, both those of its parser and those of sockets.
 * @this {DoorServer} @param {Error & { code?: string }} error @param {Duplex} socket
 */
function onClientError(error, socket) {
  this[kDoor].fail(/** @type {DoorSocket} */ (socket), error);
}
