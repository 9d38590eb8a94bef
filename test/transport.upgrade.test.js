/*
 * hold.upgrade: WebSockets of an application's own server. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { describe, test } from 'node:test';
import express from 'express';
import { WebSocket } from 'ws';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { ACCEPT, closeIn, frame, handshake, messagesIn, webSocketClient } from './helpers/frames.js';
import { KINDS, listening, NEEDS_NATIVE, startHold } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('./helpers/hold.js').Kind} Kind */
/** @typedef {import('holdfast').UpgradeOptions} UpgradeOptions */

/**
 * A server of an application, whose WebSockets a Hold takes.
 * @param {TestContext} t @param {Kind} kind
 * @param {UpgradeOptions | (() => UpgradeOptions)} [options] @param {import('holdfast').HoldOptions} [how]
 * @param {import('node:http').Server} [server]
 */
async function startServer(t, kind, options = {}, how = {}, server = createServer()) {
  /** @type {{ id: number, data: string }[]} */
  const said = [];
  /** @type {number[]} */
  const ids = [];
  /** @type {any[]} */
  const errors = [];
  const { hold, closes } = startHold(t, kind, {
    onMessage: (id, data) => void said.push({ id, data }),
    ...how,
  });
  server.on('upgrade', (request, socket, head) => {
    hold.upgrade(request, socket, head, typeof options === 'function' ? options() : options).then(
      (id) => ids.push(id),
      (error) => errors.push(error),
    );
  });
  const port = await listening(t, server);
  const open = async (/** @type {Record<string, string>} */ headers = {}) => {
    const client = webSocketClient(port, '/', headers);
    t.after(client.close);
    await client.untilRead(/\r\n\r\n/);
    return client;
  };
  return { hold, closes, said, ids, errors, port, open };
}

/** @param {{ received: string }} client @param {number} count */
const messages = (client, count) =>
  until(
    () => messagesIn(client.received).length >= count && messagesIn(client.received),
    () => `${count} messages in ${JSON.stringify(client.received)}`,
  );

