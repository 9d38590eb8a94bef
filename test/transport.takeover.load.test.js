/*
 * Handovers while everything goes on: publications, requests, and connections that are not complete.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { rawClient } from './helpers/client.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { descriptorsOf, newPath, openStream, residentKb, startReady } from './helpers/takeover.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('./helpers/takeover.js').Ready} Ready */

const HANDOVERS = 10;
const STREAMS = 300;

/**
 * Checks that a client has got everything that each process published, once and in order.
 * @param {string} body @param {Record<string, number>} published by name of the process @param {string[]} names that it must have all of
 */
function assertComplete(body, published, names) {
  /** @type {Record<string, number>} */
  const next = {};
  for (const [, name, number] of body.matchAll(/(p\d+):(\d+);/g)) {
    assert.equal(Number(number), next[name] ?? Number(number), `${name} goes on with ${next[name]}`);
    if (names.includes(name)) assert.ok(next[name] !== undefined || number === '0', `${name} begins with 0`);
    next[name] = Number(number) + 1;
  }
  for (const name of names) assert.equal(next[name] ?? 0, published[name], name);
}

/**
 * Opens a stream again and again, in both ways, until it is stopped.
 * @param {TestContext} t @param {number} port
 */
function openAllTheTime(t, port) {
  /** @type {Awaited<ReturnType<typeof openStream>>[]} */
  const clients = [];
  let isOpening = true;
  const opening = (async () => {
    while (isOpening)
      clients.push(await openStream(t, port, `/${clients.length % 2 ? 'held' : 'adopted'}/new,news`));
  })();
  const stop = async () => {
    isOpening = false;
    await opening;
    return clients;
  };
  return { stop };
}

describe('handovers under load', NEEDS_NATIVE, () => {
  test('ten in a row lose nothing, repeat nothing, close nothing and refuse nobody', async (t) => {
    const path = newPath(t);
    /** @type {Record<string, number>} */
    const published = {};
    /** @type {{ descriptors: number, kb: number }[]} */
    const sizes = [];
    let current = await startReady(t, { path, name: 'p0', shards: 1 });
    const { port } = current;
    const clients = await Promise.all(
      Array.from({ length: STREAMS }, (_, i) => openStream(t, port, `/held/${i},news,own${i}`)),
    );
    const newcomers = openAllTheTime(t, port);
    await current.ask('flood', { channel: 'news', everyMs: 2 });
    for (let i = 1; i <= HANDOVERS; i++) {
      const name = `p${i}`;
      const next = await startReady(t, { path, name, port, shards: 1 + (i % 3) });
      await next.ask('flood', { channel: 'news', everyMs: 2 });
      const { value: moved } = await current.untilAnswer('moved');
      assert.ok(moved >= STREAMS, `${moved} streams moved to ${name}`);
      published[`p${i - 1}`] = await current.ask('stopFlood');
      await current.ask('publish', { channel: 'news', message: '' }); // everything before it has arrived
      assert.deepEqual((await current.ask('state')).problems, []);
      await current.ask('leave');
      await current.exit;
      current = next;
      sizes.push({ descriptors: descriptorsOf(next.pid) - next.adopted.length, kb: residentKb(next.pid) });
    }
    const opened = await newcomers.stop();
    published[`p${HANDOVERS}`] = await current.ask('stopFlood');
    await current.ask('publish', { channel: 'news', message: 'end' });
    for (const client of [...clients, ...opened]) {
      await client.untilRead(/end/);
      assert.equal(client.closed, false);
    }
    for (const client of clients) assertComplete(client.body(), published, Object.keys(published));
    for (const client of opened) assertComplete(client.body(), published, []);
    const { streams, closed } = await current.ask('state');
    assert.deepEqual([streams, closed], [STREAMS + opened.length, []]);
    // The third one has as many shards as the last but one.
    assert.ok(sizes[8].descriptors < sizes[2].descriptors + 100, JSON.stringify(sizes));
    assert.ok(sizes[8].kb < sizes[2].kb * 1.3, JSON.stringify(sizes));
  });

  test('requests that are half sent go on in the new process', async (t) => {
    const path = newPath(t);
    const old = await startReady(t, { path, name: 'old', shards: 2 });
    const halves = Array.from({ length: 30 }, (_, i) => {
      const request = `GET /held/${i},news HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(100 * i)}\r\n\r\n`;
      const at = 1 + ((i * 37) % (request.length - 1));
      const client = rawClient(old.port, request.slice(0, at));
      t.after(client.close);
      return { client, rest: request.slice(at) };
    });
    await until(async () => (await old.ask('state')).connections === 30, 'all connections');
    const next = await startReady(t, { path, name: 'new', port: old.port, shards: 1 });
    for (const { client, rest } of halves) client.send(rest);
    for (const { client } of halves) await client.untilRead(/Welcome!/);
    assert.equal((await next.ask('state')).streams, 30);
    assert.equal((await old.untilAnswer('moved')).value, 0);
    assert.equal(await next.ask('publish', { channel: 'news', message: 'x' }), 30);
  });

  test('what one client does not read goes along', async (t) => {
    const path = newPath(t);
    const big = 8_000_000;
    const old = await startReady(t, { path, name: 'old', maxBacklogBytes: 2 * big });
    const client = await openStream(t, old.port, '/held/slow,news');
    client.socket.pause();
    await old.ask('publish', { channel: 'news', message: 'x'.repeat(big) });
    assert.ok((await old.ask('state')).backlogBytes > big / 4);
    const next = await startReady(t, { path, name: 'new', port: old.port, maxBacklogBytes: 2 * big });
    await next.ask('publish', { channel: 'news', message: 'last' });
    assert.ok((await next.ask('state')).backlogBytes > big / 4);
    client.socket.resume();
    await client.untilRead(/last/);
    assert.equal(client.body(), `Welcome!${'x'.repeat(big)}last`);
  });

  test('streams that native does not hold are ended by the old process', async (t) => {
    const path = newPath(t);
    const old = await startReady(t, { path, name: 'old' });
    const native = await openStream(t, old.port, '/held/native,news');
    const inJs = rawClient(
      old.port,
      'GET /compressed/js,news HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n',
    );
    t.after(inJs.close);
    await until(async () => (await old.ask('state')).inJs === 1, 'a stream in JS');
    const next = await startReady(t, { path, name: 'new', port: old.port });
    await inJs.untilClosed();
    assert.equal((await old.untilAnswer('moved')).value, 1);
    assert.deepEqual((await old.ask('state')).closed, ['drain']);
    assert.deepEqual(
      next.adopted.map(({ tag }) => tag),
      ['native'],
    );
    assert.equal(native.closed, false);
  });

  test('streams of a hub are ended by the new process, and come back with their cursor', async (t) => {
    const path = newPath(t);
    const old = await startReady(t, { path, name: 'old' });
    const client = await openStream(t, old.port, '/updates/hub,%01s=news');
    const next = await startReady(t, { path, name: 'new', port: old.port });
    await client.untilClosed();
    assert.deepEqual([next.adopted, (await next.ask('state')).closed], [[], ['restarted']]);
    assert.equal((await old.untilAnswer('moved')).value, 1);
  });
});

test('an offer does not keep its process alive', NEEDS_NATIVE, (t) => {
  const code = `
    import { Hold } from 'holdfast';
    void new Hold().handOver(${JSON.stringify(newPath(t))});
  `;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    timeout: 60_000,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});
