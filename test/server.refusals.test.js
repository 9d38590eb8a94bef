/*
 * Every request that opens no stream gets the answer that HTTP has for it, and is counted.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/**
 * @param {number} port @param {string} bytes
 * @returns {Promise<string>} everything received until the server closed
 */
async function answerTo(port, bytes) {
  const client = rawClient(port, bytes);
  await client.untilClosed();
  return client.received;
}

for (const transport of TRANSPORTS) {
  const args = ['--transport', transport];

  describe(`refusals of the ${transport} transport`, () => {
    test('HEAD gets the head of the stream and no body', async (t) => {
      const server = await startServer(t, args);
      const answer = await answerTo(server.port, 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n');
      assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[\s\S]*Cache-Control: no-store[\s\S]*\r\n\r\n$/);
      assert.equal((await server.frame()).totals.opened, 0);
    });

    test('a client that is still sending a large body gets to read its refusal', async (t) => {
      const server = await startServer(t, args);
      for (let i = 0; i < 5; i++) {
        const url = `http://127.0.0.1:${server.port}/`;
        const { status, headers } = await fetch(url, { method: 'POST', body: new Uint8Array(20_000_000) });
        assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD']);
      }
    });

    test('with --accept-load it says that a load fleet may connect, and its ping interval', async (t) => {
      const server = await startServer(t, [...args, '--accept-load', '--ping-interval', '1234']);
      const url = `http://127.0.0.1:${server.port}/.well-known/holdfast-load`;
      const response = await fetch(url);
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
      assert.deepEqual(await response.json(), { consent: true, pingIntervalMs: 1234 });
      assert.ok(Math.abs(Date.now() - Date.parse(response.headers.get('date') ?? '')) < 60_000);
      const head = await fetch(url, { method: 'HEAD' });
      assert.deepEqual([head.status, head.headers.get('content-length')], [200, '39']);
      assert.equal((await fetch(url, { method: 'POST' })).status, 405);
      assert.equal((await fetch(`${url}/more`)).status, 404);
    });

    test('without --accept-load it says its ping interval and does not consent', async (t) => {
      const server = await startServer(t, [...args, '--ping-interval', '1234']);
      const response = await fetch(`http://127.0.0.1:${server.port}/.well-known/holdfast-load`);
      assert.equal(response.status, 200);
      assert.deepEqual(await response.json(), { consent: false, pingIntervalMs: 1234 });
    });

    test('404, 405 with Allow, 400 and 505 are sent and counted', async (t) => {
      const server = await startServer(t, args);
      const cases = /** @type {[string, RegExp][]} */ ([
        ['GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1\.1 404 Not Found\r\n/],
        [
          'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
          /^HTTP\/1\.1 405 [\s\S]*\r\nAllow: GET, HEAD\r\n/,
        ],
        ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1\.1 405 [\s\S]*\r\nAllow: GET, HEAD\r\n/],
        ['GET / HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 Bad Request\r\n/],
        ['GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc', /^HTTP\/1\.1 400 /],
        ['GET / HTTP/9.9\r\nHost: a\r\n\r\n', /^HTTP\/1\.1 505 HTTP Version Not Supported\r\n/],
        ['GET / HTTP/2.0\r\nHost: a\r\n\r\n', /^HTTP\/1\.1 505 /],
        ['GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n', /^HTTP\/1\.1 400 /],
        ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', /^HTTP\/1\.1 400 /],
        ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1\.1 400 /],
      ]);
      for (const [bytes, pattern] of cases) assert.match(await answerTo(server.port, bytes), pattern, bytes);
      const totals = await server.untilTotals(({ refused400 }) => refused400 === 5, 'all are counted');
      assert.deepEqual(
        [totals.refused404, totals.refused405, totals.refused505, totals.opened],
        [1, 2, 2, 0],
      );
    });

    test('several Hosts, a malformed one, and a Content-Length that is not a number get 400', async (t) => {
      const server = await startServer(t, args);
      const heads = [
        ...['Host: a\r\nHost: b', 'Host: a\r\nhost: a', 'Host: a b/c@d', 'Host: [::1', 'Host: a:b'],
        ...['-0', '+0', '0x0', '0e9', '', '0, 0'].map((length) => `Host: a\r\nContent-Length: ${length}`),
      ];
      for (const head of heads)
        assert.match(
          await answerTo(server.port, `GET / HTTP/1.1\r\n${head}\r\n\r\n`),
          /^HTTP\/1\.1 400 /,
          head,
        );
      await server.untilTotals(({ refused400 }) => refused400 === heads.length, 'all are counted');
      for (const host of ['', 'a', 'a.example:80', '[::1]:80', 'a_b%20c']) {
        const client = rawClient(
          server.port,
          `GET / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 00\r\n\r\n`,
        );
        await client.untilRead(/^HTTP\/1\.1 200 [\s\S]*Welcome!/);
        client.close();
      }
    });

    test('every refusal says in one line what is wrong', async (t) => {
      const server = await startServer(t, [...args, '--head-timeout', '500', '--max-head', '1024']);
      const head = (/** @type {string} */ line) => `${line} HTTP/1.1\r\nHost: a\r\n\r\n`;
      /** @type {Record<string, string>} */
      const cases = {
        [head(`GET /?${'channel=a&'.repeat(17)}`)]:
          '400 Bad Request: a stream can have at most 16 channels, not 17',
        [head('GET /?channel=')]: '400 Bad Request: a channel needs a name, as in /?channel=news',
        [head(`GET /?channel=${'x'.repeat(300)}`)]:
          '400 Bad Request: the name of a channel can have at most 256 bytes, not 300',
        'GET / HTTP/1.1\r\n\r\n': '400 Bad Request: a request of HTTP/1.1 needs a Host header',
        [`${get({ 'Content-Length': '1' })}x`]: '400 Bad Request: a request for a stream has no body',
        'GET / HTTP/1.1\r\nbad header\r\n\r\n': '400 Bad Request: the request is invalid',
        [head('GET /news')]: '404 Not Found: streams are at /, and those of the hub at /.well-known/mercure',
        [head('PUT /')]: '405 Method Not Allowed: the Allow header lists the methods',
        'GET / HT': '408 Request Timeout: the request took too long to arrive',
        [get({ Cookie: 'x'.repeat(2000) })]:
          '431 Request Header Fields Too Large: the request head is too large',
        'GET / HTTP/3.0\r\n\r\n': '505 HTTP Version Not Supported: use HTTP/1.1 or HTTP/1.0',
      };
      const answers = await Promise.all(Object.keys(cases).map((bytes) => answerTo(server.port, bytes)));
      const bodies = answers.map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4));
      assert.deepEqual(
        bodies,
        Object.values(cases).map((line) => `${line}\n`),
      );
      for (const [i, line] of Object.values(cases).entries())
        assert.ok(answers[i].startsWith(`HTTP/1.1 ${line.split(':')[0]}\r\n`), answers[i]);
      const totals = await server.untilTotals(({ refused408 }) => refused408 === 1, 'the last is counted');
      assert.deepEqual(
        [totals.refused400, totals.refused404, totals.refused405, totals.opened],
        [6, 1, 1, 0],
      );
    });

    test('an Expect header, alone or among other requests, breaks nothing', async (t) => {
      const server = await startServer(t, args);
      const expecting = (/** @type {string} */ what) => get({ Expect: what });
      const odd = rawClient(server.port, expecting('miracles') + get());
      const held = rawClient(server.port, get());
      await held.untilRead(/Welcome!/);
      held.send(expecting('miracles').repeat(100));
      const asking = rawClient(server.port, expecting('100-continue'));
      await asking.untilRead(/^HTTP\/1\.1 200 OK\r\n[\s\S]*Welcome!/);
      await Promise.all([odd.untilClosed(), held.untilClosed()]);
      const totals = await server.untilTotals(
        // A worker's snapshot may come late.
        ({ closedBadRequest, opened }) => closedBadRequest === 2 && opened === 3,
        'three were opened, and both are closed',
      );
      assert.deepEqual([totals.streams, totals.lost], [1, 0]);
      asking.close();
    });

    test('a bad head is refused at whatever byte it breaks, and the server goes on', async (t) => {
      const server = await startServer(t, args);
      const head = get();
      const clients = Array.from({ length: head.length }, (_, i) =>
        rawClient(server.port, `${head.slice(0, i)}\x00${head.slice(i)}`),
      );
      await Promise.all(clients.map((client) => client.untilClosed()));
      for (const client of clients) assert.match(client.received, /^HTTP\/1\.1 (4\d\d|505) /);
      const good = rawClient(server.port, get());
      await good.untilRead(/Welcome!/);
      good.close();
    });

    test('a head cut off at any byte opens nothing and breaks nothing', async (t) => {
      const server = await startServer(t, args);
      const head = get();
      const clients = Array.from({ length: head.length - 1 }, (_, i) => {
        const client = rawClient(server.port, head.slice(0, i));
        client.socket.end();
        return client;
      });
      await Promise.all(clients.map((client) => client.untilClosed()));
      const good = rawClient(server.port, get());
      await good.untilRead(/Welcome!/);
      assert.equal((await server.untilTotals(({ opened }) => opened > 0, 'the good one')).opened, 1);
      good.close();
    });

    test('a head that takes too long gets 408, and so does a silent connection', async (t) => {
      const server = await startServer(t, [...args, '--head-timeout', '300']);
      const answers = await Promise.all([
        answerTo(server.port, 'GET / HTTP/1.1\r\nHo'),
        answerTo(server.port, ''),
      ]);
      for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n/);
      await server.untilTotals(({ refused408 }) => refused408 === 2, 'both are counted');
    });

    test('a head that is too large gets 431, even if its client goes on sending', async (t) => {
      const server = await startServer(t, [...args, '--max-head', '1024']);
      const large = get({ Cookie: 'x'.repeat(200_000) });
      assert.match(await answerTo(server.port, large), /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
      const fitting = rawClient(server.port, get({ Cookie: 'x'.repeat(800) }));
      await fitting.untilRead(/Welcome!/);
      fitting.close();
      await server.untilTotals(({ refused431 }) => refused431 === 1, 'it is counted');
    });

    test('over capacity 503 with Retry-After; once a stream goes there is room again', async (t) => {
      if (spawnSync('prlimit', ['--version']).error)
        return t.skip('prlimit is not installed (Debian: util-linux)');
      const server = await startServer(t, [...args, '--workers', '1'], {
        prefix: ['prlimit', '--nofile=160:160'],
      });
      const clients = Array.from({ length: 91 }, () => rawClient(server.port, get()));
      await server.untilTotals(({ streams }) => streams === 91, 'all that fit');
      const answer = await answerTo(server.port, get());
      assert.match(answer, /^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*\r\nRetry-After: \d+\r\n/);
      clients[0].close();
      await server.untilTotals(({ streams, refused503 }) => streams === 90 && refused503 === 1, 'room');
      clients[0] = rawClient(server.port, get());
      await clients[0].untilRead(/Welcome!/);
      for (const client of clients) client.close();
    });
  });
}

