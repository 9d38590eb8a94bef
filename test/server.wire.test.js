/*
 * What a stream looks like to its client: on raw sockets, and to the clients that people use.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { EventSource } from 'eventsource';
import { request } from 'undici';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { chunksOf, get, rawClient } from './helpers/client.js';
import { run, startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

for (const transport of TRANSPORTS) {
  const args = ['--transport', transport, '--ping-interval', '100'];

  describe(`a stream of the ${transport} transport`, () => {
    test('sends Welcome! at once, and then pings, in chunks', async (t) => {
      const server = await startServer(t, args);
      const client = rawClient(server.port, get());
      await until(() => chunksOf(client.received).length >= 4, 'a welcome and three pings');
      assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n/);
      for (const line of ['Transfer-Encoding: chunked', 'Cache-Control: no-store', 'X-Accel-Buffering: no']) {
        assert.match(client.received, new RegExp(`\r\n${line}\r\n`, 'i'));
      }
      assert.deepEqual(chunksOf(client.received).slice(0, 4), ['Welcome!', 'ping', 'ping', 'ping']);
      client.close();
    });

    test('is Server-Sent Events if the client accepts them: a retry, a welcome, comments as pings', async (t) => {
      const server = await startServer(t, args);
      const client = rawClient(server.port, get({ Accept: 'text/event-stream' }));
      await until(() => chunksOf(client.received).length >= 2, 'a welcome and a ping');
      assert.match(client.received, /\r\nContent-Type: text\/event-stream\r\n/i);
      const [welcome, ping] = chunksOf(client.received);
      const retryMs = Number(/^retry: (\d+)\nevent: welcome\ndata: Welcome!\n\n$/.exec(welcome)?.[1]);
      assert.ok(retryMs >= 2000 && retryMs < 5000);
      assert.match(ping, /^:[^\n]*\n\n$/);
      client.close();
    });

    test('has a body without chunks on HTTP/1.0', async (t) => {
      const server = await startServer(t, args);
      const client = rawClient(server.port, get({}, '1.0'));
      await client.untilRead(/\r\n\r\nWelcome!ping/);
      assert.doesNotMatch(client.received, /transfer-encoding/i);
      client.close();
    });

    test('gets what is published on its channels, in its encoding and framing, and nothing else', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--ping-interval', '86400000']);
      const open = (/** @type {string} */ query, headers = {}, version = '1.1') =>
        rawClient(server.port, get(headers, version).replace('/ HTTP', `/${query} HTTP`));
      const text = open('?channel=news&channel=other');
      const events = open('?channel=news', { Accept: 'text/event-stream' });
      const old = open('?channel=news', {}, '1.0');
      const deaf = open('?channel=else');
      await server.untilTotals(({ streams }) => streams === 4, '4 streams');
      const publish = (/** @type {string} */ body) =>
        fetch(`http://127.0.0.1:${server.adminPort}/publish?channel=news`, { method: 'POST', body });
      assert.equal((await publish('grüße\nan alle')).status, 202);
      await server.untilTotals(({ deliveries }) => deliveries === 3, '3 deliveries');
      assert.equal((await publish('x'.repeat(65_536))).status, 202);
      await old.untilRead(/x{65536}$/);
      const bytes = Buffer.from('grüße\nan alle').toString('latin1');
      const long = 'x'.repeat(65_536);
      await until(() => chunksOf(text.received).length === 3, 'both messages');
      assert.deepEqual(chunksOf(text.received), ['Welcome!', bytes, long]);
      await until(() => chunksOf(events.received).length === 3, 'both events');
      const lines = bytes.replace('\n', '\ndata: ');
      assert.deepEqual(chunksOf(events.received).slice(1), [`data: ${lines}\n\n`, `data: ${long}\n\n`]);
      assert.ok(old.received.endsWith(`Welcome!${bytes}${long}`));
      assert.deepEqual(chunksOf(deaf.received), ['Welcome!']);
      for (const client of [text, events, old, deaf]) client.close();
      await server.untilTotals(({ streams }) => streams === 0, 'all are gone');
      assert.equal((await publish('to nobody')).status, 202);
      assert.equal((await server.frame()).totals.deliveries, 6);
    });

    test('opens when its request arrives a byte at a time', async (t) => {
      const server = await startServer(t, args);
      const client = rawClient(server.port);
      for (const byte of get()) {
        client.send(byte);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await client.untilRead(/Welcome![\s\S]*ping/);
      client.close();
    });

    test('is counted when it opens, and with the reason when its client goes', async (t) => {
      const server = await startServer(t, args);
      const clients = Array.from({ length: 20 }, () => rawClient(server.port, get()));
      await server.untilTotals(({ streams }) => streams === 20, '20 streams');
      for (const client of clients.slice(0, 15)) client.close();
      const totals = await server.untilTotals(({ streams }) => streams === 5, '5 streams');
      assert.equal(totals.opened, 20);
      assert.equal(totals.closedClientGone, 15);
      await server.untilTotals(({ pings, pingsPerSecond }) => pings > 20 && pingsPerSecond > 0, 'pings');
      for (const client of clients) client.close();
    });

    test('ends when its client shuts down its side of the connection', async (t) => {
      const server = await startServer(t, args);
      const client = rawClient(server.port, get());
      await client.untilRead(/Welcome!/);
      client.socket.end();
      await client.untilClosed();
      await server.untilTotals(({ closedClientGone }) => closedClientGone === 1, 'the close is counted');
    });

    test('is closed as a bad request when its client sends another request, or anything else', async (t) => {
      const server = await startServer(t, args);
      for (const more of [get(), 'nonsense\r\n\r\n']) {
        const client = rawClient(server.port, get());
        await client.untilRead(/Welcome!/);
        client.send(more);
        await client.untilClosed();
      }
      const together = rawClient(server.port, get() + get() + get());
      await together.untilRead(/^HTTP\/1\.1 200 OK[\s\S]*Welcome!/); // the first gets its answer
      await together.untilClosed();
      assert.equal(together.received.match(/HTTP\/1\.1/g)?.length, 1);
      const totals = await server.untilTotals(({ closed }) => closed === 3, 'three closes');
      assert.equal(totals.closedBadRequest, 3);
      assert.equal(totals.opened, 3);
    });

    test('is read by curl, with pings as they arrive', async (t) => {
      if (spawnSync('curl', ['--version']).error) return t.skip('curl is not installed');
      const server = await startServer(t, args);
      const curl = run(t, 'curl', ['-sN', `http://127.0.0.1:${server.port}/`]);
      await until(() => curl.output.stdout.startsWith('Welcome!pingping'), 'curl has pings');
      curl.child.kill();
    });

    test('is read by undici', async (t) => {
      const server = await startServer(t, args);
      const { statusCode, headers, body } = await request(`http://127.0.0.1:${server.port}/`);
      assert.equal(statusCode, 200);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
      let text = '';
      for await (const chunk of body) {
        text += chunk;
        if (text.includes('pingping')) break;
      }
      assert.match(text, /^Welcome!(ping)+$/);
    });

    test('stays open on the eventsource package over many pings', async (t) => {
      const server = await startServer(t, args);
      const source = new EventSource(`http://127.0.0.1:${server.port}/`);
      t.after(() => source.close());
      /** @type {unknown[]} */
      const problems = [];
      source.onerror = (error) => problems.push(error);
      const welcome = await new Promise((resolve) =>
        source.addEventListener('welcome', (event) => resolve(event.data)),
      );
      assert.equal(welcome, 'Welcome!');
      await server.untilTotals(({ pings }) => pings >= 10, 'ten pings');
      assert.equal(source.readyState, EventSource.OPEN);
      assert.deepEqual(problems, []);
    });

    test("stays open on a browser's EventSource over many pings", NEEDS_CHROMIUM, async (t) => {
      const server = await startServer(t, args);
      const browser = await startBrowser(t);
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${server.port}/a-page-of-the-same-origin`);
      const welcome = await page.evaluate(
        () =>
          new Promise((resolve) => {
            const source = new EventSource('/');
            Object.assign(globalThis, { source, problems: 0 });
            source.onerror = () => Object.assign(globalThis, { problems: 1 });
            source.addEventListener('welcome', (event) => resolve(event.data));
          }),
      );
      assert.equal(welcome, 'Welcome!');
      await server.untilTotals(({ pings }) => pings >= 10, 'ten pings');
      const state = await page.evaluate(() => {
        const { source, problems } = /** @type {any} */ (globalThis);
        return { readyState: source.readyState, problems };
      });
      assert.deepEqual(state, { readyState: 1, problems: 0 });
    });
  });
}
