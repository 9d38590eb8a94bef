/*
 * Hubs for tests, on a Hold of either kind, and clients that read events.
 */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { Hub } from '../../hub/index.js';
import { get, rawClient } from './client.js';
import { startHold } from './hold.js';
import { until } from './until.js';

export const PATH = '/.well-known/mercure';
export const SECRET = 'a secret of at least thirty-two bytes';

/** @param {object} claims @param {{ secret?: string, typ?: string }} [how] @returns {string} an HS256 token */
export function tokenOf(claims, { secret = SECRET, typ = 'JWT' } = {}) {
  const part = (/** @type {unknown} */ value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256', typ })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/** A token of 0.x. @param {{ publish?: string[], subscribe?: string[], payload?: unknown }} mercure @param {object} [claims] */
export const legacyToken = (mercure, claims) => tokenOf({ mercure, ...claims });

/** A token of draft-08. @param {{ publish?: string[], subscribe?: string[] }} grants exact topics or '*' @param {object} [claims] */
export function draftToken({ publish, subscribe }, claims = {}) {
  const detail = (/** @type {string} */ action, /** @type {string[] | undefined} */ topics) =>
    topics
      ? [
          {
            type: 'https://mercure.rocks/authorization-detail',
            actions: [action],
            topics: topics.map((match) => ({ match })),
          },
        ]
      : [];
  const authorization_details = [...detail('publish', publish), ...detail('subscribe', subscribe)];
  const exp = Math.floor(Date.now() / 1000) + 3600;
  return tokenOf(
    { exp, aud: `http://localhost${PATH}`, authorization_details, ...claims },
    { typ: 'at+jwt' },
  );
}

export const PUBLISHER = legacyToken({ publish: ['*'] });

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./hold.js').Kind} kind
 * @param {Partial<import('../../hub/settings.js').HubOptions>} [options]
 * @param {import('holdfast').HoldOptions} [holdOptions]
 */
export async function startHub(t, kind, options, holdOptions) {
  /** @type {Hub} */
  let hub;
  const application = createServer((request, response) => hub.handler(request, response));
  const policy = {
    headers: Hub.headers,
    address: true,
    decide: (/** @type {import('holdfast').Head} */ head, /** @type {number} */ id) => hub.decide(head, id),
  };
  const { hold, closes } = startHold(t, kind, { policy, server: application, ...holdOptions });
  hub = new Hub({ hold, jwt: { secret: SECRET }, anonymous: true, ...options });
  await hub.start();
  const port = await hold.listen(0, '127.0.0.1');
  t.after(() => application.closeAllConnections());
  return { hub, hold, closes, port, ...clientsOf(t, port) };
}

/** @param {import('node:test').TestContext} t @param {number} port */
export function clientsOf(t, port) {
  /** @param {string} query @param {Record<string, string>} [headers] */
  const subscribe = async (query, headers = {}) => {
    const client = rawClient(port, get(headers).replace('/ HTTP', `${PATH}?${query} HTTP`));
    t.after(client.close);
    await until(() => client.closed || client.received.includes('\r\n\r\n'), 'a response');
    if (!client.received.includes('\r\n\r\n'))
      throw new Error('the connection was closed without a response');
    return Object.assign(client, {
      events: () => eventsIn(client.received),
      head: () => headIn(client.received),
    });
  };
  /** @param {Record<string, string> | URLSearchParams | string} form @param {Record<string, string>} [headers] */
  const publish = async (form, headers = { Authorization: `Bearer ${PUBLISHER}` }) => {
    const body = new URLSearchParams(form);
    const response = await fetch(`http://localhost:${port}${PATH}`, { method: 'POST', body, headers });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return { subscribe, publish };
}

/** @param {string} received @returns {{ status: number, headers: Record<string, string> }} */
export function headIn(received) {
  const [head] = received.split('\r\n\r\n');
  const [first, ...lines] = head.split('\r\n');
  const pairs = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    line.slice(line.indexOf(':') + 2),
  ]);
  return { status: Number(first.split(' ')[1]), headers: Object.fromEntries(pairs) };
}

/** @typedef {{ id?: string, type?: string, data?: string, retry?: string }} ReadEvent without data: only a position */

/** @param {string} received chunked or not @returns {ReadEvent[]} */
export function eventsIn(received) {
  const start = received.indexOf('\r\n\r\n') + 4;
  const body = /^transfer-encoding: chunked/im.test(received)
    ? dechunked(received.slice(start))
    : received.slice(start);
  const blocks = Buffer.from(body, 'latin1').toString().split('\n\n');
  return blocks.slice(0, -1).flatMap((block) => {
    /** @type {Record<string, string>} */
    const event = {};
    for (const line of block.split('\n')) {
      const [, field, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
      if (field)
        event[field === 'event' ? 'type' : field] =
          field === 'data' && 'data' in event ? `${event.data}\n${value}` : value;
    }
    return Object.keys(event).length > 0 ? [event] : [];
  });
}

/** @param {string} text @returns {string} of the whole chunks */
function dechunked(text) {
  let body = '';
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (end < 0 || !(size > 0) || text.length < end + 2 + size) return body;
    body += text.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

/** @param {{ events: () => ReadEvent[] }} client @returns {(string | undefined)[]} the data of the events it got */
export const datasOf = (client) =>
  client
    .events()
    .filter(({ data }) => data !== undefined)
    .map(({ data }) => data);
