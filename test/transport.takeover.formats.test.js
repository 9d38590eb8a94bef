/*
 * Clients of every kind, while another process takes over their connections.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { bodyOf, get, rawClient } from './helpers/client.js';
import { closing, frame, framed } from './helpers/frames.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { newPath, startReady } from './helpers/takeover.js';
import { tlsClient } from './helpers/tlsclient.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

for (const isTls of [false, true]) {
  /** @param {TestContext} t */
  const start = async (t) => {
    const path = newPath(t);
    const { cert = '', key = '' } = isTls ? makeCertificate(t) : {};
    const pair = isTls ? { cert, key } : undefined;
    const old = await startReady(t, { path, name: 'old', pair });
    const connect = () => {
      const client = isTls ? tlsClient(old.port) : rawClient(old.port);
      t.after(client.close);
      return client;
    };
    /** @param {number} streams that have to move */
    const takeOver = async (streams) => {
      await until(async () => (await old.ask('state')).streams === streams, `${streams} streams`);
      const next = await startReady(t, { path, name: 'new', port: old.port, pair });
      assert.equal((await old.untilAnswer('moved')).value, streams);
      return next;
    };
    return { old, connect, takeOver };
  };
  const request = (/** @type {string} */ target) => get().replace('/ HTTP', `${target} HTTP`);

  describe(`taken over ${isTls ? 'with' : 'without'} TLS`, isTls ? NEEDS_TLS : NEEDS_NATIVE, () => {
    test('a stream of NDJSON goes on', async (t) => {
      const { old, connect, takeOver } = await start(t);
      const client = connect();
      client.send(request('/ndjson/x,news'));
      await client.untilRead(/application\/x-ndjson/);
      await old.ask('publish', { channel: 'news', message: 'one' });
      const next = await takeOver(1);
      assert.equal(await next.ask('publish', { channel: 'news', message: 'two' }), 1);
      await client.untilRead(/two/);
      const lines = bodyOf(client.received).split('\n').filter(Boolean);
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        [{ data: 'one' }, { data: 'two' }],
      );
    });

    test('a poll that waits is answered, and its connection goes on', async (t) => {
      const { connect, takeOver } = await start(t);
      const client = connect();
      client.send(request('/poll/x,news'));
      const next = await takeOver(1);
      assert.equal(await next.ask('publish', { channel: 'news', message: 'one' }), 1);
      await client.untilRead(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n\{"messages":\[\{"data":"one"\}\]\}\n$/);
      client.send(request('/poll/y,news'));
      await until(async () => (await next.ask('state')).streams === 1, 'the next poll');
      await next.ask('publish', { channel: 'news', message: 'two' });
      await client.untilRead(/"two"/);
      assert.deepEqual((await next.ask('state')).closed, ['answered', 'answered']);
    });

    test('a connection that waits for a request goes on', async (t) => {
      const { old, connect, takeOver } = await start(t);
      const client = connect();
      client.send(request('/none'));
      await client.untilRead(/^HTTP\/1\.1 404 /);
      const next = await takeOver(0);
      assert.equal((await old.ask('state')).connections, 0);
      client.send(request('/poll/x,news'));
      await until(async () => (await next.ask('state')).streams === 1, 'a poll');
      await next.ask('publish', { channel: 'news', message: 'one' });
      await client.untilRead(/404 Not Found[\s\S]*HTTP\/1\.1 200 [\s\S]*"one"/);
    });

    test('a WebSocket goes on in the middle of a message, and of a frame', async (t) => {
      const { old, connect, takeOver } = await start(t);
      const client = framed(connect(), '/websocket/x,news');
      await client.untilOpen();
      client.frame('text', 'one');
      assert.deepEqual(await client.untilMessages(1), ['old heard one']);
      const rest = frame('continuation', 'thing');
      client.socket.write(Buffer.concat([frame('text', 'some', { isLast: false }), rest.subarray(0, 8)]));
      // The old process has read both: it answers what came before them.
      const next = await takeOver(1);
      client.socket.write(rest.subarray(8));
      assert.equal((await client.untilMessages(2))[1], 'new heard something');
      assert.equal(await next.ask('publish', { channel: 'news', message: 'published' }), 1);
      assert.equal((await client.untilMessages(3))[2], 'published');
      client.frame('close', closing(4001));
      assert.equal(await client.untilClosing(), 4001);
      await until(async () => (await next.ask('state')).closed.length === 1, 'its end');
      assert.deepEqual((await next.ask('state')).closed, ['client-gone']);
      assert.deepEqual((await old.ask('state')).closed, []);
    });
  });
}
