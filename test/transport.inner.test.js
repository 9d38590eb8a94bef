import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { innerServer, retire } from '../transport/inner.js';

const LIMITS = { maxHeadBytes: 8192, headTimeoutMs: 5000 };
/** @type {(() => void)[]} */
const ends = [];
after(() => ends.forEach((end) => void end()));

/** A port whose connections an inner server gets, as from a Hold. @param {import('node:http').RequestListener} listener */
async function open(listener) {
  const inner = innerServer(listener, LIMITS);
  const front = createServer({ allowHalfOpen: true }, (socket) => inner.emit('connection', socket)).listen(
    0,
    '127.0.0.1',
  );
  await once(front, 'listening');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  ends.push(
    () => front.close(),
    () => agent.destroy(),
    () => inner.closeAllConnections(),
  );
  const { port } = /** @type {import('node:net').AddressInfo} */ (front.address());
  const get = async () => {
    const sent = request({ port, host: '127.0.0.1', agent }).end();
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    return response.headers.connection;
  };
  return { inner, get };
}

test('a server that retires says so in the next response, and ends once its connections are gone', async () => {
  const { inner, get } = await open((_request, response) => response.end('hi'));
  assert.equal(await get(), 'keep-alive');
  const retired = retire(inner, { idleMs: 60_000, mostMs: 60_000 });
  assert.equal(await get(), 'close');
  await retired;
});

test('it closes connections without a request after a while, and waits for answers', async () => {
  /** @type {import('node:http').ServerResponse[]} */
  const responses = [];
  const { inner, get } = await open((_request, response) => responses.push(response));
  const first = get();
  while (responses.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  let isRetired = false;
  const retired = retire(inner, { idleMs: 0, mostMs: 60_000 }).then(() => {
    isRetired = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(isRetired, false, 'it waits for the answer');
  responses[0].end('late');
  await first;
  await retired;
});

test('it closes a connection that sends no other request', async () => {
  const { inner, get } = await open((_request, response) => response.end('hi'));
  await get();
  await retire(inner, { idleMs: 0, mostMs: 60_000 });
  assert.equal(await get(), 'close', 'on another connection');
});

test('it stops waiting after the longest time', async () => {
  const { inner, get } = await open(() => {});
  const lost = get().catch(() => {});
  await once(inner, 'request');
  await retire(inner, { idleMs: 0, mostMs: 50 });
  inner.closeAllConnections();
  await lost;
});

test('a request that is not HTTP, or too large, is refused with a line of text', async () => {
  const { inner } = await open((_request, response) => response.end('hi'));
  const front = createServer({ allowHalfOpen: true }, (socket) => inner.emit('connection', socket)).listen(
    0,
    '127.0.0.1',
  );
  ends.push(() => front.close());
  await once(front, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (front.address());
  for (const [sent, answer] of [
    [
      'GARBAGE\r\n\r\n',
      /^HTTP\/1\.1 400 Bad Request\r\n(?:.*\r\n)*\r\n400 Bad Request: the request is invalid\n$/,
    ],
    [
      `GET /${'x'.repeat(9000)} HTTP/1.1\r\n\r\n`,
      /^HTTP\/1\.1 431 (?:.*\r\n)*\r\n431 .*: the request head is too large\n$/,
    ],
  ]) {
    const socket = connect(port, '127.0.0.1');
    ends.push(() => socket.destroy());
    socket.write(/** @type {string} */ (sent));
    assert.match(await text(socket), /** @type {RegExp} */ (answer));
  }
});
