/*
 * The hub on each of its surfaces, for tests of the protocol: the policy of a Hold of either kind, which passes bodies on to
 * node:http, and the handler in an application of node:http. And requests byte for byte.
 */
import { createServer } from 'node:http';
import { Hub } from '../../hub/index.js';
import { rawClient } from './client.js';
import { KINDS, listening, startHold } from './hold.js';
import { clientsOf, headIn, PATH, SECRET, startHub } from './hub.js';
import { until } from './until.js';

/** @typedef {'a native Hold' | 'a Hold in JS' | 'node:http'} Surface */
/** @typedef {Partial<import('../../hub/settings.js').HubOptions>} Options */

/** @type {Surface[]} */
export const SURFACES = [
  ...KINDS.map((kind) => (kind === 'native' ? 'a native Hold' : 'a Hold in JS')),
  'node:http',
];

/**
 * @param {import('node:test').TestContext} t @param {Surface} surface @param {Options} [options]
 * @param {import('holdfast').HoldOptions} [holdOptions]
 */
export async function startSurface(t, surface, options, holdOptions) {
  const started =
    surface === 'node:http'
      ? await startHandler(t, options, holdOptions)
      : await startHub(t, surface === 'a native Hold' ? 'native' : 'JS', options, holdOptions);
  const { port } = started;
  return { ...started, ask: (/** @type {Request} */ request) => ask(t, port, request) };
}

/** @param {import('node:test').TestContext} t @param {Options} [options] @param {import('holdfast').HoldOptions} [holdOptions] */
async function startHandler(t, options, holdOptions) {
  const { hold, closes } = startHold(t, KINDS[0], holdOptions);
  const hub = new Hub({ hold, jwt: { secret: SECRET }, anonymous: true, ...options });
  await hub.start();
  const server = createServer(hub.handler).on('upgrade', hub.upgrade);
  const port = await listening(t, server);
  return { hub, hold, closes, port, ...clientsOf(t, port) };
}

/**
 * @typedef {object} Request
 * @property {string} [method]
 * @property {string} [target]
 * @property {readonly string[]} [headers] lines, besides Host
 * @property {string | Buffer} [body] with its Content-Length
 * @property {string} [raw] the whole request, each character a byte
 */

/** @typedef {Awaited<ReturnType<typeof ask>>} Reply */

/**
 * Sends a request, and reads the response: to its end, or, if it is a stream, its head and what comes with it.
 * @param {import('node:test').TestContext} t @param {number} port @param {Request} request
 */
export async function ask(t, port, request) {
  const client = rawClient(port);
  t.after(client.close);
  client.socket.write(bytesOf(request));
  const isHead = (request.method ?? request.raw ?? '').startsWith('HEAD');
  await until(
    () => client.closed || isWhole(client.received, isHead),
    () => `a response to ${JSON.stringify(request)}, not ${JSON.stringify(client.received)}`,
  );
  client.socket.pause();
  const received = afterContinue(client.received);
  const { status, headers } = headIn(received);
  const body = Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1').toString();
  client.close();
  return { status, headers, body, received: client.received };
}

/** @param {Request} request @returns {Buffer} */
export function bytesOf({ method = 'GET', target = PATH, headers = [], body, raw }) {
  if (raw !== undefined) return Buffer.from(raw, 'latin1');
  const bytes = Buffer.from(body ?? '');
  const length = body === undefined ? [] : [`Content-Length: ${bytes.length}`];
  const hasHost = headers.some((line) => /^host:/i.test(line));
  const lines = [...(hasHost ? [] : ['Host: localhost']), ...headers, ...length];
  return Buffer.concat([
    Buffer.from(
      `${method} ${target} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
      'latin1',
    ),
    bytes,
  ]);
}

/** @param {string} received @returns {string} */
function afterContinue(received) {
  return received.startsWith('HTTP/1.1 100') ? received.slice(received.indexOf('\r\n\r\n') + 4) : received;
}

/** @param {string} received @param {boolean} isHead */
function isWhole(received, isHead) {
  const rest = afterContinue(received);
  const end = rest.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const { status, headers } = headIn(rest);
  const body = rest.length - end - 4;
  if (isHead || status === 204 || status === 304) return true;
  if (headers['content-length'] !== undefined) return body >= Number(headers['content-length']);
  return body > 0;
}
