/*
 * Requests as the clients in use send them, in both dialects: publishers, and subscribers that come back for what they missed.
 * The requests were written down from the sources of symfony/mercure 0.6 to 0.8, @microsoft/fetch-event-source 2.0,
 * event-source-polyfill 1.0, and Chromium.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EventSource } from 'eventsource';
import { rawClient } from './helpers/client.js';
import { KINDS } from './helpers/hold.js';
import {
  datasOf,
  draftToken,
  eventsIn,
  headIn,
  legacyToken,
  PATH,
  startHub,
  tokenOf,
} from './helpers/hub.js';
import { until } from './helpers/until.js';

/** @typedef {'0.x' | 'draft-08'} Dialect */

const BOOK = 'https://example.com/books/1';
const NOW_S = Math.floor(Date.now() / 1000);

/**
 * Tokens as symfony/mercure makes them: lcobucci/jwt writes times with microseconds.
 * @type {Record<Dialect, (port: number, grants: { subscribe?: string[], publish?: string[] }) => string>}
 */
const TOKENS = {
  '0.x': (_port, { subscribe = [], publish = [] }) =>
    tokenOf({ exp: NOW_S + 3600.123456, mercure: { publish, subscribe } }),
  'draft-08': (port, grants) =>
    draftToken(grants, {
      iss: 'https://example.com',
      aud: `http://localhost:${port}${PATH}`,
      sub: 'app',
      client_id: 'app',
      iat: NOW_S + 0.5,
      jti: 'a1b2',
      exp: NOW_S + 3600.123456,
    }),
};

/** What symfony/http-client adds, with curl and without. @type {Record<string, string[]>} */
const HTTP_CLIENTS = {
  curl: ['Accept: */*', 'User-Agent: Symfony HttpClient (Curl)', 'Accept-Encoding: gzip'],
  'PHP streams': [
    'Accept: */*',
    'User-Agent: Symfony HttpClient (Native)',
    'Accept-Encoding: gzip',
    'Connection: close',
  ],
};

/** As PHP's urlencode and rawurlencode write it. @param {string} text */
const rawurlencode = (text) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
const urlencode = (/** @type {string} */ text) =>
  rawurlencode(text).replaceAll('%20', '+').replaceAll('~', '%7E');

/**
 * A subscriber: what it sends.
 * @typedef {object} Subscriber
 * @property {(state: { query: string, cursor: string, token: string }) => { query: string, headers: string[] }} send cursor: '' at first
 * @property {boolean} [needsData] whether it ignores ids without data
 */

const CHROMIUM = [
  'Connection: keep-alive',
  'sec-ch-ua-platform: "Linux"',
  'Cache-Control: no-cache',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Accept: text/event-stream',
  'Origin: https://example.com',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
  'Referer: https://example.com/',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: en-US,en;q=0.9',
];
/** @param {string} name @param {string} value @returns {string[]} nothing if the value is empty */
const header = (name, value) => (value ? [`${name}: ${value}`] : []);

