/*
 * Responses that the native core can't take: of node:https, of HTTP/2 and behind middleware that compresses. A Hold of
 * either kind holds them in JS, beside what is held natively.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, get as getHttp } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { createServer as createHttpsServer, get as getHttps } from 'node:https';
import { createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { Duplex, pipeline } from 'node:stream';
import { describe, test } from 'node:test';
import { createGunzip } from 'node:zlib';
import { get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { compress } from './helpers/compress.js';
import { KINDS, listening, startHold } from './helpers/hold.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:http').ServerResponse | import('node:http2').Http2ServerResponse} Response */
/** @typedef {{ body: () => string, isClosed: () => boolean, close: () => void, pause: () => void }} Client */

/**
 * A way to ask a server for a stream.
 * @typedef {object} Way
 * @property {(answer: (response: Response) => void, tls: Tls) => import('node:net').Server} serve
 * @property {(port: number) => Client} open
 * @typedef {{ key: Buffer, cert: Buffer }} Tls
 */

const OWN_CONNECTION = { host: '127.0.0.1', agent: false };

/** @type {Record<string, Way>} */
const WAYS = {
  'node:https': {
    serve: (answer, tls) => createHttpsServer(tls, (_request, response) => answer(response)),
    open: (port) => httpClient(getHttps({ port, ...OWN_CONNECTION, rejectUnauthorized: false })),
  },
  'HTTP/2': {
    serve: (answer) => createHttp2Server((_request, response) => answer(response)),
    open: (port) => http2Client(`http://127.0.0.1:${port}`),
  },
  'HTTP/2 on TLS': {
    serve: (answer, tls) => createSecureServer(tls, (_request, response) => answer(response)),
    open: (port) => http2Client(`https://127.0.0.1:${port}`),
  },
  'HTTP/1.1 to a server of HTTP/2': {
    serve: (answer, tls) =>
      createSecureServer({ ...tls, allowHTTP1: true }, (_request, response) => answer(response)),
    open: (port) => httpClient(getHttps({ port, ...OWN_CONNECTION, rejectUnauthorized: false })),
  },
  'node:http behind compression': {
    serve: (answer) =>
      createServer((request, response) => {
        compress(request, response);
        answer(response);
      }),
    open: (port) => httpClient(getHttp({ port, ...OWN_CONNECTION, headers: { 'Accept-Encoding': 'gzip' } })),
  },
  'a connection without a descriptor': {
    serve: (answer) => {
      const inner = createServer((_request, response) => answer(response));
      return createNetServer((socket) => {
        const wrapped = Duplex.from({ readable: socket, writable: socket });
        wrapped.on('error', () => {});
        inner.emit('connection', wrapped);
      });
    },
    open: (port) => httpClient(getHttp({ port, ...OWN_CONNECTION })),
  },
};

/** @param {import('node:http').ClientRequest} request @returns {Client} */
function httpClient(request) {
  const client = { text: '', isClosed: false };
  /** @type {import('node:http').IncomingMessage | undefined} */
  let response;
  request.on('response', (given) => {
    response = given;
    const body =
      given.headers['content-encoding'] === 'gzip' ? pipeline(given, createGunzip(), () => {}) : given;
    body.on('data', (data) => {
      client.text += data;
    });
    given.on('close', () => {
      client.isClosed = true;
    });
  });
  request.on('error', () => {});
  return {
    body: () => client.text,
    isClosed: () => client.isClosed,
    close: () => request.destroy(),
    pause: () => void response?.socket.pause(),
  };
}

/** @param {string} url @returns {Client} */
function http2Client(url) {
  const client = { text: '', isClosed: false };
  const session = connectHttp2(url, { rejectUnauthorized: false });
  const stream = session.request({ ':path': '/' });
  stream.on('data', (data) => {
    client.text += data;
  });
  stream.on('close', () => {
    client.isClosed = true;
  });
  for (const each of [session, stream]) each.on('error', () => {});
  return {
    body: () => client.text,
    isClosed: () => client.isClosed,
    close: () => session.destroy(),
    pause: () => void stream.pause(),
  };
}

/** @param {import('node:test').TestContext} t @returns {Tls | null} null if there is no openssl to create one */
function makeTls(t) {
  const folder = temporaryFolder(t);
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const { error } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-subj', '/CN=localhost', '-days', '1', '-keyout', keyFile, '-out', certFile],
  ]);
  return error ? null : { key: readFileSync(keyFile), cert: readFileSync(certFile) };
}

