/*
 * WebSockets and plain answers of Bun, which is built on uWebSockets.
 */
import { ANSWER, HOST, keepAlive, ready, startOf, TEXT, WELCOME } from './common.js';

/** @type {any} */
const { Bun } = globalThis;
const { port, intervalMs } = startOf();
/** @type {Set<any>} */
const clients = new Set();

Bun.serve({
  port,
  hostname: HOST,
  idleTimeout: 0,
  /** @param {Request} request @param {any} server */
  async fetch(request, server) {
    if (server.upgrade(request)) return;
    const { pathname } = new URL(request.url);
    if (request.method === 'POST') {
      const text = await request.text();
      for (const client of clients) client.send(text);
      return new Response('', { status: 202 });
    }
    return pathname === '/bench'
      ? new Response(ANSWER, { headers: TEXT })
      : new Response('', { status: 404 });
  },
  websocket: {
    idleTimeout: 0,
    sendPings: false,
    perMessageDeflate: false,
    /** @param {any} client */
    open(client) {
      clients.add(client);
      client.send(WELCOME);
    },
    /** @param {any} client */
    close: (client) => void clients.delete(client),
    message() {},
  },
});
keepAlive(clients, intervalMs);
ready();