for (const kind of KINDS) {
  describe(`hold.upgrade (${kind})`, () => {
    test('makes a WebSocket of a request, with its channels, headers and labels', async (t) => {
      const { hold, closes, said, ids, open } = await startServer(t, kind, {
        channels: ['a'],
        headers: { 'X-Own': 'grün' },
        labels: { subject: 7 },
        tag: 'one',
      });
      const client = await open();
      const lines = client.received.split('\r\n\r\n')[0].split('\r\n');
      assert.equal(lines[0], 'HTTP/1.1 101 Switching Protocols');
      assert.ok(
        lines.includes(`Sec-WebSocket-Accept: ${ACCEPT}`) &&
          lines.some((line) => line.startsWith('X-Own: gr')),
      );
      await until(() => ids.length === 1, 'its id');
      hold.publish('a', 'x');
      hold.send(ids[0], 'y');
      assert.deepEqual(await messages(client, 2), ['x', 'y']);
      client.socket.write(frame('text', 'hello'));
      await until(() => said.length === 1, 'what it said');
      assert.deepEqual(said, [{ id: ids[0], data: 'hello' }]);
      assert.equal(hold.counters().inJs, kind === 'native' ? 0 : 1);
      assert.deepEqual([hold.counters().streams, hold.counters().connections], [1, 1]);
      hold.endLabelled('subject', 7, 'revoked');
      await client.untilClosed();
      assert.equal(closeIn(client.received)?.code, 1008);
      await until(() => closes.length === 1, 'its end');
      assert.deepEqual(closes, [{ id: ids[0], reason: 'revoked' }]);
      assert.deepEqual([hold.counters().streams, hold.counters().connections], [0, 0]);
    });

    test('writes the welcome before anything else', async (t) => {
      const { hold, ids, open } = await startServer(t, kind, {
        channels: ['a'],
        encoding: 'websocketUpdates',
        welcome: '{"a":1}\n{"b":2}\n',
      });
      const publishing = setInterval(() => hold.publish('a', 'x'), 1);
      t.after(() => clearInterval(publishing));
      const clients = await Promise.all([open(), open(), open()]);
      await until(() => ids.length === 3, 'all are open');
      for (const client of clients)
        assert.deepEqual((await messages(client, 3)).slice(0, 3), ['{"a":1}', '{"b":2}', '{"data":"x"}']);
    });

    test('can wait for something before', async (t) => {
      const server = createServer();
      const { hold } = startHold(t, kind);
      /** @type {Promise<number>[]} */
      const opened = [];
      server.on('upgrade', async (request, socket, head) => {
        await new Promise((resolve) => setImmediate(resolve));
        opened.push(hold.upgrade(request, socket, head, { channels: ['a'] }));
      });
      const client = webSocketClient(await listening(t, server), '/');
      await client.untilRead(/\r\n\r\n/);
      await opened[0];
      hold.publish('a', 'x');
      await messages(client, 1);
      client.close();
    });

    test('refuses what is no proper request, and says why', async (t) => {
      const { hold, errors, port } = await startServer(t, kind);
      /** @type {[number, RegExp, string | Buffer][]} */
      const cases = [
        [426, /Sec-WebSocket-Version is not 13/, handshake('/', { 'Sec-WebSocket-Version': '8' })],
        [426, /no header Upgrade: websocket/, handshake('/', { Upgrade: 'h2c' })],
        [405, /method is POST/, handshake('/', {}, 'POST')],
        [400, /Sec-WebSocket-Key/, handshake('/', { 'Sec-WebSocket-Key': 'x' })],
        [400, /before it got the response/, Buffer.concat([Buffer.from(handshake('/')), frame('text', 'a')])],
      ];
      for (const [status, why, request] of cases) {
        const client = rawClient(port);
        client.socket.write(request);
        await client.untilClosed();
        assert.match(client.received, new RegExp(`^HTTP/1.1 ${status} `));
        assert.equal(client.received.includes('\r\nConnection: close\r\n'), true);
        const error = errors.pop();
        assert.equal(error?.code, 'NOT_ADOPTABLE');
        assert.match(error.message, why);
      }
      assert.equal(hold.counters().opened, 0);
      assert.equal(hold.counters().refused[400], 2);
    });

    test('refuses with 503 if there is no room, or the Hold is closed', async (t) => {
      const { hold, errors, port, open } = await startServer(t, kind, {}, { capacity: 1 });
      await open();
      const second = webSocketClient(port, '/');
      await second.untilClosed();
      if (kind === 'JS') assert.match(second.received, /^HTTP\/1\.1 503 /);
      assert.equal(errors.pop()?.code, 'OVER_CAPACITY');
      await hold.close();
      const third = webSocketClient(port, '/');
      await third.untilClosed();
      assert.match(third.received, /^HTTP\/1\.1 503 /);
      assert.equal(errors.pop()?.code, 'CLOSED');
    });

    test('opens and closes at once if the client has left', async (t) => {
      const server = createServer();
      const { hold, closes } = startHold(t, kind);
      /** @type {number[]} */
      const ids = [];
      server.on('upgrade', async (request, socket, head) => {
        socket.on('error', () => {});
        client.socket.resetAndDestroy();
        await new Promise((resolve) => socket.once('close', resolve).resume());
        ids.push(await hold.upgrade(request, socket, head));
      });
      const client = webSocketClient(await listening(t, server), '/');
      await until(() => closes.length === 1, 'its end');
      assert.deepEqual(closes, [{ id: ids[0], reason: 'client-gone' }]);
    });

    test('takes nothing else, and answers nothing then', async (t) => {
      const { hold } = startHold(t, kind);
      const { errors, port } = await startServer(t, kind, { channels: /** @type {any} */ (5) });
      const client = webSocketClient(port, '/');
      t.after(client.close);
      await until(() => errors.length === 1, 'an error');
      assert.equal(errors[0].code, 'BAD_ARGUMENT');
      assert.equal(client.received, '');
      const call = (/** @type {any[]} */ ...args) => /** @type {any} */ (hold).upgrade(...args);
      await assert.rejects(call({}, {}, Buffer.alloc(0)), withCode('BAD_ARGUMENT'));
      await assert.rejects(
        call({ headers: {} }, {}, Buffer.alloc(0), { encoding: 'text' }),
        withCode('BAD_ARGUMENT'),
      );
      await assert.rejects(
        call({ headers: {} }, {}, Buffer.alloc(0), { headers: { Upgrade: 'h2c' } }),
        withCode('BAD_ARGUMENT'),
      );
      await assert.rejects(
        call({ headers: {} }, {}, Buffer.alloc(0), { chanels: [] }),
        withCode('BAD_ARGUMENT'),
      );
      await assert.rejects(
        hold.adopt(/** @type {any} */ ({}), { encoding: 'websocket' }),
        withCode('BAD_ARGUMENT', /call hold\.upgrade/),
      );
    });

    test('works beside the routes of Express, and with the server that a Hold passes requests to', async (t) => {
      const app = express();
      app.get('/', (_, response) => void response.send('a page'));
      const server = createServer(app);
      const { hold } = startHold(t, kind, { server });
      server.on(
        'upgrade',
        (request, socket, head) => void hold.upgrade(request, socket, head, { channels: ['a'] }),
      );
      const own = await listening(t, server);
      const passed = await hold.listen(0, '127.0.0.1');
      for (const port of [own, passed]) {
        assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'a page');
        const client = new WebSocket(`ws://127.0.0.1:${port}/`);
        /** @type {string[]} */
        const heard = [];
        client.onmessage = ({ data }) => void heard.push(String(data));
        await until(() => client.readyState === WebSocket.OPEN, 'it is open');
        await until(async () => (await hold.publish('a', 'x')) > 0, 'it listens');
        await until(() => heard.length > 0, 'a message');
        client.terminate();
        await until(() => hold.counters().streams === 0, 'its end');
      }
    });

    test('works with node:https', NEEDS_TLS, async (t) => {
      const server = createSecureServer(makeCertificate(t).read());
      const { hold, port, said, ids } = await startServer(t, kind, { channels: ['a'] }, {}, server);
      const client = new WebSocket(`wss://127.0.0.1:${port}/`, { rejectUnauthorized: false });
      /** @type {string[]} */
      const heard = [];
      client.onmessage = ({ data }) => void heard.push(String(data));
      await until(() => ids.length === 1, 'it is open');
      hold.publish('a', 'grüße');
      await until(() => heard.length === 1, 'a message');
      client.send('hello');
      await until(() => said.length === 1, 'what it said');
      assert.equal(hold.counters().inJs, 1);
      client.close();
      await until(() => hold.counters().streams === 0, 'its end');
    });
  });
}

describe('a Hold that listens with TLS', { ...NEEDS_NATIVE, ...NEEDS_TLS }, () => {
  test('takes back the WebSockets that it has passed on', async (t) => {
    const server = createServer();
    const { hold } = startHold(t, 'native', {
      server,
      onMessage: (id, data) => void hold.send(id, `you said ${data}`),
    });
    server.on('upgrade', (request, socket, head) => {
      void hold.upgrade(request, socket, head, { channels: ['a'], welcome: 'Welcome!' });
    });
    const port = await hold.listen(0, '127.0.0.1', { tls: makeCertificate(t).read() });
    const client = new WebSocket(`wss://127.0.0.1:${port}/`, { rejectUnauthorized: false });
    /** @type {string[]} */
    const heard = [];
    client.onmessage = ({ data }) => void heard.push(String(data));
    await until(() => heard.length === 1, 'the welcome');
    client.send('hello');
    await until(() => heard.length === 2, 'an answer');
    assert.deepEqual(heard, ['Welcome!', 'you said hello']);
    assert.deepEqual([hold.counters().streams, hold.counters().inJs], [1, 0]);
    client.close();
    await until(() => hold.counters().streams === 0, 'its end');
  });
});
