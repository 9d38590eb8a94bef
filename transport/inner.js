/*
 * A node:http server that does not listen: it serves the connections that a Hold passes on, which are those of publishers and
 * whatever else sends a body. Idle ones are closed when there are too many, so that they can't use up all descriptors.
 */
import { createServer } from 'node:http';
import { limitConnections } from '../lib/crowd.js';

/** Connections of one worker. */
const MOST_CONNECTIONS = 4096;
/** How long a request may take to arrive, and how long a connection may wait for the next one. */
const REQUEST_MS = 30_000;
const IDLE_MS = 60_000;
const CHECK_MS = 1000;

/**
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} listener
 * @param {{ maxHeadBytes: number, headTimeoutMs: number }} limits
 * @returns {import('node:http').Server} for `options.server` of a Hold
 */
export function innerServer(listener, { maxHeadBytes, headTimeoutMs }) {
  const server = createServer(
    {
      noDelay: true,
      maxHeaderSize: maxHeadBytes,
      headersTimeout: headTimeoutMs,
      requestTimeout: Math.max(REQUEST_MS, headTimeoutMs),
      keepAliveTimeout: IDLE_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
    listener,
  );
  limitConnections(server, MOST_CONNECTIONS);
  server.emit('listening'); // from then on, Node enforces the timeouts
  return server;
}
