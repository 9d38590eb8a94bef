import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { Histogram } from '../lib/histogram.js';
import { rawClient } from './helpers/client.js';
import { startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

test('health, readiness, the frame and the metrics are served', async (t) => {
  const server = await startServer(t);
  assert.equal(await (await server.admin('/healthz')).text(), 'ok\n');
  assert.equal(await (await server.admin('/readyz?verbose')).text(), 'ready\n');
  const { totals, workers } = await server.frame();
  assert.equal(totals.workers, workers.length);
  const metrics = await server.admin('/metrics');
  assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const text = await metrics.text();
  assert.match(text, /^holdfast_streams\{worker="1"\} 0$/m);
});

test('promtool accepts the metrics', async (t) => {
  const server = await startServer(t);
  const input = await (await server.admin('/metrics')).text();
  const { error, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
  if (error) return t.skip('promtool is not installed (Debian: prometheus)');
  assert.equal(`${stdout}${stderr}`, '');
});

test('the buckets of a histogram stay when a worker dies', async (t) => {
  const server = await startServer(t, ['--workers', '1']);
  const ticks = async () => {
    const text = await (await server.admin('/metrics')).text();
    return Number(/^holdfast_tick_seconds_bucket\{le="\+Inf"\} (\d+)$/m.exec(text)?.[1]);
  };
  const before = await until(async () => {
    const count = await ticks();
    return count > 20 && count;
  }, 'some ticks');
  const [{ pid }] = (await server.frame()).workers;
  process.kill(pid, 'SIGKILL');
  await until(async () => {
    const [worker] = (await server.frame()).workers;
    assert.ok((await ticks()) >= before);
    return worker.pid !== pid && worker.state === 'ready';
  }, 'it is replaced');
  await until(async () => (await ticks()) > before, 'more ticks');
});

test('/ticks has all ticks of each worker since it started', async (t) => {
  const server = await startServer(t);
  const ticksOf = async () => {
    const { workers } = /** @type {any} */ (await (await server.admin('/ticks')).json());
    return new Histogram().merge(workers[0].ticks);
  };
  const before = await until(async () => {
    const ticks = await ticksOf();
    return ticks.count > 20 && ticks;
  }, 'some ticks');
  const later = await until(async () => {
    const ticks = await ticksOf();
    return ticks.count > before.count && ticks;
  }, 'more of them');
  const between = later.less(before);
  assert.equal(between.count, later.count - before.count);
  assert.ok(between.mean('ms') > 1 && between.maximum() >= between.percentile(0.9));
});

test('a publication to several channels is refused rather than sent to the first', async (t) => {
  const server = await startServer(t);
  const url = `http://127.0.0.1:${server.adminPort}/publish?channel=a&channel=b`;
  const response = await fetch(url, { method: 'POST', body: 'hello' });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /got 2 channels: publish to one at a time/);
});

test('a publication to a channel that no stream can have, or with a compressed body, is refused', async (t) => {
  const server = await startServer(t);
  for (const [
    channel,
    headers,
    status,
    line,
  ] of /** @type {[string, Record<string, string>, number, RegExp][]} */ ([
    ['x'.repeat(257), {}, 400, /at most 256 bytes, not 257/],
    ['%01', {}, 400, /no control characters/],
    ['a', { 'Content-Encoding': 'gzip' }, 415, /must not be compressed/],
  ])) {
    const url = `http://127.0.0.1:${server.adminPort}/publish?channel=${channel}`;
    const response = await fetch(url, { method: 'POST', headers, body: 'hello' });
    assert.equal(response.status, status);
    assert.match(await response.text(), line);
  }
});

test('other paths are 404, other methods 405', async (t) => {
  const server = await startServer(t);
  const missing = await server.admin('/nothing');
  assert.equal(missing.status, 404);
  assert.match(await missing.text(), /\/healthz, \/readyz, \/frame, \/ticks, \/metrics, \/publish/);
  const post = await fetch(`http://127.0.0.1:${server.adminPort}/frame`, { method: 'POST' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test("many connections to the admin port don't use up the file descriptors of the primary", async (t) => {
  const server = await startServer(t);
  const crowd = Array.from({ length: 300 }, () => rawClient(server.adminPort));
  await until(() => crowd.filter(({ closed }) => closed).length >= 200, 'most are turned away');
  for (const client of crowd) client.close();
});

test('idle connections to the admin port lock nobody out, and are closed after a few seconds', async (t) => {
  const server = await startServer(t);
  const crowd = Array.from({ length: 256 }, () => rawClient(server.adminPort));
  await until(() => crowd.every(({ socket }) => socket.readyState === 'open'), 'all are connected');
  for (let i = 0; i < 10; i++) assert.equal((await server.admin('/healthz')).status, 200);
  await until(() => crowd.every(({ closed }) => closed), 'all are closed');
});

test('the admin port answers only to its own names, so that no page can reach it by a name of its own', async (t) => {
  const server = await startServer(t);
  const ask = async (/** @type {string} */ head) => {
    const client = rawClient(server.adminPort, `${head}\r\nConnection: close\r\n\r\n`);
    await client.untilClosed();
    return client.received.slice(9, 12);
  };
  const own = [
    'localhost',
    'LocalHost:1',
    '127.0.0.1',
    `127.0.0.1:${server.adminPort}`,
    '[::1]',
    '[::1]:8890',
  ];
  for (const host of own) assert.equal(await ask(`GET /frame HTTP/1.1\r\nHost: ${host}`), '200', host);
  const others = [
    'evil.example',
    'evil.example:8890',
    '127.0.0.1.evil.example',
    'localhost.',
    '',
    '127.0.0.2',
  ];
  for (const host of others)
    for (const path of ['/frame', '/metrics', '/healthz'])
      assert.equal(await ask(`GET ${path} HTTP/1.1\r\nHost: ${host}`), '403', host);
  assert.equal(await ask('GET /frame HTTP/1.0'), '403');
  assert.notEqual(await ask('GET /frame HTTP/1.1\r\nHost: localhost\r\nHost: evil.example'), '200');
  assert.equal(
    await ask('POST /publish?channel=a HTTP/1.1\r\nContent-Length: 0\r\nHost: evil.example'),
    '403',
  );
});

test('a path is not taken for a host and a path', async (t) => {
  const server = await startServer(t);
  const statusOf = async (/** @type {string} */ target) => {
    const client = rawClient(server.adminPort, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const [, status] = await client.untilRead(/^HTTP\/1.1 (\d+)/);
    client.close();
    return status;
  };
  assert.equal(await statusOf('/healthz'), '200');
  for (const target of ['//x/healthz', '//healthz', '/healthz/'])
    assert.equal(await statusOf(target), '404', target);
  for (const target of ['http://x/healthz', '*']) assert.equal(await statusOf(target), '400', target);
});

test('web pages may not publish', async (t) => {
  const server = await startServer(t);
  const publish = async (/** @type {string} */ headers) => {
    const head = `POST /publish?channel=news HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n${headers}`;
    const client = rawClient(server.adminPort, `${head}Connection: close\r\n\r\nhi`);
    await client.untilClosed();
    return client.received.slice(9, 12);
  };
  for (const origin of ['http://evil.example', 'null', `http://localhost:${server.adminPort}`])
    assert.equal(await publish(`Origin: ${origin}\r\n`), '403', origin);
  for (const site of ['cross-site', 'same-site', 'else', ''])
    assert.equal(await publish(`Sec-Fetch-Site: ${site}\r\n`), '403', site);
  for (const site of ['same-origin', 'none'])
    assert.equal(await publish(`Sec-Fetch-Site: ${site}\r\n`), '202', site);
  assert.equal(await publish(''), '202');
  assert.equal(await publish('Content-Type: application/x-www-form-urlencoded\r\n'), '202', 'like curl -d');
});

test('it answers on 127.0.0.1 only', async (t) => {
  const server = await startServer(t);
  const others = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const addresses = [
    '127.0.0.2',
    ...others.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address),
  ];
  for (const address of addresses)
    await assert.rejects(fetch(`http://${address}:${server.adminPort}/healthz`), address);
});

test('POST /publish takes a message for a channel; anything else is refused with a reason', async (t) => {
  const server = await startServer(t, ['--ping-interval', '86400000']);
  const publish = (/** @type {string} */ query, /** @type {RequestInit} */ init = {}) =>
    fetch(`http://127.0.0.1:${server.adminPort}/publish${query}`, { method: 'POST', body: 'hello', ...init });
  const listener = rawClient(server.port, 'GET /?channel=news HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await listener.untilRead(/Welcome!/);
  const refused = [
    await publish(''),
    await publish('?channel=news', { body: 'x'.repeat(65_537) }),
    await publish('?channel=news', { headers: { Origin: 'http://evil.example' } }),
    await publish('?channel=news', { method: 'GET', body: null }),
  ];
  assert.deepEqual(
    refused.map(({ status }) => status),
    [400, 413, 403, 405],
  );
  assert.equal(refused[3].headers.get('allow'), 'POST');
  assert.equal((await publish('?channel=news')).status, 202);
  await listener.untilRead(/Welcome!\r\n5\r\nhello\r\n$/);
  listener.close();
});
