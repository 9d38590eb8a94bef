/*
 * A node:http server that does not listen: it serves the connections that a Hold passes on, which are those of publishers and
 * whatever else sends a body. Idle ones are closed when there are too many, so that they can't use up all descriptors.
 */
import { createServer } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { limitConnections } from '../lib/crowd.js';
import { endWith } from './answers.js';
import { statusOfError } from './failures.js';
import { incomingWith, takeOnlyWebSockets } from './incoming.js';
import { refusal, responseOf } from './responses.js';

/** Connections of one worker. */
const MOST_CONNECTIONS = 4096;
/** How long a request may take to arrive, and how long a connection may wait for the next one. */
const REQUEST_MS = 30_000;
const IDLE_MS = 60_000;
const CHECK_MS = 1000;
/** How often a server that retires looks whether all have gone. */
const LOOK_MS = 20;

/** @typedef {import('./doorsocket.js').DoorSocket} DoorSocket */

/**
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} listener
 * @param {{ maxHeadBytes: number, headTimeoutMs: number }} limits
 * @returns {import('node:http').Server} for `options.server` of a Hold
 */
export function innerServer(listener, { maxHeadBytes, headTimeoutMs }) {
  const server = createServer(
    {
      IncomingMessage: incomingWith(() => false),
      noDelay: true,
      maxHeaderSize: maxHeadBytes,
      headersTimeout: headTimeoutMs,
      requestTimeout: Math.max(REQUEST_MS, headTimeoutMs),
      keepAliveTimeout: IDLE_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
    listener,
  );
  takeOnlyWebSockets(server);
  server.on('clientError', /** @type {(error: Error, socket: any) => void} */ (onClientError));
  limitConnections(server, MOST_CONNECTIONS);
  server.on('connection', (socket) => {
    const open = openOf(server);
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.emit('listening'); // from then on, Node enforces the timeouts
  return server;
}

/**
 * Node would send the status without a text.
 * @param {Error & { code?: string }} error @param {DoorSocket & { _httpMessage?: { headersSent: boolean } | null }} socket
 */
function onClientError(error, socket) {
  const status = statusOfError(error.code ?? '');
  if (!status || !socket.writable || socket._httpMessage?.headersSent) return void socket.destroy();
  endWith(socket, responseOf(refusal({ refuse: status }), false));
}

/** @type {WeakMap<import('node:http').Server, Set<import('node:net').Socket>>} */
const connections = new WeakMap();

/** @param {import('node:http').Server} server @returns {Set<import('node:net').Socket>} its connections */
function openOf(server) {
  const known = connections.get(server) ?? new Set();
  connections.set(server, known);
  return known;
}

/**
 * Ends the connections of a server that another one replaces, so that no request is lost: the response to the next request says
 * that the connection closes. A connection without one for a while is closed.
 * @param {import('node:http').Server} server from `innerServer`
 * @param {{ idleMs: number, mostMs: number }} limits how long to wait for the next request of each connection, and for answers
 * @returns {Promise<void>} once all are gone, or after `mostMs`
 */
export async function retire(server, { idleMs, mostMs }) {
  for (const event of ['request', 'checkContinue', 'checkExpectation'])
    server.prependListener(event, (_request, response) => {
      response.shouldKeepAlive = false;
    });
  const open = openOf(server);
  const beginMs = performance.now();
  for (; open.size > 0; await after(LOOK_MS)) {
    const passedMs = performance.now() - beginMs;
    if (passedMs >= mostMs) return;
    if (passedMs >= idleMs) server.closeIdleConnections();
  }
}
