/*
 * What all servers of the comparison share. Each takes a port and a ping interval (ms, 0 for none) as its last arguments, listens on loopback, answers
 * `GET /bench` and what is not there, and gives the body of `POST /publish` to all its clients.
 */

export const HOST = '127.0.0.1';
export const WELCOME = 'Welcome!';
/** What a request is answered with. */
export const ANSWER = 'Hello world\n';
export const TEXT = Object.freeze({ 'Content-Type': 'text/plain; charset=utf-8' });
/** How long a connection may wait for its next request. */
export const KEEP_ALIVE_MS = 3_600_000;
/** Every so many heartbeats, clients are asked for an answer. The others are pongs, which nobody answers. */
const ASK_EVERY = 4;

/** @returns {{ port: number, intervalMs: number }} */
export function startOf() {
  const [port, intervalMs] = process.argv.slice(-2).map(Number);
  return { port, intervalMs };
}

/** Says that the server listens. */
export function ready() {
  process.stdout.write('listening\n');
}

/**
 * @param {Iterable<{ ping: () => unknown, pong: () => unknown }>} clients WebSockets @param {number} intervalMs 0 for none
 */
export function keepAlive(clients, intervalMs) {
  if (intervalMs === 0) return;
  let beats = 0;
  setInterval(() => {
    const asks = ++beats % ASK_EVERY === 0;
    for (const client of clients) asks ? client.ping() : client.pong();
  }, intervalMs);
}

/** @param {import('node:http').IncomingMessage} request @returns {Promise<string>} its body */
export async function bodyOf(request) {
  let body = '';
  for await (const part of request.setEncoding('utf8')) body += part;
  return body;
}
