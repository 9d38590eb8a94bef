/*
 * The hub in applications: node:http, Express and Fastify, with streams and pages of their own. On both kinds of Hold.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import express from 'express';
import fastify from 'fastify';
import { Hold, Hub, MemoryBroker, openBroker } from 'holdfast';
import { get, leavingClient, rawClient } from './helpers/client.js';
import { KINDS, listening, startHold } from './helpers/hold.js';
import { datasOf, eventsIn, headIn, legacyToken, PATH, PUBLISHER, SECRET } from './helpers/hub.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {(request: IncomingMessage, response: ServerResponse) => unknown} Answer what the application does */
/** @typedef {import('holdfast').HoldfastError} HoldfastError */

/** An application with a hub. @type {Record<string, (hub: Hub, answer: Answer) => Promise<import('node:http').Server>>} */
const FRAMEWORKS = {
  'node:http': async (hub, answer) =>
    createServer((request, response) => hub.handler(request, response, () => answer(request, response))),
  Express: async (hub, answer) => {
    const app = express();
    app.use(hub.handler);
    app.use(express.json(), express.urlencoded());
    app.get('/{*path}', (request, response) => void answer(request, response));
    return createServer(app);
  },
  Fastify: async (hub, answer) => {
    const app = fastify();
    app.addHook('onRequest', (request, reply, done) => {
      if (!hub.owns(request.raw.url)) return done();
      reply.hijack();
      hub.handler(request.raw, reply.raw);
    });
    app.get('/*', (request, reply) => {
      reply.hijack();
      void answer(request.raw, reply.raw);
    });
    await app.ready();
    return app.server;
  },
};

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind
 * @param {string} framework
 * @param {(hub: Hub) => Answer} answer
 * @param {object} [how]
 * @param {Partial<import('holdfast').HubOptions>} [how.options]
 * @param {import('holdfast').HoldOptions} [how.holdOptions]
 */
async function startApplication(t, kind, framework, answer, { options, holdOptions } = {}) {
  const { hold, closes } = startHold(t, kind, holdOptions);
  /** @type {unknown[]} */
  const errors = [];
  const hub = new Hub({
    hold: /** @type {Hold} */ (/** @type {unknown} */ (hold)),
    jwt: { secret: SECRET },
    anonymous: true,
    onError: (error) => errors.push(error),
    ...options,
  });
  await hub.start();
  const port = await listening(t, await FRAMEWORKS[framework](hub, answer(hub)));
  return { hub, hold, closes, errors, port, open: opener(t, port) };
}

/** @param {import('node:test').TestContext} t @param {number} port */
function opener(t, port) {
  return async (
    /** @type {string} */ target,
    /** @type {Record<string, string>} */ headers = {},
    method = 'GET',
  ) => {
    const client = rawClient(port, get(headers).replace('GET / HTTP', `${method} ${target} HTTP`));
    t.after(client.close);
    await until(() => client.received.includes('\r\n\r\n'), `a response to ${target}`);
    return Object.assign(client, {
      events: () => eventsIn(client.received),
      head: () => headIn(client.received),
    });
  };
}

/** @param {number} port @param {BodyInit} body @param {Record<string, string>} [headers] @param {string} [path] */
async function post(port, body, headers = {}, path = PATH) {
  const all = { Authorization: `Bearer ${PUBLISHER}`, ...headers };
  const response = await fetch(`http://localhost:${port}${path}`, { method: 'POST', body, headers: all });
  return { status: response.status, text: await response.text() };
}

/** Adopted streams that the hub counts something for. @param {Hub} hub */
const places = (hub) =>
  /** @type {import('../hub/index.js').Hub} */ (/** @type {unknown} */ (hub)).core.places.size;

