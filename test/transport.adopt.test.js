/*
 * Responses of node:http, Express and Fastify whose streams are taken over, and those that can't be. Every test runs with
 * the native core and without.
 */
import assert from 'node:assert/strict';
import { createServer, get as getHttp } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import express from 'express';
import fastify from 'fastify';
import { chunksOf, get, leavingClient, rawClient } from './helpers/client.js';
import { KINDS, listening, NEEDS_NATIVE, startHold } from './helpers/hold.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => unknown} Answer */

const EVENTS = { 'Content-Type': 'text/event-stream' };

/** @type {Record<string, (answer: Answer) => import('node:http').Server | Promise<import('node:http').Server>>} */
const FRAMEWORKS = {
  'node:http': (answer) => createServer(answer),
  Express: (answer) => {
    const app = express();
    app.get('/', (request, response) => void answer(request, response));
    return createServer(app);
  },
  Fastify: async (answer) => {
    const app = fastify();
    app.get('/', (request, reply) => {
      reply.hijack();
      void answer(request.raw, reply.raw);
    });
    await app.ready();
    return app.server;
  },
};

/** @type {{ name: string, encoding: import('holdfast').Encoding, type: string, version: string, frame: (message: string) => string, ping: string }[]} */
const FORMS = [
  {
    name: 'events',
    encoding: 'events',
    type: 'text/event-stream',
    version: '1.1',
    frame: (m) => `data: ${m}\n\n`,
    ping: ': ping\n\n',
  },
  {
    name: 'events to HTTP/1.0',
    encoding: 'events',
    type: 'text/event-stream; charset=utf-8',
    version: '1.0',
    frame: (m) => `data: ${m}\n\n`,
    ping: ': ping\n\n',
  },
  {
    name: 'plain text',
    encoding: 'text',
    type: 'text/plain; charset=utf-8',
    version: '1.1',
    frame: (m) => m,
    ping: 'ping',
  },
  {
    name: 'lines of JSON',
    encoding: 'ndjson',
    type: 'application/x-ndjson',
    version: '1.1',
    frame: (m) => `${JSON.stringify({ data: m })}\n`,
    ping: '\n',
  },
];

/** @param {string} response @param {string} version @returns {string} its body, as far as it is here */
function bodyOf(response, version) {
  return version === '1.0' ? response.slice(response.indexOf('\r\n\r\n') + 4) : chunksOf(response).join('');
}