/** @type {Record<string, Subscriber>} */
const SUBSCRIBERS = {
  'the EventSource of a browser with the cookie of Symfony': {
    send: ({ query, cursor, token }) => ({
      query,
      headers: [
        ...CHROMIUM,
        `Cookie: PHPSESSID=1; mercureAuthorization=${token}`,
        ...header('Last-Event-ID', cursor),
      ],
    }),
  },
  'the EventSource of a browser with the cookie of draft-08': {
    send: ({ query, cursor, token }) => ({
      query,
      headers: [
        ...CHROMIUM,
        `Cookie: __Secure-mercure_access_token=${token}`,
        ...header('Last-Event-ID', cursor),
      ],
    }),
  },
  '@microsoft/fetch-event-source': {
    send: ({ query, cursor, token }) => ({
      query,
      headers: [
        `authorization: Bearer ${token}`,
        'accept: text/event-stream',
        ...header('last-event-id', cursor),
        'accept-language: *',
        'sec-fetch-mode: cors',
        'user-agent: node',
      ],
    }),
  },
  'event-source-polyfill': {
    needsData: true,
    send: ({ query, cursor, token }) => ({
      query: cursor ? `${query}&lastEventId=${encodeURIComponent(cursor)}` : query,
      headers: [
        'Accept: text/event-stream',
        `Authorization: Bearer ${token}`,
        'Cache-Control: no-cache',
        'Pragma: no-cache',
      ],
    }),
  },
  'event-source-polyfill, told the name of the parameter, on an address with an older cursor': {
    needsData: true,
    send: ({ query, cursor, token }) => {
      const old = `${query}&lastEventID=earliest&Last-Event-ID=earliest`;
      return {
        query: cursor ? `${old}&lastEventID=${encodeURIComponent(cursor)}` : query,
        headers: ['Accept: text/event-stream', `Authorization: Bearer ${token}`],
      };
    },
  },
  'a page of twig, which is loaded again': {
    send: ({ query, cursor, token }) => ({
      query: cursor
        ? `${query}&lastEventID=${rawurlencode(cursor)}&Last-Event-ID=${rawurlencode(cursor)}`
        : query,
      headers: [...CHROMIUM, `Cookie: mercureAuthorization=${token}`],
    }),
  },
  'a page of twig, with symfony/mercure 0.8 and the cookie of draft-08': {
    send: ({ query, cursor, token }) => ({
      query: cursor
        ? `${query}&lastEventID=${rawurlencode(cursor)}&Last-Event-ID=${rawurlencode(cursor)}`
        : query,
      headers: [...CHROMIUM, `Cookie: __Secure-mercure_access_token=${token}`],
    }),
  },
};

/** What they ask for: both a topic, and a pattern or template. @type {Record<Dialect, string>} */
const QUERIES = {
  '0.x': `topic=${rawurlencode(BOOK)}&topic=${rawurlencode('https://example.com/users/{id}')}`,
  'draft-08': `match=${rawurlencode(BOOK)}&match_urlpattern=${rawurlencode('https://example.com/users/:id')}`,
};