for (const kind of KINDS) {
  for (const framework of Object.keys(FRAMEWORKS)) {
    describe(`in an application of ${framework} (${kind})`, () => {
      test('the hub has its path, and the application everything else', async (t) => {
        const { port, open } = await startApplication(t, kind, framework, () => (request, response) => {
          response.end(`the page ${request.url}`);
        });
        const page = await fetch(`http://localhost:${port}/page?x`);
        assert.equal(await page.text(), 'the page /page?x');
        const client = await open(`${PATH}?match=a`);
        const form = new URLSearchParams([
          ['topic', 'a'],
          ['topic', 'b'],
          ['data', 'grüße\nan alle'],
        ]);
        const { status, text: id } = await post(port, form);
        assert.equal(status, 200);
        await until(() => datasOf(client).length === 1, 'the event');
        const event = client.events().find(({ data }) => data !== undefined);
        assert.deepEqual(
          event,
          { id, data: 'grüße\nan alle' },
          'besides pings with the cursor, which come at any moment',
        );
        const list = JSON.stringify([{ topic: 'a', data: '2' }]);
        assert.equal((await post(port, list, { 'Content-Type': 'application/json' })).status, 200);
        await until(() => datasOf(client).length === 2, 'the second event');
        const refused = await post(port, form, { Authorization: 'Bearer x' });
        assert.deepEqual(refused, { status: 401, text: 'the access token is not valid\n' });
      });

      test('a response becomes a stream of topics that the application chose, with private publications', async (t) => {
        const { hub, open } = await startApplication(t, kind, framework, (hub) => (_request, response) => {
          response.setHeader('X-Own', '1');
          void hub.subscribe(response, {
            topics: ['a', 'https://x.example/books/1'],
            patterns: 'https://x.example/authors/:id',
            grants: { topics: 'a', patterns: ['https://x.example/users/7/*'] },
          });
        });
        const client = await open('/stream');
        const { status, headers } = client.head();
        assert.deepEqual(
          [status, headers['content-type'], headers['x-own']],
          [200, 'text/event-stream', '1'],
        );
        assert.equal(headers['mercure-last-event-id'], undefined);
        await until(() => client.events().length === 1, 'its position');
        assert.equal(client.events()[0].id, hub.cursor);
        const PUBLISHED = [
          { data: '1', topic: 'a' },
          { data: '2', topic: 'a', private: true },
          { data: '3', topic: 'https://x.example/books/1', private: true },
          { data: '4', topic: ['https://x.example/books/1', 'https://x.example/users/7/x'], private: true },
          { data: '5', topic: 'https://x.example/authors/1' },
          { data: '6', topic: 'other' },
          { data: 'end', topic: 'a' },
        ];
        const ids = await hub.publish(PUBLISHED);
        await until(() => datasOf(client).includes('end'), 'the last one');
        assert.deepEqual(datasOf(client), ['1', '2', '4', '5', 'end']);
        assert.equal(client.events().at(-1)?.id, ids.at(-1));
        client.close();
        await until(() => places(hub) === 0, 'it is gone');
      });

      test('a page that carries a Link header, and the EventSource after it, miss nothing', async (t) => {
        /** @type {string[]} */
        const written = [];
        const { hub, port, open } = await startApplication(
          t,
          kind,
          framework,
          (hub) => async (_request, response) => {
            response.setHeader('Link', hub.link('https://x.example/scores'));
            await wait(3 * Math.random()); // others publish before the data is read, and after
            response.end(JSON.stringify(written));
          },
        );
        const publishing = (async () => {
          for (let i = 0; i < 300; i++) {
            written.push(String(i));
            await hub.publish({ topic: 'https://x.example/scores', data: String(i) });
            if (i % 10 === 0) await wait(1);
          }
        })();
        const readers = await Promise.all(
          Array.from({ length: 20 }, async (_, i) => {
            await wait(2 * i);
            const page = await fetch(`http://localhost:${port}/page`);
            const link = page.headers.get('link') ?? '';
            const [, url, cursor] =
              /^<([^>]+)>; rel="mercure"; last-event-id="([^"]+)", <https:\/\/x\.example\/scores>; rel="self"$/.exec(
                link,
              ) ?? [];
            assert.equal(url, PATH);
            const shown = /** @type {string[]} */ (await page.json());
            await wait(5 * Math.random());
            const query = new URLSearchParams({ match: 'https://x.example/scores', last_event_id: cursor });
            const client = await open(`${url}?${query}`);
            assert.equal(client.head().headers['mercure-last-event-id'], cursor);
            return { shown, client };
          }),
        );
        await publishing;
        for (const { shown, client } of readers) {
          await until(() => datasOf(client).at(-1) === '299' || shown.length === 300, 'the last one');
          const after = datasOf(client);
          const first = after.length === 0 ? 300 : Number(after[0]);
          assert.ok(first <= shown.length, `${shown.length} on the page, then from ${first}`);
          assert.deepEqual(after, written.slice(first));
        }
      });

      test('a client comes back with its cursor in any spelling, or the application gives one', async (t) => {
        const { hub, open } = await startApplication(t, kind, framework, (hub) => (request, response) => {
          const { searchParams } = new URL(request.url ?? '', 'http://localhost');
          const given = searchParams.get('given');
          const cursor = given === 'null' ? null : (given ?? undefined);
          void hub.subscribe(response, { topics: '*', cursor });
        });
        const before = hub.cursor;
        await hub.publish([
          { topic: 'a', data: '1' },
          { topic: 'b', data: '2' },
        ]);
        const escaped = encodeURIComponent(before);
        const clients = [
          await open('/', { 'Last-Event-ID': before }),
          await open('/?last_event_id=wrong', { 'Last-Event-ID': before }),
          ...(await Promise.all(
            ['last_event_id', 'lastEventID', 'Last-Event-ID', 'lastEventId', 'given'].map((name) =>
              open(`/?${name}=${escaped}`),
            ),
          )),
          await open('/?given=earliest'),
        ];
        const others = [
          await open('/'),
          await open('/?given=null', { 'Last-Event-ID': before }),
          await open('/?last_event_id='),
        ];
        await hub.publish({ topic: 'c', data: '3' });
        for (const client of clients) {
          await until(() => datasOf(client).length === 3, 'what it missed');
          assert.deepEqual(datasOf(client), ['1', '2', '3']);
        }
        assert.deepEqual(
          clients.map((client) => client.head().headers['mercure-last-event-id']),
          [...Array(7).fill(before), 'earliest'],
        );
        for (const client of others) {
          await until(() => datasOf(client).length === 1, 'the live one');
          assert.deepEqual(datasOf(client), ['3']);
        }
        assert.deepEqual(
          others.map((client) => client.head().headers['mercure-last-event-id']),
          [undefined, undefined, 'earliest'],
        );
      });

      test('a HEAD gets the head of the stream, and nothing is left of it', async (t) => {
        const { hub, open, closes } = await startApplication(
          t,
          kind,
          framework,
          (hub) => (_request, response) => {
            void hub.subscribe(response, { patterns: 'https://x.example/*' });
          },
        );
        for (const target of [`${PATH}?match_urlpattern=https://x.example/*`, '/own']) {
          const client = await open(target, { 'Last-Event-ID': 'earliest', Connection: 'close' }, 'HEAD');
          await client.untilClosed();
          assert.equal(client.head().headers['content-type'], 'text/event-stream');
          assert.equal(client.head().headers['mercure-last-event-id'], 'earliest');
          assert.ok(client.received.endsWith('\r\n\r\n'));
        }
        await until(() => places(hub) === 0 && closes.length === 1, 'the end of the one that was adopted');
      });

      test('clients that leave at any moment leave nothing behind', async (t) => {
        const { hub, port, errors, closes } = await startApplication(
          t,
          kind,
          framework,
          (hub) => (_request, response) => {
            hub
              .subscribe(response, { topics: 'a', patterns: 'https://x.example/*', grants: 'b' })
              .catch((error) => errors.push(error));
          },
        );
        await hub.publish(Array.from({ length: 50 }, (_, i) => ({ topic: 'a', data: String(i) })));
        for (let i = 0; i < 64; i++) {
          const target = i % 2 === 0 ? '/own' : `${PATH}?match_urlpattern=https://x.example/*`;
          leavingClient(
            port,
            get({ 'Last-Event-ID': 'earliest' }).replace('/ HTTP', `${target} HTTP`),
            i >> 1,
          );
        }
        await until(() => closes.length > 0, 'some were streams');
        await wait(100);
        await until(() => places(hub) === 0, 'all are gone');
        assert.deepEqual(errors, []);
      });
    });
  }

  describe(`a hub for applications (${kind})`, () => {
    test('refuses wrong arguments with a text that says what is wrong, and leaves the response alone', async (t) => {
      /** @type {[unknown, RegExp][]} */
      const WRONG = [
        [undefined, /^subscribe takes an object \{ topics, .* \}, not undefined$/],
        [null, /not null$/],
        ['news', /not string$/],
        [{}, /^subscribe needs topics or patterns/],
        [{ topics: [] }, /^subscribe needs topics or patterns/],
        [{ topic: 'a' }, /^subscribe has no 'topic': expected topics, patterns/],
        [{ topics: [1] }, /^topics must be a string or a list of strings, not number$/],
        [{ topics: ['a', null] }, /not null$/],
        [{ topics: 'a\nb' }, /control or format characters$/],
        [{ topics: '\ud800' }, /control or format characters$/],
        [{ topics: 'x'.repeat(5000) }, /longer than 4096 bytes$/],
        [{ patterns: 'https://x.example/(' }, /^not a valid URL pattern/],
        [
          { topics: Array.from({ length: 101 }, (_, i) => String(i)) },
          /at most 100 topics and patterns, not 101$/,
        ],
        [{ topics: 'a', cursor: 1 }, /^a cursor must be a string or null, not number$/],
        [{ topics: 'a', grants: { topic: 'a' } }, /^grants has no 'topic'/],
        [{ topics: 'a', grants: 1 }, /^grants takes an object/],
        [{ topics: 'a', grants: [{}] }, /^grants must be a string or a list of strings, not object$/],
        [{ topics: 'a', subject: 7 }, /^subject must be a string, not number$/],
        [{ topics: 'a', expiresAtMs: Number.NaN }, /^expiresAtMs must be a time/],
      ];
      /** @type {HoldfastError[]} */
      const errors = [];
      const { hub, port } = await startApplication(
        t,
        kind,
        'node:http',
        (hub) => async (_request, response) => {
          for (const [options] of WRONG)
            await hub.subscribe(response, /** @type {any} */ (options)).catch((error) => errors.push(error));
          response.end('still mine');
        },
      );
      const answer = await fetch(`http://localhost:${port}/`);
      assert.equal(await answer.text(), 'still mine');
      assert.equal(answer.headers.get('content-type'), null);
      assert.equal(errors.length, WRONG.length);
      errors.forEach((error, i) => {
        assert.equal(error.code, 'BAD_ARGUMENT');
        assert.match(error.message, WRONG[i][1]);
      });
      for (const response of [undefined, {}, { setHeader() {} }])
        await assert.rejects(hub.subscribe(/** @type {any} */ (response), { topics: 'a' }), {
          code: 'BAD_ARGUMENT',
        });
      for (const topic of [7, 'a\n', '*', `${PATH}/x`])
        assert.throws(() => hub.link(/** @type {any} */ (topic)), { code: 'BAD_ARGUMENT' });
    });

    test('rejects publications that are wrong, and publishes none of a list then', async (t) => {
      const { hub } = await startApplication(
        t,
        kind,
        'node:http',
        () => (_request, response) => response.end(),
      );
      /** @type {[unknown, string][]} */
      const WRONG = [
        [undefined, 'a publication is an object { topic, data }'],
        ['news', 'a publication is an object { topic, data }'],
        [{ data: 'x' }, 'missing "topic" parameter'],
        [{ topic: [] }, 'missing "topic" parameter'],
        [{ topic: 'a', topics: ['b'] }, 'use either topic or topics, not both'],
        [{ topic: 1 }, 'a topic must be a string'],
        [{ topic: '*' }, 'the topic * is reserved: it selects all topics'],
        [{ topic: 'a', data: { b: 1 } }, 'data must be a string; write other values as JSON'],
        [{ topic: 'a', data: '\ud800' }, 'data must be valid UTF-8'],
        [{ topic: 'a', private: 1 }, 'private must be true or false'],
        [{ topic: 'a', id: '#1' }, 'ids that start with # are made by the hub'],
        [{ topic: 'a', type: 'mercure' }, "the type 'mercure' is reserved"],
        [{ topic: 'a', retry: -1 }, 'retry must be a whole number of milliseconds, at most 2147483647'],
        [{ topic: 'a', retry: [1] }, 'retry must be a whole number of milliseconds, at most 2147483647'],
        [{ topic: 'a', event: 'x' }, 'a publication has no field "event"'],
        [[{ topic: 'a' }, { topic: '*' }], 'the topic * is reserved: it selects all topics'],
      ];
      const before = hub.cursor;
      for (const [given, message] of WRONG)
        await assert.rejects(hub.publish(/** @type {any} */ (given)), { code: 'BAD_ARGUMENT', message });
      assert.equal(hub.cursor, before);
      assert.deepEqual(await hub.publish([]), []);
    });

    test('a stream that has no room is refused with OVER_CAPACITY, or with 503 by the hub itself', async (t) => {
      /** @type {HoldfastError[]} */
      const refused = [];
      const { port, open, errors } = await startApplication(
        t,
        kind,
        'node:http',
        (hub) => (_request, response) =>
          hub.subscribe(response, { topics: 'a' }).catch((error) => {
            refused.push(error);
            response.destroy();
          }),
        { holdOptions: { capacity: 1 } },
      );
      const first = await open('/own');
      const client = rawClient(port, get());
      t.after(client.close);
      await client.untilClosed();
      assert.equal(refused[0].code, 'OVER_CAPACITY');
      const other = rawClient(port, get().replace('/ HTTP', `${PATH}?match=a HTTP`));
      await other.untilClosed();
      assert.doesNotMatch(other.received, /id: /);
      assert.deepEqual(errors, []);
      assert.equal(first.closed, false);
    });

    test('streams end when the application says they expire, and when their subject is revoked', async (t) => {
      const { hub, open, closes } = await startApplication(
        t,
        kind,
        'node:http',
        (hub) => (request, response) => {
          const expiresAtMs = request.url === '/short' ? Date.now() + 1000 : undefined;
          void hub.subscribe(response, { topics: 'a', subject: request.url, expiresAtMs });
        },
      );
      const [short, one, other] = [await open('/short'), await open('/one'), await open('/other')];
      await short.untilClosed();
      hub.revoke({ subject: '/one' });
      await one.untilClosed();
      await until(() => closes.length === 2, 'both are reported');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['expired', 'revoked'],
      );
      assert.equal(other.closed, false);
    });

    test('is mounted under any path, and what is not its own goes on', async (t) => {
      const { hold } = startHold(t, kind);
      const hub = new Hub({
        hold: /** @type {any} */ (hold),
        jwt: { secret: SECRET },
        anonymous: true,
        path: '/api/hub',
        url: 'https://x.example/api/hub',
      });
      const app = express();
      app.use('/api', hub.handler);
      app.use((_request, response) => void response.status(404).end('of the application'));
      const port = await listening(t, createServer(app));
      const client = await opener(t, port)('/api/hub?match=a');
      const { status, text } = await post(
        port,
        new URLSearchParams({ topic: 'a', data: '1' }),
        {},
        '/api/hub',
      );
      assert.equal(status, 200);
      await until(() => datasOf(client).length === 1, 'the event');
      assert.equal(client.events().at(-1)?.id, text);
      for (const path of ['/api', '/api/hub/other', PATH, '/api/hubs']) {
        const other = await fetch(`http://localhost:${port}${path}?match=a`);
        assert.equal(await other.text(), 'of the application', path);
      }
      assert.equal(hub.link(), `<https://x.example/api/hub>; rel="mercure"; last-event-id="${hub.cursor}"`);
      const alone = await listening(
        t,
        createServer((request, response) => hub.handler(request, response)),
      );
      assert.equal((await fetch(`http://localhost:${alone}/page`)).status, 404);
    });

    test('without onError, a failure of the hub becomes a process warning with its code', async (t) => {
      const { hold } = startHold(t, kind);
      const hub = new Hub({ hold: /** @type {any} */ (hold), anonymous: true, jwt: { secret: SECRET } });
      const warned = once(process, 'warning');
      const server = createServer((request, response) => {
        request.resume().once('end', () => hub.handler(request, response)); // the body is gone
      }).listen(0, '127.0.0.1');
      t.after(() => server.close());
      await once(server, 'listening');
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      const url = `http://127.0.0.1:${port}/.well-known/mercure`;
      const response = await fetch(url, {
        method: 'QUERY',
        body: 'match=a',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      });
      assert.equal(response.status, 500);
      const [warning] = await warned;
      assert.deepEqual([warning.name, warning.code], ['HoldfastWarning', 'HUB_FAILED']);
    });

    test('takes bodies that a framework has parsed, and says so if one has taken them away', async (t) => {
      const { hold } = startHold(t, kind);
      const hub = new Hub({
        hold: /** @type {any} */ (hold),
        jwt: { secret: SECRET },
        anonymous: true,
        onError: () => {},
      });
      const TYPE = 'application/x-www-form-urlencoded';
      /** @type {Record<string, import('express').RequestHandler[]>} */
      const PARSERS = {
        text: [express.text({ type: TYPE })],
        raw: [express.raw({ type: '*/*' })],
        simple: [express.urlencoded({ extended: false })],
        extended: [express.urlencoded({ extended: true })],
        empty: [(request, _response, next) => next(Object.assign(request, { body: {} }) && undefined)], // as Express 4 does
        json: [express.json()],
      };
      const app = express();
      for (const [name, parsers] of Object.entries(PARSERS))
        app.use(`/${name}`, ...parsers, (request, response) => {
          request.originalUrl = PATH;
          hub.handler(request, response);
        });
      app.use('/taken', (request, response) => {
        request
          .resume()
          .on('end', () => hub.handler(Object.assign(request, { originalUrl: PATH }), response));
      });
      app.use('/being-taken', (request, response) => {
        request
          .on('data', () => {})
          .once('data', () => hub.handler(Object.assign(request, { originalUrl: PATH }), response));
      });
      app.use(hub.handler);
      const port = await listening(t, createServer(app));
      const client = await opener(t, port)(`${PATH}?match=*`, {
        Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}`,
      });
      for (const name of ['text', 'raw', 'simple', 'extended', 'empty']) {
        const form = `topic=a%2Bb&topic=${name}&data=gr%C3%BC%C3%9Fe+%26&private=&other=1&other=2&id=urn:${name}`;
        const sent = await post(port, form, { 'Content-Type': TYPE }, `/${name}`);
        assert.deepEqual(sent, { status: 200, text: `urn:${name}` });
        const none = await post(port, '', { 'Content-Type': TYPE }, `/${name}`);
        assert.deepEqual(none, { status: 400, text: 'missing "topic" parameter\n' }, name);
      }
      const list = await post(
        port,
        '[{"topic":"a","data":"grüße &"}]',
        { 'Content-Type': 'application/json' },
        '/json',
      );
      assert.equal(list.status, 200);
      await until(() => datasOf(client).length === 6, 'all of them');
      assert.deepEqual(datasOf(client), Array(6).fill('grüße &'));
      const nested = await post(port, 'topic[a]=1', { 'Content-Type': TYPE }, '/extended');
      assert.deepEqual(nested, {
        status: 400,
        text: 'a form has only texts, in UTF-8: repeat a name for several values\n',
      });
      for (const path of ['/taken', '/being-taken']) {
        const taken = await post(port, 'topic=a', { 'Content-Type': TYPE }, path);
        assert.equal(taken.status, 500);
        assert.match(
          taken.text,
          /^something has read the body before the hub could: put the hub before body parsers/,
        );
      }
    });

    test('works over HTTP/2 too', async (t) => {
      const { hold } = startHold(t, kind);
      const hub = new Hub({ hold: /** @type {any} */ (hold), jwt: { secret: SECRET } });
      const server = createHttp2Server((request, response) => {
        const { handler } = /** @type {any} */ (hub);
        handler(request, response, () => void hub.subscribe(response, { topics: 'a', patterns: '/x' }));
      });
      const port = await listening(t, server);
      const session = connect(`http://localhost:${port}`);
      t.after(() => session.destroy());
      const ask = (/** @type {string} */ path, headers = {}, body = '') => {
        const stream = session.request({ ':path': path, ...headers });
        const asked = { status: 0, text: '' };
        stream.on('response', (answer) => {
          asked.status = answer[':status'] ?? 0;
        });
        stream.on('data', (data) => {
          asked.text += data;
        });
        stream.end(body || undefined);
        return asked;
      };
      const streams = [ask(`${PATH}?match=a`), ask('/own')];
      const head = ask('/own', { ':method': 'HEAD' });
      for (const one of streams) await until(() => /id: #/.test(one.text), 'its position');
      await until(() => head.status === 200, 'the head');
      const headers = {
        ':method': 'POST',
        authorization: `Bearer ${PUBLISHER}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      const published = ask(PATH, headers, 'topic=a&data=x');
      for (const one of streams) await until(() => /data: x\n\n$/.test(one.text), 'the event');
      assert.equal(published.status, 200);
      session.destroy();
      await until(() => places(hub) === 0 && hold.counters().streams === 0, 'all are gone');
    });

    test('a route of Fastify that got a parsed body passes it on', async (t) => {
      const { hold } = startHold(t, kind);
      const hub = new Hub({ hold: /** @type {any} */ (hold), jwt: { secret: SECRET } });
      const app = fastify();
      app.post(PATH, (request, reply) => {
        reply.hijack();
        hub.handler(Object.assign(request.raw, { body: request.body }), reply.raw);
      });
      await app.ready();
      const port = await listening(t, app.server);
      const { status } = await post(port, '[{"topic":"a"}]', { 'Content-Type': 'application/json' });
      assert.equal(status, 200);
    });
  });
}

test('a link has only characters that a URI may have, whatever the topic is', () => {
  const hub = new Hub({ hold: new Hold(), url: 'https://exämple.com/hub' });
  const { cursor } = hub;
  for (const [topic, target] of [
    ['https://x.example/books/1?a=b#c', 'https://x.example/books/1?a=b#c'],
    ['https://x.example/a%20b', 'https://x.example/a%20b'],
    ['room 1', 'room%201'],
    ['a>; rel="evil", <b', 'a%3E;%20rel=%22evil%22,%20%3Cb'],
    ['größe/😀', 'gr%C3%B6%C3%9Fe/%F0%9F%98%80'],
    ["it's\\{x}|^`", "it's%5C%7Bx%7D%7C%5E%60"],
  ])
    assert.equal(
      hub.link(topic),
      `<https://xn--exmple-cua.com/hub>; rel="mercure"; last-event-id="${cursor}", <${target}>; rel="self"`,
    );
  assert.match(cursor, /^#[\w-]{22}$/);
});

test('options that are wrong are refused with a text that says what is wrong', async () => {
  const hold = new Hold();
  /** @type {[unknown, RegExp][]} */
  const WRONG = [
    [undefined, /^a Hub needs a Hold/],
    [{}, /^a Hub needs a Hold/],
    [{ hold, port: 1 }, /^a Hub has no 'port': expected path, jwt/],
    [{ hold, jwt: { key: 'x' } }, /^the option jwt of a Hub has no 'key': expected secret/],
    [{ hold, jwt: 'secret' }, /^the option jwt of a Hub must be of type object, not 'secret'$/],
    [{ hold, jwt: null }, /^the option jwt of a Hub must be of type object, not null$/],
    [
      { hold, jwt: { secret: Buffer.from('x') } },
      /^secret in the option jwt of a Hub must be a string .*, not an object$/,
    ],
    [{ hold, jwt: { jwksUrl: 'example.com' } }, /^jwksUrl in the option jwt of a Hub must be an http/],
    [{ hold, proxies: ['proxy'] }, /^proxies has 'proxy', expected an address or a range/],
    [{ hold, onError: 'log' }, /^the option onError of a Hub must be a function, not 'log'$/],
    [{ hold, onNote: 1 }, /^the option onNote of a Hub must be a function, not 1$/],
    [{ hold, anonymous: 1 }, /^the option anonymous of a Hub must be of type boolean, not 1$/],
    [{ hold, corsOrigins: '*' }, /^the option corsOrigins of a Hub must be a list of strings, not '\*'$/],
    [{ hold, corsOrigins: ['example.com'] }, /^corsOrigins has 'example.com', expected an origin/],
    [
      { hold, jwt: { publisherKey: '-----BEGIN PRIVATE KEY-----' }, corsOrigins: ['example.com'] },
      /^corsOrigins has 'example.com'/, // and nothing is left that rejects because of the key
    ],
    [{ hold, cacheTopics: ['https://x.example/('] }, /is neither a topic nor a URL pattern/],
    [{ hold, path: 'hub' }, /^the path of a Hub must be like \/\.well-known\/mercure, not 'hub'$/],
    [{ hold, url: '/hub' }, /^the url of a Hub must be like https:.*, not '\/hub'$/],
    [{ hold, url: Symbol('url') }, /^the url of a Hub must be like https:/],
    [{ hold, maxTopics: 0 }, /^the option maxTopics of a Hub must be a whole number from 1, not 0$/],
    [{ hold, broker: openBroker() }, /^the broker of a Hub is made by openBroker/],
  ];
  for (const [options, message] of WRONG)
    assert.throws(() => new Hub(/** @type {any} */ (options)), { code: 'BAD_OPTION', message });
  const wrong = [null, { historyCount: -1 }, { historyCount: '1' }, { cacheTopics: 'a' }, { url: 'hub' }];
  for (const options of [{ store: 'x' }, ...wrong])
    assert.throws(() => new MemoryBroker(/** @type {any} */ (options)), { code: 'BAD_OPTION' });
  for (const options of [{ store: 1 }, { sync: 'on' }, { folder: 'x' }, ...wrong])
    await assert.rejects(openBroker(/** @type {any} */ (options)), { code: 'BAD_OPTION' });
});

test('a Hold is for one Hub: two would publish on the same channels', () => {
  const hold = new Hold();
  assert.throws(() => new Hub({ hold, url: 'hub' }), { code: 'BAD_OPTION' });
  new Hub({ hold });
  assert.throws(() => new Hub({ hold }), { code: 'BAD_OPTION', message: /^this Hold has a Hub already: / });
});

test('what can not be revoked is refused with a text that says what is wrong', () => {
  const hub = new Hub({ hold: new Hold() });
  /** @type {[unknown, RegExp][]} */
  const WRONG = [
    [undefined, /^what to revoke is an object such as/],
    ['ann', /^what to revoke is an object such as/],
    [{}, /^nothing to revoke: give subject, token/],
    [{ subject: undefined }, /^nothing to revoke: give subject, token/],
    [{ user: 'ann' }, /^"user" can't be revoked: use subject, token or topic$/],
    [{ subject: 7 }, /^subject must be a text; for several, send an array of objects$/],
    [{ subject: '' }, /^subject must be a text; for several, send an array of objects$/],
    [{ topic: '*' }, /^revoke the topics one by one/],
  ];
  for (const [what, message] of WRONG)
    assert.throws(() => hub.revoke(/** @type {any} */ (what)), { code: 'BAD_ARGUMENT', message });
  hub.revoke({ subject: 'ann', token: undefined });
});

test('why a token was refused is noted, each reason once', async (t) => {
  /** @type {string[]} */
  const notes = [];
  const onNote = (/** @type {string} */ line) => notes.push(line);
  const hub = new Hub({ hold: new Hold(), jwt: { secret: SECRET }, onNote });
  await hub.start();
  const port = await listening(t, createServer(hub.handler));
  const body = new URLSearchParams({ topic: 'a' });
  for (const token of ['x', legacyToken({ publish: ['*'] }, { exp: 1 }), 'x'])
    assert.equal((await post(port, body, { Authorization: `Bearer ${token}` })).status, 401);
  assert.deepEqual(notes, [
    'a token was refused: it is not a signed token (noted once a minute)',
    'a token was refused: it has expired (noted once a minute)',
  ]);
});

test('brokers keep what their options say', async (t) => {
  for (const broker of [new MemoryBroker({ historyCount: 2 }), await openBroker({ historyCount: 2 })]) {
    t.after(() => broker.close());
    const hub = new Hub({ hold: new Hold(), broker });
    await hub.publish(['1', '2', '3'].map((data) => ({ topic: 'a', data })));
    assert.deepEqual([broker.first, broker.last], [2, 3]);
  }
});

test('with a store, a hub goes on after a restart: clients get what they missed', async (t) => {
  const store = temporaryFolder(t);
  const publish = async (/** @type {string} */ data) => {
    const broker = await openBroker({ store });
    const hub = new Hub({ hold: new Hold(), broker });
    await hub.start();
    const { cursor } = hub;
    await hub.publish({ topic: 'a', data });
    await broker.close();
    return cursor;
  };
  const cursor = await publish('1');
  await publish('2');
  const broker = await openBroker({ store });
  const hub = new Hub({ hold: new Hold(), broker, anonymous: true });
  await hub.start();
  const port = await listening(t, createServer(hub.handler));
  const client = await opener(t, port)(`${PATH}?match=a`, { 'Last-Event-ID': cursor });
  await until(() => datasOf(client).length === 2, 'both');
  assert.deepEqual(datasOf(client), ['1', '2']);
  client.close();
  await broker.close();
});