/** @param {import('node:net').Server} server @returns {Promise<number>} */
function connectionsOf(server) {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

/** @typedef {(response: import('node:http').ServerResponse, how?: { channels?: string[], encoding?: import('holdfast').Encoding }) => Promise<boolean>} Adopt */

/**
 * A server with a Hold, and the results of its adoptions.
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind
 * @param {(adopt: Adopt, hold: import('../transport/holder.js').StreamHolder) => Answer} answer
 * @param {object} [how]
 * @param {import('holdfast').HoldOptions} [how.options]
 * @param {string} [how.framework]
 */
async function startAdopting(t, kind, answer, { options = {}, framework = 'node:http' } = {}) {
  const { hold, closes } = startHold(t, kind, options);
  /** @type {number[]} */
  const ids = [];
  /** @type {import('holdfast').HoldfastError[]} */
  const errors = [];
  const server = await FRAMEWORKS[framework](
    answer(
      (response, how) =>
        hold.adopt(response, how).then(
          (id) => {
            ids.push(id);
            return true;
          },
          (error) => {
            errors.push(error);
            return false;
          },
        ),
      hold,
    ),
  );
  const port = await listening(t, server);
  return { hold, closes, ids, errors, server, port };
}

/** @param {{ errors: import('holdfast').HoldfastError[] }} app @param {RegExp} why */
async function untilRefused({ errors }, why) {
  const error = await until(() => errors[0], 'a refusal');
  assert.equal(error.code, 'NOT_ADOPTABLE');
  assert.match(error.message, why);
  assert.doesNotMatch(error.message, /\n/);
}

for (const kind of KINDS) {
  describe(`a response (${kind})`, () => {
    for (const framework of Object.keys(FRAMEWORKS)) {
      for (const { name, encoding, type, version, frame, ping } of FORMS) {
        test(`of ${framework} is adopted as ${name}: pinged, published to, sent to, and ended`, async (t) => {
          const app = await startAdopting(
            t,
            kind,
            (adopt) => (_request, response) => {
              response.writeHead(200, { 'content-type': type, 'Cache-Control': 'no-store' });
              response.write(frame('first'));
              void adopt(response, { channels: ['news'], encoding });
            },
            { framework, options: { pingIntervalMs: 50 } },
          );
          const client = rawClient(app.port, get({}, version));
          const body = () => bodyOf(client.received, version);
          const untilBody = (/** @type {string} */ text) =>
            until(
              () => body().replaceAll(ping, '') === text.replaceAll(ping, ''),
              () => `${text} in ${body()}`,
            );
          const id = await until(() => app.ids.length === 1 && app.ids, 'the adoption').then(([one]) => one);
          if (kind === 'native')
            await until(async () => (await connectionsOf(app.server)) === 0, 'JS let go of it');
          assert.equal(app.hold.counters().inJs, kind === 'native' ? 0 : 1);
          await until(() => body().split(ping).length > 2, 'two pings');
          assert.ok(body().startsWith(frame('first')));
          app.hold.publish('news', 'grüße');
          app.hold.publish('other', 'nothing');
          const published = frame('first') + Buffer.from(frame('grüße')).toString('latin1');
          await untilBody(published);
          app.hold.send(id, 'to you');
          await untilBody(published + frame('to you'));
          assert.equal(client.closed, false);
          app.hold.end(id);
          await client.untilClosed();
          assert.equal(/transfer-encoding: chunked/i.test(client.received), version === '1.1');
          if (version === '1.1') assert.ok(client.received.endsWith('\r\n0\r\n\r\n'));
          await until(() => app.closes.length === 1, 'onClose');
          assert.deepEqual(app.closes, [{ id, reason: 'drain' }]);
        });
      }
    }

    test('sends its head if that was not sent yet, with or without writeHead', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (request, response) => {
        if (request.headers.how === 'writeHead') response.writeHead(200, EVENTS);
        else if (request.headers.how === 'setHeader') response.setHeader('Content-Type', 'text/event-stream');
        void adopt(response, { channels: ['news'] });
      });
      const clients = ['writeHead', 'setHeader'].map((how) => rawClient(app.port, get({ how })));
      await until(() => app.ids.length === 2, 'the adoptions');
      app.hold.publish('news', 'hello');
      for (const client of clients) {
        await client.untilRead(/data: hello\n\n/);
        assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n/);
        assert.deepEqual(chunksOf(client.received), ['data: hello\n\n']);
        client.close();
      }
    });

    test('first sends everything that was written to it, even to a slow reader', async (t) => {
      const megabytes = 'x'.repeat(5_000_000);
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => {
        response.writeHead(200);
        response.cork();
        response.write(megabytes);
        void adopt(response, { channels: ['news'], encoding: 'text' });
        response.write('written while it is on its way');
      });
      const client = rawClient(app.port, get());
      client.socket.pause();
      await until(async () => (await connectionsOf(app.server)) === 1, 'the connection');
      assert.equal(app.ids.length, 0);
      client.socket.on('data', () => {
        client.socket.pause();
        setImmediate(() => client.socket.resume());
      });
      client.socket.resume();
      await until(() => app.ids.length === 1, 'the adoption');
      app.hold.publish('news', 'and then this');
      await until(() => client.received.endsWith('and then this\r\n'), 'what was published');
      const body = chunksOf(client.received).join('');
      assert.ok(body === `${megabytes}written while it is on its wayand then this`);
      client.close();
    });

    test('is reported as client-gone when its client disconnects', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => void adopt(response));
      const clients = [rawClient(app.port, get()), rawClient(app.port, get())];
      await until(() => app.ids.length === 2, 'the adoptions');
      clients[0].socket.end();
      clients[1].socket.resetAndDestroy();
      await until(() => app.closes.length === 2, 'two ends');
      assert.deepEqual(new Set(app.closes.map(({ id }) => id)), new Set(app.ids));
      assert.deepEqual(
        app.closes.map(({ reason }) => reason),
        ['client-gone', 'client-gone'],
      );
    });

    test('is adopted at the same time as many others, by a few shards', async (t) => {
      const COUNT = 400;
      /** @type {import('node:http').ServerResponse[]} */
      const responses = [];
      const app = await startAdopting(
        t,
        kind,
        (adopt) => (_request, response) => {
          responses.push(response);
          if (responses.length < COUNT) return;
          for (const each of responses) void adopt(each, { channels: ['news'], encoding: 'text' });
        },
        { options: { shards: 2 } },
      );
      const clients = Array.from({ length: COUNT }, () => rawClient(app.port, get()));
      await until(
        () => app.ids.length === COUNT,
        () => `all adoptions, and not ${app.ids.length}`,
      );
      assert.equal(new Set(app.ids).size, COUNT);
      app.hold.publish('news', 'to all');
      await until(() => clients.every(({ received }) => received.endsWith('to all\r\n')), 'all have it');
      for (const client of clients) client.close();
      await until(() => app.closes.length === COUNT, 'all ends are told');
    });

    test('on a Unix socket is adopted too', async (t) => {
      const path = join(temporaryFolder(t), 'socket');
      const { hold } = startHold(t, kind, { pingIntervalMs: 20 });
      const server = createServer((_request, response) => {
        response.write('first');
        void hold.adopt(response, { encoding: 'text' });
      });
      await new Promise((resolve) => server.listen(path, () => resolve(undefined)));
      t.after(() => server.close());
      const response = await new Promise((resolve, reject) =>
        getHttp({ socketPath: path }, resolve).on('error', reject),
      );
      let body = '';
      for await (const data of response) {
        body += data;
        if (body.includes('pingping')) break;
      }
      assert.match(body, /^first(ping)+$/);
    });

    test('to the second request on a connection is adopted', async (t) => {
      let requests = 0;
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => {
        if (++requests === 1) return response.end('first');
        response.writeHead(200, EVENTS);
        return adopt(response, { channels: ['news'] });
      });
      const client = rawClient(app.port, get());
      await client.untilRead(/first/);
      client.received = '';
      client.send(get());
      await until(() => app.ids.length === 1, 'the adoption');
      app.hold.publish('news', 'second');
      await client.untilRead(/data: second\n\n/);
      const messages = chunksOf(client.received).filter((chunk) => !chunk.startsWith(': '));
      assert.deepEqual(messages, ['data: second\n\n']);
      client.close();
    });

    test('to a POST is adopted once its body has been read', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (request, response) => {
        let body = '';
        for await (const data of request) body += data;
        response.writeHead(200, EVENTS);
        response.write(`data: ${body.length}\n\n`);
        await adopt(response, { channels: ['news'] });
      });
      const client = rawClient(
        app.port,
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
      );
      await until(() => app.ids.length === 1, 'the adoption');
      app.hold.publish('news', 'hello');
      await client.untilRead(/hello/);
      assert.deepEqual(chunksOf(client.received), ['data: 200000\n\n', 'data: hello\n\n']);
      client.close();
    });

    test('is not adopted until its request has been read to the end, and still works', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (request, response) => {
        await adopt(response);
        request.resume().on('end', () => response.end('all is read'));
      });
      const client = rawClient(app.port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nhe');
      await untilRefused(app, /its request was not read to the end$/);
      client.send('re');
      await client.untilRead(/all is read/);
      client.close();
    });

    test('is not adopted if its client has sent another request, and both are answered', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (_request, response) => {
        await adopt(response);
        response.end('answered');
      });
      const client = rawClient(app.port, get() + get({ Connection: 'close' }));
      await client.untilClosed();
      assert.equal(client.received.split('answered').length, 3);
      await until(() => app.errors.length === 2, 'two refusals');
      assert.match(app.errors[0].message, /an earlier response on the same connection has not ended$/);
      assert.match(app.errors[1].message, /its client sent another request after it$/);
    });

    test('ends as a bad request if its client sends more, even if that began before the adoption', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => void adopt(response));
      for (const [before, after] of [
        ['GET / HT', 'TP/1.1\r\nHost: a\r\n\r\n'],
        ['', get()],
      ]) {
        const client = rawClient(app.port, get() + before);
        const { length } = app.closes;
        await until(() => app.ids.length === length + 1, 'the adoption');
        client.send(after);
        await client.untilClosed();
        await until(() => app.closes.length === length + 1, 'onClose');
        assert.equal(app.closes[length].reason, 'bad-request');
      }
    });

    /** @type {[string, RegExp, (response: import('node:http').ServerResponse) => unknown][]} */
    const REFUSED = [
      ['that has ended', /it has ended$/, (response) => response.end('whole')],
      ['with a Content-Length', /Content-Length/, (response) => response.setHeader('Content-Length', 2)],
      [
        'with a Content-Length given to writeHead',
        /Content-Length/,
        (response) => response.writeHead(200, { 'content-length': 2 }),
      ],
      [
        'with a Content-Encoding but no compression',
        /no middleware compresses what is written to it$/,
        (response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }),
      ],
      ['of 204', /its status is 204: set it to 200 first$/, (response) => response.writeHead(204)],
      [
        'of 404, with which Koa begins,',
        /its status is 404: set it to 200 first$/,
        (response) => {
          response.statusCode = 404;
        },
      ],
    ];
    for (const [name, why, prepare] of REFUSED) {
      test(`${name} is not adopted`, async (t) => {
        const app = await startAdopting(t, kind, (adopt) => async (_request, response) => {
          prepare(response);
          await adopt(response);
          if (!response.writableEnded) response.end(response.hasHeader('Content-Length') ? 'ok' : undefined);
        });
        const client = rawClient(app.port, get());
        await untilRefused(app, why);
        client.close();
      });
    }

    for (const framework of Object.keys(FRAMEWORKS)) {
      test(`of ${framework} to a HEAD gets the head of the stream; its connection can be used again`, async (t) => {
        const app = await startAdopting(
          t,
          kind,
          (adopt) => (request, response) => {
            if (request.headers.how === 'writeHead') response.writeHead(200, EVENTS);
            if (request.headers.how === 'written') response.write('data: hello\n\n');
            void adopt(response, { channels: ['news'] });
          },
          { framework },
        );
        const client = rawClient(app.port);
        for (const how of ['setDefaults', 'writeHead', 'written']) {
          client.received = '';
          client.send(get({ how }).replace('GET', 'HEAD'));
          await client.untilRead(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
          if (how === 'setDefaults')
            assert.match(
              client.received,
              /text\/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no/,
            );
        }
        await until(() => app.closes.length === 3, 'onClose');
        assert.deepEqual(
          app.closes,
          app.ids.map((id) => ({ id, reason: 'drain' })),
        );
        const { streams, opened, closed } = app.hold.counters();
        assert.deepEqual([streams, opened, closed.drain, app.errors.length], [0, 3, 3, 0]);
        client.received = '';
        client.send(get());
        await until(() => app.ids.length === 4, 'the adoption of a GET');
        app.hold.publish('news', 'hello');
        await client.untilRead(/data: hello/);
        client.close();
      });
    }

    test('counts as a stream that opened and closed if its client has disconnected', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => {
        response.socket?.destroy();
        void adopt(response);
      });
      rawClient(app.port, get());
      await until(() => app.closes.length === 1, 'onClose');
      assert.deepEqual(app.closes, [{ id: app.ids[0], reason: 'client-gone' }]);
      const { streams, opened, closed } = app.hold.counters();
      assert.deepEqual([streams, opened, closed['client-gone'], app.errors.length], [0, 1, 1, 0]);
    });

    test('counts as a stream that opened and closed if its client disconnects during the adoption', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => {
        response.write('x'.repeat(5_000_000));
        void adopt(response);
      });
      const client = rawClient(app.port, get());
      client.socket.pause();
      await until(async () => (await connectionsOf(app.server)) === 1, 'the connection');
      client.socket.resetAndDestroy();
      await until(() => app.closes.length === 1, 'onClose');
      assert.deepEqual(app.closes, [{ id: app.ids[0], reason: 'client-gone' }]);
    });

    test('never fails because its client leaves, at whatever moment', async (t) => {
      let requests = 0;
      const app = await startAdopting(
        t,
        kind,
        (adopt) => async (_request, response) => {
          if (++requests % 3 === 0) response.write('data: hello\n\n');
          if (requests % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
          if (requests % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
          void adopt(response, { channels: ['news'] });
        },
        { options: { shards: 2 } },
      );
      const clients = Array.from({ length: 500 }, (_, i) => leavingClient(app.port, get(), i));
      for (const client of clients) await client.untilClosed();
      await until(async () => (await connectionsOf(app.server)) === 0, 'node:http has none left');
      await until(
        () => app.ids.length + app.errors.length === requests && app.closes.length === app.ids.length,
        () => `an end for each: ${requests} ${app.ids.length} ${app.closes.length} ${app.errors}`,
      );
      assert.deepEqual(app.errors, []);
      const ended = app.closes.map(({ id }) => id);
      assert.deepEqual(ended.sort(), [...app.ids].sort());
      const { streams, opened, closed } = app.hold.counters();
      assert.deepEqual([streams, opened, closed['client-gone']], [0, requests, requests]);
    });

    test('without a head gets the default headers of a stream, unless the application has set them', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (request, response) => {
        if (request.headers.own) response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
        void adopt(response, { encoding: request.headers.text ? 'text' : 'events' });
      });
      /** @type {[Record<string, string>, RegExp][]} */
      const cases = [
        [{}, /\r\nContent-Type: text\/event-stream\r\nCache-Control: no-store\r\n/],
        [{ Own: '1' }, /\r\nContent-Type: text\/event-stream; charset=utf-8\r\nCache-Control: no-store\r\n/],
        [
          { Text: '1' },
          /\r\nContent-Type: text\/plain; charset=utf-8\r\n[\s\S]*X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff/,
        ],
      ];
      for (const [headers, pattern] of cases) {
        const client = rawClient(app.port, get(headers));
        await client.untilRead(pattern);
        client.close();
      }
    });

    test('that ends during the adoption is not adopted, and ends properly', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => (_request, response) => {
        response.write('all ');
        void adopt(response);
        response.end('of it');
      });
      const client = rawClient(app.port, get({ Connection: 'close' }));
      await client.untilClosed();
      assert.deepEqual(chunksOf(client.received), ['all ', 'of it', '']);
      await untilRefused(app, /it has ended$/);
    });

    test('can be adopted only once', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (_request, response) => {
        await Promise.all([adopt(response), adopt(response)]);
        await adopt(response);
      });
      const client = rawClient(app.port, get());
      await until(() => app.errors.length === 2 && app.ids.length === 1, 'an adoption and two refusals');
      for (const { code, message } of app.errors) {
        assert.equal(code, 'NOT_ADOPTABLE');
        assert.match(message, /it was adopted already$/);
      }
      app.hold.send(app.ids[0], 'still open');
      await client.untilRead(/still open/);
      client.close();
    });

    test('over the capacity stays with the application, and so does its connection', async (t) => {
      const app = await startAdopting(
        t,
        kind,
        (adopt) => async (_request, response) => {
          if (!(await adopt(response))) response.end('there is no room');
        },
        { options: { capacity: 1 } },
      );
      const first = rawClient(app.port, get());
      await until(() => app.ids.length === 1, 'the adoption');
      const second = rawClient(app.port, get());
      for (const count of [2, 3]) {
        await until(() => second.received.split('no room').length === count, 'an answer');
        second.send(get());
      }
      assert.equal(app.errors[0].code, 'OVER_CAPACITY');
      first.close();
      await until(() => app.closes.length === 1, 'there is room again');
      second.send(get());
      await until(() => app.ids.length === 2, 'the second is adopted, on the connection it has');
      second.close();
    });

    test('is not adopted by a Hold that is closing, or was closed', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (_request, response) => {
        if (!(await adopt(response))) response.end('too late');
      });
      const held = rawClient(app.port, get());
      await until(() => app.ids.length === 1, 'the adoption');
      const closed = app.hold.close(300);
      const late = rawClient(app.port, get());
      await late.untilRead(/too late/);
      await closed;
      await held.untilClosed();
      const later = rawClient(app.port, get());
      await later.untilRead(/too late/);
      assert.deepEqual(
        app.errors.map(({ code }) => code),
        ['CLOSED', 'CLOSED'],
      );
      late.close();
      later.close();
    });

    test('whose adoption is in progress when the Hold is closed stays with the application', async (t) => {
      const app = await startAdopting(t, kind, (adopt, hold) => async (_request, response) => {
        response.write('begun ');
        const adopted = adopt(response);
        await hold.close();
        await adopted;
        response.end('and ended by the application');
      });
      const client = rawClient(app.port, get({ Connection: 'close' }));
      await client.untilClosed();
      assert.deepEqual(chunksOf(client.received), ['begun ', 'and ended by the application', '']);
      assert.equal(app.errors[0].code, 'CLOSED');
    });

    test('subscribes to the channels that were given, even if the list is changed later', async (t) => {
      const { hold, ids, errors, port } = await startAdopting(t, kind, (adopt) => async (_, response) => {
        const channels = ['news'];
        const adopted = adopt(response, { channels });
        channels.push(.../** @type {any[]} */ ([5]), ...Array(70_000).fill('x'));
        await adopted;
      });
      const client = rawClient(port, get());
      await until(() => ids.length + errors.length === 1, 'the adoption');
      assert.deepEqual(errors, []);
      hold.publish('news', 'hello');
      await client.untilRead(/hello/);
      client.close();
    });

    test('has the channels that were checked, even if its list says something else each time', async (t) => {
      const { hold, ids, errors, port } = await startAdopting(t, kind, (adopt) => async (_, response) => {
        let reads = 0;
        const channels = Object.defineProperty([''], 0, { get: () => (reads++ === 0 ? 'news' : 5) });
        await adopt(response, { channels });
      });
      const client = rawClient(port, get());
      await until(() => ids.length + errors.length === 1, 'the adoption');
      assert.deepEqual(errors, []);
      assert.equal(await hold.publish('news', 'hello'), 1);
      client.close();
    });

    test('is reported as closed before the Hold is, even if it was adopted a moment ago', async (t) => {
      /** @type {number[]} */
      const late = [];
      for (let i = 0; i < 40; i++) {
        let isClosed = false;
        const { hold } = startHold(t, kind, { onClose: (id) => void (isClosed && late.push(id)) });
        const server = createServer((_, response) => void hold.adopt(response).catch(() => response.end()));
        const port = await listening(t, server);
        const clients = Array.from({ length: 5 }, () => rawClient(port, get()));
        await wait(i % 8);
        await hold.close();
        isClosed = true;
        await wait(2);
        for (const client of clients) client.close();
      }
      assert.deepEqual(late, []);
    });

    test('with invalid arguments is refused, and still works', async (t) => {
      const app = await startAdopting(t, kind, (adopt) => async (_request, response) => {
        await adopt(response, { channels: /** @type {any} */ ([5]) });
        await adopt(response, { channels: /** @type {any} */ ('news') });
        await adopt(response, { channels: ['a lone \ud800 surrogate'] });
        await adopt(response, /** @type {any} */ ({ channel: 'news' }));
        await adopt(response, { encoding: /** @type {any} */ ('json') });
        await adopt(/** @type {any} */ (undefined));
        await adopt(/** @type {any} */ ({ raw: response }));
        await adopt(response, { channels: Array.from({ length: 1000 }, (_, i) => `a-long-name-${i}`) });
        response.end('an answer');
      });
      const client = rawClient(app.port, get());
      await client.untilRead(/an answer/);
      assert.deepEqual(
        app.errors.map(({ code }) => code),
        Array(8).fill('BAD_ARGUMENT'),
      );
      client.close();
    });
  });
}

test(
  'a response that can not be adopted because no descriptor is left stays with the application',
  NEEDS_NATIVE,
  async (t) => {
    const { hold } = startHold(t, 'native');
    const EMFILE = 24;
    const adopt = () => {
      throw new Error(`errno ${EMFILE}`); // as native reports it
    };
    Object.assign(hold.shards?.core ?? {}, { adopt });
    const server = createServer(async (_request, response) => {
      const error = await hold.adopt(response).catch((reason) => reason);
      response.end(`${error.code}: ${error.message}`);
    });
    const client = rawClient(await listening(t, server), get());
    await client.untilRead(/OVER_CAPACITY: the stream can't be held: no file descriptor is left/);
    client.close();
  },
);