/**
 * A server whose responses are all adopted.
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind @param {Way} way
 * @param {import('holdfast').HoldOptions} [options]
 */
async function startAdopting(t, kind, way, options) {
  const tls = makeTls(t);
  if (!tls) return null;
  const { hold, closes } = startHold(t, kind, options);
  /** @type {number[]} */
  const ids = [];
  /** @type {unknown[]} */
  const errors = [];
  const server = way.serve((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    /** @type {import('node:http').ServerResponse} */ (response).write('data: first\n\n');
    hold.adopt(response, { channels: ['news'] }).then(
      (id) => ids.push(id),
      (error) => {
        errors.push(error);
        response.end('not adopted');
      },
    );
  }, tls);
  const port = await listening(t, server);
  const open = () => {
    const client = way.open(port);
    t.after(client.close);
    return client;
  };
  return { hold, closes, ids, errors, open };
}

for (const kind of KINDS) {
  describe(`a stream held in JS (${kind})`, () => {
    for (const [name, way] of Object.entries(WAYS)) {
      test(`of ${name} is pinged, published to, sent to and ended`, async (t) => {
        const app = await startAdopting(t, kind, way, { pingIntervalMs: 50 });
        if (!app) return t.skip('openssl is not installed');
        const client = app.open();
        const id = await until(() => app.ids[0], 'the adoption');
        assert.equal(app.hold.counters().inJs, 1);
        await until(() => client.body().split(': ping\n\n').length > 2, 'two pings');
        const untilText = (/** @type {string} */ text) =>
          until(
            () => client.body().replaceAll(': ping\n\n', '') === text,
            () => `${text} in ${client.body()}`,
          );
        app.hold.publish('news', { id: '7', type: 'greeting', data: 'grüße' });
        app.hold.publish('other', 'nothing');
        const published = 'data: first\n\nevent: greeting\nid: 7\ndata: grüße\n\n';
        await untilText(published);
        app.hold.unsubscribe(id, 'news');
        app.hold.subscribe(id, 'other');
        app.hold.publish('news', 'nothing');
        app.hold.publish('other', 'something');
        await untilText(`${published}data: something\n\n`);
        app.hold.send(id, 'to you');
        app.hold.end(id);
        await until(client.isClosed, 'the end');
        await untilText(`${published}data: something\n\ndata: to you\n\n`);
        await until(() => app.closes.length === 1, 'onClose');
        assert.deepEqual(app.closes, [{ id, reason: 'drain' }]);
        const { inJs, streams, connections, closed } = app.hold.counters();
        assert.deepEqual([inJs, streams, connections, closed.drain], [0, 0, 0, 1]);
      });

      test(`of ${name} is reported as client-gone when its client disconnects`, async (t) => {
        const app = await startAdopting(t, kind, way);
        if (!app) return t.skip('openssl is not installed');
        const client = app.open();
        const id = await until(() => app.ids[0], 'the adoption');
        client.close();
        await until(() => app.closes.length === 1, 'onClose');
        assert.deepEqual(app.closes, [{ id, reason: 'client-gone' }]);
      });

      test(`of ${name} can get much at once, and is closed as slow only if its client does not read`, async (t) => {
        const app = await startAdopting(t, kind, way, { maxBacklogBytes: 1000 });
        if (!app) return t.skip('openssl is not installed');
        const [reader, idle] = [app.open(), app.open()];
        await until(() => app.ids.length === 2, 'the adoptions');
        for (let i = 0; i < 50; i++) app.hold.publish('news', noise(1000));
        app.hold.publish('news', 'the end');
        for (const client of [reader, idle])
          await until(() => client.body().includes('the end'), 'all of it');
        idle.pause();
        await until(() => {
          for (const id of app.ids) if (app.closes.length === 0) app.hold.send(id, noise(100_000));
          return app.closes.length > 0;
        }, 'the idle one is closed');
        assert.equal(app.closes.length, 1);
        assert.equal(app.closes[0].reason, 'slow');
        assert.equal(reader.isClosed(), false);
      });

      test(`of ${name} is ended when the Hold is closed`, async (t) => {
        const app = await startAdopting(t, kind, way);
        if (!app) return t.skip('openssl is not installed');
        const clients = [app.open(), app.open()];
        await until(() => app.ids.length === 2, 'the adoptions');
        app.hold.publish('news', 'last');
        await app.hold.close(1000);
        for (const client of clients) {
          await until(client.isClosed, 'the end');
          assert.equal(client.body(), 'data: first\n\ndata: last\n\n');
        }
        assert.deepEqual(
          app.closes.map(({ reason }) => reason),
          ['drain', 'drain'],
        );
        const late = app.open();
        await until(late.isClosed, 'the late one');
        assert.equal(late.body(), 'data: first\n\nnot adopted');
        assert.ok(withCode('CLOSED')(app.errors[0]));
      });
    }

    test('of HTTP/2 is not opened by a HEAD, which gets the head of the stream', async (t) => {
      const { hold, closes } = startHold(t, kind);
      const port = await listening(
        t,
        createHttp2Server((_request, response) => void hold.adopt(response)),
      );
      const session = connectHttp2(`http://127.0.0.1:${port}`);
      t.after(() => session.destroy());
      const stream = session.request({ ':path': '/', ':method': 'HEAD' });
      const [headers] = await once(stream, 'response');
      assert.deepEqual([headers[':status'], headers['content-type']], [200, 'text/event-stream']);
      await once(stream.resume(), 'end');
      await until(() => closes.length === 1, 'onClose');
      assert.equal(closes[0].reason, 'drain');
    });

    test('counts against a separate capacity', async (t) => {
      const app = await startAdopting(t, kind, WAYS['HTTP/2'], { capacity: 1 });
      if (!app) return t.skip('openssl is not installed');
      app.open();
      await until(() => app.ids.length === 1, 'the adoption');
      const second = app.open();
      await until(second.isClosed, 'the second');
      assert.ok(withCode('OVER_CAPACITY')(app.errors[0]));
      assert.ok(second.body().endsWith('not adopted'));
    });

    test('ends when the application ends its response', async (t) => {
      const { hold, closes } = startHold(t, kind);
      const server = createHttp2Server(async (_request, response) => {
        const id = await hold.adopt(response);
        hold.send(id, 'from the Hold');
        response.end();
      });
      const client = http2Client(`http://127.0.0.1:${await listening(t, server)}`);
      await until(client.isClosed, 'the end');
      assert.equal(client.body(), 'data: from the Hold\n\n');
      await until(() => closes.length === 1, 'onClose');
      assert.equal(closes[0].reason, 'drain');
      client.close();
    });

    for (const name of ['HTTP/2', 'a connection without a descriptor'])
      test(`of ${name} gets nothing more once its application has ended it, which is no error`, async (t) => {
        const { hold, closes } = startHold(t, kind);
        const tls = { key: Buffer.of(), cert: Buffer.of() }; // of no use to these two
        const server = WAYS[name].serve(async (response) => {
          const id = await hold.adopt(response, { channels: ['news'] });
          hold.send(id, 'the last one');
          response.end();
          hold.publish('news', 'late');
          hold.send(id, 'late');
        }, tls);
        const client = WAYS[name].open(await listening(t, server));
        t.after(client.close);
        await until(client.isClosed, 'the end');
        assert.equal(client.body(), 'data: the last one\n\n');
        await until(() => closes.length === 1, 'onClose');
        assert.equal(closes[0].reason, 'drain');
        assert.equal(hold.counters().deliveries, 1);
      });

    test('and one on a plain connection get the same message', async (t) => {
      const { hold } = startHold(t, kind);
      const adopt = (/** @type {any} */ _request, /** @type {Response} */ response) =>
        void hold.adopt(response, { channels: ['news'] });
      const plain = rawClient(await listening(t, createServer(adopt)), get());
      const http2 = http2Client(`http://127.0.0.1:${await listening(t, createHttp2Server(adopt))}`);
      await until(() => hold.counters().streams === 2, 'both');
      assert.equal(hold.counters().inJs, kind === 'native' ? 1 : 2);
      hold.publish('news', 'hello');
      await plain.untilRead(/data: hello\n\n/);
      await until(() => http2.body() === 'data: hello\n\n', 'the message');
      plain.close();
      http2.close();
    });
  });
}

/** @param {number} bytes @returns {string} that can't be compressed much */
function noise(bytes) {
  return randomBytes(bytes).toString('base64').slice(0, bytes);
}