test('in the http transport connections are shared out evenly if more than half of the descriptors are needed', async (t) => {
  if (spawnSync('prlimit', ['--version']).error)
    return t.skip('prlimit is not installed (Debian: util-linux)');
  const plan = ['--workers', '2', '--streams', '150'];
  const server = await startServer(t, ['--transport', 'http', ...plan], {
    prefix: ['prlimit', '--nofile=160:160'],
  });
  const clients = [];
  for (let i = 0; i < 40; i++) {
    const client = rawClient(server.port, get());
    await client.untilRead(/Welcome!/);
    clients.push(client);
  }
  await server.untilTotals(({ streams }) => streams === 40, '40 streams');
  const { workers } = await server.frame();
  assert.deepEqual(
    workers.map(({ values }) => values.streams),
    [20, 20],
  );
  for (const client of clients) client.close();
});

test('in the http transport connections beyond the descriptors are cut, and the server goes on', async (t) => {
  if (spawnSync('prlimit', ['--version']).error)
    return t.skip('prlimit is not installed (Debian: util-linux)');
  const server = await startServer(t, ['--transport', 'http', '--workers', '1'], {
    prefix: ['prlimit', '--nofile=160:160'],
  });
  const silent = Array.from({ length: 200 }, () => rawClient(server.port));
  await server.untilTotals(({ cut }) => cut >= 100, 'those over the limit are cut');
  for (const client of silent) client.close();
  await until(async () => {
    const good = rawClient(server.port, get());
    await until(
      () => good.received !== '' || good.closed,
      'an answer, or the cut of one that came too early',
    );
    good.close();
    return /Welcome!/.test(good.received);
  }, 'there is room again');
});

test('in the hold transport connections beyond the descriptors make room for those with a request', async (t) => {
  if (!TRANSPORTS.includes('hold')) return t.skip('the native core is not built');
  if (spawnSync('prlimit', ['--version']).error)
    return t.skip('prlimit is not installed (Debian: util-linux)');
  const server = await startServer(t, ['--transport', 'hold', '--workers', '1'], {
    prefix: ['prlimit', '--nofile=160:160'],
  });
  const silent = Array.from({ length: 200 }, () => rawClient(server.port, 'G'));
  await until(() => silent.every(({ socket }) => socket.readyState === 'open'), 'the kernel took them all');
  const good = rawClient(server.port, get());
  await good.untilRead(/Welcome!/);
  await server.untilTotals(({ cut }) => cut > 0, 'the oldest was cut');
  await until(() => silent[0].closed || silent[1].closed, 'that is one of the first');
  for (const client of [...silent, good]) client.close();
});