/** @param {import('node:test').TestContext} t @param {number} port @param {string} query @param {string[]} headers */
async function open(t, port, query, headers) {
  const lines = [`Host: localhost:${port}`, ...headers];
  const client = rawClient(port, `GET ${PATH}?${query} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  t.after(client.close);
  await until(() => client.received.includes('\r\n\r\n'), 'a response');
  return Object.assign(client, {
    events: () => eventsIn(client.received),
    head: () => headIn(client.received),
  });
}

/** @param {{ events: () => import('./helpers/hub.js').ReadEvent[] }} client @param {boolean} needsData @returns {string} what it would send */
function cursorOf(client, needsData) {
  const events = client
    .events()
    .filter(({ id, data }) => id !== undefined && (!needsData || data !== undefined));
  return events.at(-1)?.id ?? '';
}

for (const kind of KINDS) {
  for (const dialect of /** @type {Dialect[]} */ (['0.x', 'draft-08'])) {
    describe(`in ${dialect}, to a hub on a Hold in ${kind}`, () => {
      for (const [name, extra] of Object.entries(HTTP_CLIENTS)) {
        test(`symfony/mercure publishes, with ${name}`, async (t) => {
          const { port, subscribe } = await startHub(t, kind);
          const all = await subscribe('match=*', {
            Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}`,
          });
          const data = '{"status": "out of stock", "title": "Größe & ~Maß~"}\n';
          const UPDATES = [
            { body: `topic=${urlencode(BOOK)}&data=${urlencode(data)}`, event: { data } },
            {
              body: `topic=${urlencode(BOOK)}&topic=${urlencode('https://example.com/users/dunglas?topic=a b')}&data=&private=on&id=${urlencode('urn:uuid:e1ee88e2-532a-4d6f-ba70-f0f8bd584022')}&type=${urlencode('book sold')}&retry=3000`,
              event: {
                data: '',
                id: 'urn:uuid:e1ee88e2-532a-4d6f-ba70-f0f8bd584022',
                type: 'book sold',
                retry: '3000',
              },
            },
          ];
          for (const [i, { body, event }] of UPDATES.entries()) {
            const lines = [
              `POST ${PATH} HTTP/1.1`,
              `Host: localhost:${port}`,
              `Authorization: Bearer ${TOKENS[dialect](port, { publish: ['*'] })}`,
              'Content-Type: application/x-www-form-urlencoded',
              ...extra,
              `Content-Length: ${body.length}`,
            ];
            const client = rawClient(port, `${lines.join('\r\n')}\r\n\r\n${body}`);
            t.after(client.close);
            const [, id] = await client.untilRead(
              /^HTTP\/1\.1 200 OK\r\n[\s\S]*Content-Type: text\/plain; charset=utf-8\r\n[\s\S]*\r\n\r\n(.+)$/,
            );
            await until(() => datasOf(all).length === i + 1, 'the event');
            assert.deepEqual(all.events().at(-1), { id, ...event, data: event.data });
          }
        });
      }

      for (const [name, { send, needsData = false }] of Object.entries(SUBSCRIBERS)) {
        const isCookieOfDraft = name.endsWith('cookie of draft-08');
        const isCookieOfLegacy = !isCookieOfDraft && /cookie|twig/.test(name);
        if (dialect === 'draft-08' ? isCookieOfLegacy : isCookieOfDraft) continue;
        test(`${name} gets everything once, also what was published while it was away`, async (t) => {
          const { hub, port } = await startHub(t, kind, { anonymous: false });
          const token = TOKENS[dialect](port, { subscribe: [BOOK] });
          const publish = (/** @type {string} */ data, topic = BOOK, isPrivate = true) =>
            hub.publish({ topic, data, private: isPrivate });
          const state = { query: QUERIES[dialect], cursor: '', token };
          const ask = () => {
            const { query, headers } = send(state);
            return open(t, port, query, headers);
          };
          const first = await ask();
          assert.equal(first.head().status, 200, first.received);
          assert.match(first.head().headers['content-type'], /^text\/event-stream$/);
          await publish('1');
          await publish('2', 'https://example.com/users/7', false);
          await publish('no', 'https://example.com/users/7');
          await until(() => datasOf(first).length === 2, 'the first two');
          assert.deepEqual(datasOf(first), ['1', '2']);
          state.cursor = cursorOf(first, needsData);
          first.close();
          await publish('no', 'https://example.com/other', false);
          await publish('3');
          await publish('4', 'https://example.com/users/8', false);
          const second = await ask();
          const { headers } = second.head();
          assert.deepEqual(
            [headers['mercure-last-event-id'], headers['last-event-id']],
            [state.cursor, dialect === '0.x' ? state.cursor : undefined],
          );
          await publish('5');
          await until(() => datasOf(second).includes('5'), 'the last one');
          assert.deepEqual(datasOf(second), ['3', '4', '5']);
        });
      }

      test('the npm package eventsource reconnects after its stream has ended, and gets everything once', async (t) => {
        const { hub, port } = await startHub(t, kind, { anonymous: false });
        const token =
          dialect === '0.x'
            ? legacyToken({ subscribe: [BOOK] }, { sub: 'me' })
            : draftToken({ subscribe: [BOOK] }, { sub: 'me', aud: `http://localhost:${port}${PATH}` });
        /** @type {string[]} */
        const got = [];
        let opened = 0;
        const source = new EventSource(`http://localhost:${port}${PATH}?${QUERIES[dialect]}`, {
          fetch: (url, init) =>
            fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } }),
        });
        t.after(() => source.close());
        source.onmessage = ({ data }) => got.push(data);
        source.onopen = () => opened++;
        await until(() => opened === 1, 'it is open');
        await hub.publish({ topic: BOOK, data: '1', private: true, retry: 20 });
        await until(() => got.length === 1, 'the first one');
        for (let round = 1; round <= 3; round++) {
          hub.revoke({ subject: 'me' });
          await until(
            () => source.readyState === EventSource.CONNECTING || opened === round + 1,
            'it has ended',
          );
          await hub.publish([
            { topic: BOOK, data: `${round}a`, private: true },
            { topic: BOOK, data: `${round}b` },
          ]);
          await until(() => opened === round + 1, 'it is open again');
          await hub.publish({ topic: BOOK, data: `${round}c`, retry: 20 });
          await until(() => got.at(-1) === `${round}c`, 'the live one');
        }
        assert.deepEqual(got, [
          '1',
          ...[1, 2, 3].flatMap((round) => ['a', 'b', 'c'].map((letter) => `${round}${letter}`)),
        ]);
      });
    });
  }
}
