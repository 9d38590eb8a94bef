/*
 * Connections that are kept after an answer. The same with the native core and without.
 */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent, createServer, get as getHttp } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { get, rawClient } from './helpers/client.js';
import { KINDS, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @typedef {import('./helpers/hold.js').Kind} Kind */

/** @param {string} target @param {string} [lines] more headers @param {string} [start] */
const one = (target, lines = '', start = 'GET') => `${start} ${target} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`;

/**
 * A Hold that answers each request with its target, except '/stream', '/pass', '/refuse/404' and '/late'.
 * @param {import('node:test').TestContext} t @param {Kind} kind @param {import('holdfast').HoldOptions} [options]
 */
function startAnswering(t, kind, options = {}) {
  /** @type {import('holdfast').Policy['decide']} */
  const decide = ({ target }) => {
    if (target === '/stream') return { hold: 'text', welcome: 'Welcome!' };
    if (target === '/pass') return { pass: true };
    if (target.startsWith('/refuse')) return { refuse: Number(target.slice('/refuse/'.length)) };
    const answer = { answer: { headers: { 'X-Target': target }, body: `<${target}>` } };
    return target === '/late' ? new Promise((resolve) => setImmediate(resolve, answer)) : answer;
  };
  return startListening(t, kind, { policy: { decide }, ...options });
}

for (const kind of KINDS) {
  describe(`a connection (${kind})`, () => {
    test('is kept after an answer, and after a refusal with 404 or 405', async (t) => {
      const { hold, port } = await startAnswering(t, kind);
      const client = rawClient(port);
      t.after(client.close);
      for (const target of ['/1', '/refuse/404', '/late', '/refuse/405']) {
        client.received = '';
        client.send(one(target));
        await client.untilRead(/\r\n\r\n[^\n]+[>\n]$/);
        assert.doesNotMatch(client.received, /\r\n(connection|keep-alive|transfer-encoding):/i);
        assert.equal(client.received.match(/\r\nDate: /g)?.length, 1);
      }
      assert.equal(hold.counters().connections, 1);
      client.received = '';
      client.send(one('/refuse/400'));
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 400 [\s\S]*\r\nConnection: close\r\n/);
    });

    test('gets the answers to pipelined requests in their order', async (t) => {
      const { port } = await startAnswering(t, kind);
      const targets = Array.from({ length: 50 }, (_, i) => (i % 7 === 3 ? '/late' : `/${i}`));
      const client = rawClient(port, targets.map((target) => one(target)).join(''));
      t.after(client.close);
      await client.untilRead(/<\/49>/);
      assert.deepEqual(
        client.received.match(/<[^>]+>/g),
        targets.map((target) => `<${target}>`),
      );
    });

    test('is not read while many of its requests wait, and gets all answers then', async (t) => {
      const count = kind === 'JS' ? 20_000 : 100; // the native core asks for a few hundred in a second
      let begun = 0;
      const onRequest = () => begun++;
      subscribe('http.server.request.start', onRequest);
      t.after(() => unsubscribe('http.server.request.start', onRequest));
      /** @type {import('holdfast').Policy['decide']} */
      const decide = ({ target }) =>
        target === '/poll' ? { hold: 'poll', channels: ['a'] } : { answer: { body: '<>' } };
      const { hold, port } = await startListening(t, kind, { policy: { decide } });
      const client = rawClient(port, one('/poll') + one('/').repeat(count));
      t.after(client.close);
      await until(
        () => hold.counters().streams === 1,
        () => 'no poll',
      );
      await sleep(1500);
      assert.ok(begun < count * 0.75, `${begun} requests were read`);
      hold.publish('a', { data: 'x' });
      await until(
        () => client.received.endsWith('<>') && client.received.match(/<>/g)?.length === count,
        () => `${client.received.match(/<>/g)?.length} answers of ${count}`,
      );
    });

    test('can become a stream, or be passed on, after an answer', async (t) => {
      const server = createServer((request, response) => response.end(`served ${request.url}`));
      const { port } = await startAnswering(t, kind, { server });
      const stream = rawClient(port, one('/1') + one('/stream'));
      const passed = rawClient(port, one('/1') + one('/pass'));
      for (const client of [stream, passed]) t.after(client.close);
      await stream.untilRead(/<\/1>HTTP\/1\.1 200 [\s\S]*Welcome!/);
      await passed.untilRead(/<\/1>HTTP\/1\.1 200 [\s\S]*served \/pass/);
    });

    test('ends if the client wants that, or its request had a body', async (t) => {
      const { port } = await startAnswering(t, kind);
      const requests = [
        one('/1', 'Connection: close\r\n'),
        `${one('/1', 'Content-Length: 4\r\n', 'POST')}body`,
        `${one('/1', 'Transfer-Encoding: chunked\r\n', 'POST')}0\r\n\r\n`,
        `${one('/1', 'Content-Length: 4\r\nExpect: 100-continue\r\n', 'POST')}`,
        ...(kind === 'JS' ? [one('/1', 'Expect: 100-continue\r\n')] : []),
      ];
      for (const request of requests) {
        const client = rawClient(port, request + one('/2'));
        await client.untilClosed();
        assert.match(client.received, /^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n/, request);
        assert.doesNotMatch(client.received, /<\/2>/);
      }
    });

    test('of HTTP/1.0 is kept only if the client asks for it', async (t) => {
      const { port } = await startAnswering(t, kind);
      const old = rawClient(port, get({}, '1.0'));
      await old.untilClosed();
      assert.match(old.received, /\r\nConnection: close\r\n/);
      const kept = rawClient(port, get({ Connection: 'keep-alive' }, '1.0'));
      t.after(kept.close);
      await kept.untilRead(/<\/>/);
      assert.match(kept.received, /\r\nConnection: keep-alive\r\n/);
      kept.send(get({ Connection: 'keep-alive' }, '1.0'));
      await kept.untilRead(/<\/>[\s\S]*<\/>/);
    });

    test('is kept after the answer to a HEAD, which has no body', async (t) => {
      const { port } = await startAnswering(t, kind);
      const client = rawClient(
        port,
        one('/1', '', 'HEAD') + one('/stream', '', 'HEAD') + one('/refuse/404', '', 'HEAD') + one('/2'),
      );
      t.after(client.close);
      await client.untilRead(/<\/2>/);
      const parts = client.received.split('\r\n\r\n');
      assert.equal(parts.length, 5);
      assert.match(parts[0], /^HTTP\/1\.1 200 [\s\S]*\r\nContent-Length: 4\r\n/);
      assert.match(parts[1], /^HTTP\/1\.1 200 [\s\S]*\r\nContent-Type: text\/plain/);
      assert.doesNotMatch(parts[1], /content-length/i);
      assert.match(parts[2], /^HTTP\/1\.1 404 /);
      assert.equal(parts[4], '</2>');
    });

    test('that waits too long for a request is closed', async (t) => {
      const { hold, port } = await startAnswering(t, kind, { keepAliveTimeoutMs: 300 });
      const client = rawClient(port, one('/1'));
      await client.untilRead(/<\/1>/);
      const startMs = Date.now();
      await client.untilClosed();
      const tookMs = Date.now() - startMs;
      assert.ok(tookMs >= 200 && tookMs < 4000, `${tookMs} ms`);
      assert.equal(client.received.match(/HTTP\/1\.1/g)?.length, 1, 'without a word');
      const stream = rawClient(port, one('/1') + one('/stream'));
      t.after(stream.close);
      await stream.untilRead(/Welcome!/);
      await new Promise((resolve) => setTimeout(resolve, 900));
      assert.equal(stream.closed, false, 'a stream may be quiet for longer');
      assert.equal(hold.counters().connections, 1);
    });

    test('that waits for a request ends in a drain', async (t) => {
      const { hold, port } = await startAnswering(t, kind);
      const client = rawClient(port, one('/1'));
      await client.untilRead(/<\/1>/);
      const startMs = Date.now();
      await hold.close();
      await client.untilClosed();
      assert.ok(Date.now() - startMs < 4000);
    });

    test('makes room for another one', async (t) => {
      const { hold, port } = await startAnswering(t, kind, { connectionLimit: 2 });
      const idle = [rawClient(port, one('/1')), rawClient(port, one('/1'))];
      for (const client of idle) await client.untilRead(/<\/1>/);
      await new Promise((resolve) => setTimeout(resolve, 400)); // they may wait that long
      const client = rawClient(port, one('/2'));
      t.after(client.close);
      await client.untilRead(/<\/2>/);
      await until(() => idle.filter(({ closed }) => closed).length === 1, 'one of them is cut');
      assert.equal(hold.counters().connections, 2);
      for (const one of idle) one.close();
    });

    test('that sends nonsense after an answer gets 400', async (t) => {
      const { port } = await startAnswering(t, kind);
      const client = rawClient(port, `${one('/1')}nonsense\r\n\r\n`);
      await client.untilClosed();
      assert.match(client.received, /<\/1>HTTP\/1\.1 400 /);
    });

    test('is used again by the agent of node:http', async (t) => {
      const { hold, port } = await startAnswering(t, kind);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      t.after(() => agent.destroy());
      for (let i = 0; i < 20; i++) {
        const body = await new Promise((resolve, reject) => {
          getHttp({ port, agent, path: `/${i}`, host: '127.0.0.1' }, async (response) => {
            let text = '';
            for await (const chunk of response) text += chunk;
            resolve(text);
          }).on('error', reject);
        });
        assert.equal(body, `</${i}>`);
      }
      assert.equal(hold.counters().connections, 1);
    });
  });
}
