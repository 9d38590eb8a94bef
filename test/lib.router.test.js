import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { codeOf, HoldfastError } from '../lib/errors.js';
import { openPort } from '../lib/port.js';
import { asJson, listenerOf, RequestError, readBody } from '../lib/router.js';

/** @type {import('../lib/router.js').Route[]} */
const TABLE = [
  {
    methods: ['GET'],
    path: '/',
    handle: (_, { searchParams }) => ({ status: 200, body: [...searchParams] }),
  },
  {
    methods: ['POST'],
    path: '/',
    handle: async (request) => ({ status: 201, body: await readBody(request, 5) }),
  },
  {
    methods: ['GET'],
    path: '/page',
    handle: () => ({ status: 200, type: 'text/html', body: '<p>', headers: { 'X-A': '1' } }),
  },
  {
    methods: ['GET'],
    path: '/refused',
    handle() {
      throw new RequestError(401, 'who are you?', { 'WWW-Authenticate': 'Bearer' });
    },
  },
  {
    methods: ['GET'],
    path: '/broken',
    handle() {
      throw new HoldfastError('BROKEN', 'two\nlines');
    },
  },
];

/** @param {import('node:test').TestContext} t @param {import('../lib/router.js').Options} [options] */
async function serve(t, options) {
  const server = createServer(listenerOf(TABLE, options));
  const port = await openPort(server, { port: 0, host: '127.0.0.1', flag: 'port' });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (/** @type {string} */ path, /** @type {RequestInit} */ init = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, init);
}

test('a route gets the request and its query, and an object is answered as JSON', async (t) => {
  const ask = await serve(t);
  const answer = await ask('/?a=1&b=x%20y&a=2');
  assert.equal(answer.headers.get('content-type'), 'application/json');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.deepEqual(await answer.json(), [
    ['a', '1'],
    ['b', 'x y'],
    ['a', '2'],
  ]);
});

test('text is answered as plain text unless the handler gives a type, and headers are added', async (t) => {
  const ask = await serve(t);
  const plain = await ask('/', { method: 'POST', body: 'hello' });
  assert.deepEqual([plain.status, await plain.text()], [201, 'hello']);
  assert.equal(plain.headers.get('content-type'), 'text/plain; charset=utf-8');
  const page = await ask('/page');
  assert.deepEqual([page.headers.get('content-type'), page.headers.get('x-a')], ['text/html', '1']);
});

test('GET includes HEAD', async (t) => {
  const answer = await (await serve(t))('/page', { method: 'HEAD' });
  assert.deepEqual([answer.status, answer.headers.get('content-length')], [200, '3']);
  assert.equal(await answer.text(), '');
});

test('an unknown path is a 404 that lists the paths', async (t) => {
  const answer = await (await serve(t))('/nothing?a=1');
  assert.equal(answer.status, 404);
  assert.equal(await answer.text(), '404 Not Found: the paths are /, /page, /refused, /broken\n');
});

test('a wrong method is a 405 that allows those of all rows with that path', async (t) => {
  const answer = await (await serve(t))('/', { method: 'DELETE' });
  assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD, POST']);
});

test('what a handler throws becomes an answer: a RequestError has its status, anything else is a 500', async (t) => {
  const ask = await serve(t);
  const refused = await ask('/refused');
  assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, 'Bearer']);
  assert.equal(await refused.text(), '401 Unauthorized: who are you?\n');
  const broken = await ask('/broken');
  assert.deepEqual([broken.status, await broken.text()], [500, '500 Internal Server Error: two lines\n']);
});

test('the caller chooses the form of errors, and the status of its own', async (t) => {
  const ask = await serve(t, {
    problem: asJson,
    statusOf: (error) => (codeOf(error) === 'BROKEN' ? 409 : 500),
  });
  const broken = await ask('/broken');
  assert.deepEqual([broken.status, await broken.json()], [409, { error: 'two lines' }]);
});

test('a check runs before anything else', async (t) => {
  const ask = await serve(t, {
    check() {
      throw new RequestError(403, 'not you');
    },
  });
  assert.equal((await ask('/nothing')).status, 403);
});

test('a body that is too large is a 413', async (t) => {
  const answer = await (await serve(t))('/', { method: 'POST', body: 'x'.repeat(100_000) });
  assert.equal(answer.status, 413);
  assert.match(await answer.text(), /^413 .*: got 100000 bytes, expected 5 at most\n$/);
});
