import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { limitConnections } from '../lib/crowd.js';
import { rawClient } from './helpers/client.js';
import { listening } from './helpers/hold.js';
import { until } from './helpers/until.js';

const MOST = 3;

/** @param {import('node:test').TestContext} t */
async function start(t) {
  /** @type {import('node:http').ServerResponse[]} */
  const asked = [];
  const server = createServer((request, response) => {
    if (request.url === '/wait') asked.push(response);
    else response.end('done');
  });
  limitConnections(server, MOST);
  const port = await listening(t, server);
  let connections = 0;
  server.on('connection', () => connections++);
  const open = async (/** @type {string} */ bytes = '') => {
    const before = connections;
    const client = rawClient(port, bytes);
    await until(() => connections > before, 'it is accepted');
    return client;
  };
  return { asked, open };
}

const WAIT = 'GET /wait HTTP/1.1\r\nHost: a\r\n\r\n';
const ASK = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

test('when there are too many connections, the one that has been idle for the longest is closed', async (t) => {
  const { open } = await start(t);
  const first = await open();
  const second = await open();
  const third = await open('GET / HTTP/1.1\r\nHo');
  first.send(ASK);
  await first.untilRead(/done/);
  const fourth = await open(ASK);
  await second.untilClosed();
  await fourth.untilRead(/done/);
  const fifth = await open(ASK);
  await third.untilClosed();
  await fifth.untilRead(/done/);
  assert.deepEqual([first.closed, fourth.closed, fifth.closed], [false, false, false]);
});

test('a connection that waits for its answer is not idle: if all do, the newest is closed', async (t) => {
  const { asked, open } = await start(t);
  const waiting = [await open(WAIT), await open(WAIT), await open(WAIT)];
  await until(() => asked.length === MOST, 'all have asked');
  const another = await open(ASK);
  await another.untilClosed();
  for (const response of asked) response.end('done');
  for (const client of waiting) await client.untilRead(/done/);
  await (await open(ASK)).untilRead(/done/);
});

test('a request whose body does not arrive gives way too', async (t) => {
  const { asked, open } = await start(t);
  const half = await open('POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234');
  await until(() => asked.length === 1, 'it has asked');
  const others = [await open(), await open()];
  await (await open(ASK)).untilRead(/done/);
  await half.untilClosed();
  for (const client of others) client.close();
});
