/*
 * The hub of the server, over several workers, and with the disk broker across restarts and crashes.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { listening } from './helpers/hold.js';
import { clientsOf, datasOf, legacyToken, PATH, SECRET } from './helpers/hub.js';
import { startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const ARGS = ['--workers', '2', '--jwt-secret', SECRET];

/** @param {import('node:test').TestContext} t @param {string[]} args */
async function start(t, ...args) {
  const server = await startServer(t, [...ARGS, ...args]);
  return { server, ...clientsOf(t, server.port) };
}

for (const transport of TRANSPORTS) {
  describe(`the hub of a server with the ${transport} transport`, () => {
    test('delivers to the streams of all workers, whichever worker was published to', async (t) => {
      const { subscribe, publish } = await start(t, '--transport', transport);
      const clients = [];
      for (let i = 0; i < 8; i++) clients.push(await subscribe('match=a'));
      const datas = Array.from({ length: 20 }, (_, i) => String(i));
      for (const data of datas) assert.equal((await publish({ topic: 'a', data })).status, 200);
      for (const client of clients) await until(() => datasOf(client).length === 20, 'all of them');
      for (const client of clients) assert.deepEqual(datasOf(client), datas);
    });

    test('a cursor of one worker is good for another, and for one that was restarted', async (t) => {
      const { server, subscribe, publish } = await start(t, '--transport', transport);
      const client = await subscribe('match=a');
      const cursor = client.events()[0].id ?? '';
      client.close();
      for (const data of ['1', '2', '3']) await publish({ topic: 'a', data });
      for (const pid of server.workerPids) {
        process.kill(pid, 'SIGKILL');
        await until(async () => (await server.admin('/readyz')).status === 503, 'it is missed');
        await until(async () => (await server.admin('/readyz')).status === 200, 'it is replaced');
      }
      for (let i = 0; i < 6; i++) {
        const again = await subscribe('match=a', { 'Last-Event-ID': cursor });
        await until(() => datasOf(again).length === 3, 'the replay');
        assert.deepEqual(
          [datasOf(again), again.head().headers['mercure-last-event-id']],
          [['1', '2', '3'], cursor],
        );
      }
    });

    test('a stream, a page of the server and another publication can follow a publication on its connection', async (t) => {
      const { server, publish, subscribe } = await start(t, '--transport', transport);
      const { rawClient } = await import('./helpers/client.js');
      const form = 'topic=a&data=1';
      const post = `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${legacyToken({ publish: ['*'] })}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`;
      const client = rawClient(server.port, post);
      t.after(client.close);
      await client.untilRead(/#[\w-]{22}$/);
      client.send(post);
      await until(() => client.received.match(/HTTP\/1\.1 200/g)?.length === 2, 'the second answer');
      client.send(`GET ${PATH}?match=a HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await client.untilRead(/text\/event-stream[\s\S]*id: #/);
      await publish({ topic: 'a', data: 'live' });
      await client.untilRead(/data: live/);
      const other = rawClient(server.port, post);
      t.after(other.close);
      await other.untilRead(/#[\w-]{22}$/);
      other.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await other.untilRead(/Welcome!/);
      assert.equal((await subscribe('match=a')).head().status, 200);
    });
  });
}

test('what was published with a store is there after a restart, with the same cursors', async (t) => {
  const folder = temporaryFolder(t);
  const first = await start(t, '--store', folder);
  const client = await first.subscribe('match=a');
  const cursor = client.events()[0].id ?? '';
  for (const data of ['1', '2']) await first.publish({ topic: 'a', data });
  first.server.child.kill('SIGTERM');
  await first.server.exit;
  const second = await start(t, '--store', folder);
  const again = await second.subscribe('match=a', { 'Last-Event-ID': cursor });
  await second.publish({ topic: 'a', data: '3' });
  await until(() => datasOf(again).includes('3'), 'the live one');
  assert.deepEqual(datasOf(again), ['1', '2', '3']);
});

test('a publication that was answered survives kill -9 of every process', async (t) => {
  const folder = temporaryFolder(t);
  for (let round = 0; round < 3; round++) {
    const { server, publish, subscribe } = await start(t, '--store', folder);
    const before = await subscribe('match=a&last_event_id=earliest');
    const known = datasOf(before).length;
    let answered = 0;
    const publishing = Array.from({ length: 4 }, async () => {
      for (let i = 0; i < 50; i++) {
        const { status } = await publish({ topic: 'a', data: `${round}` }).catch(() => ({ status: 0 }));
        if (status !== 200) return;
        answered++;
      }
    });
    await until(() => answered >= 40, 'some are answered');
    for (const pid of [server.child.pid ?? 0, ...server.workerPids]) process.kill(pid, 'SIGKILL');
    const sure = answered;
    await Promise.all(publishing);
    const next = await start(t, '--store', folder);
    const reader = await next.subscribe('match=a&last_event_id=earliest');
    await until(() => datasOf(reader).length >= known + sure, 'all that was answered');
    next.server.child.kill('SIGTERM');
    await next.server.exit;
  }
});

test('without a key nobody can publish, and the server says so', async (t) => {
  const server = await startServer(t, ['--workers', '1']);
  const { publish } = clientsOf(t, server.port);
  assert.equal((await publish({ topic: 'a', data: '1' })).status, 405);
  assert.match(server.output.stderr, /publishing to only the admin port, because there is no key/);
});

test('the log says that the JWKS URL does not answer, and that it is back', async (t) => {
  let status = 500;
  const keys = createServer((_request, response) => response.writeHead(status).end('{"keys":[]}'));
  const url = `http://127.0.0.1:${await listening(t, keys)}/keys`;
  const server = await startServer(t, ['--workers', '1', '--jwks-url', url]);
  const has = (/** @type {string} */ text) =>
    until(() => server.output.stderr.includes(`worker 1: ${text}`), text);
  await has(`can't get the keys of ${url} (status 500): tokens get 503 until it answers`);
  status = 200;
  await has(`${url} is back`);
});
