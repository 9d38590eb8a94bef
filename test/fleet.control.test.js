/*
 * How a drone is controlled, and by whom.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Refusal } from '../fleet/drone/consent.js';
import { Control } from '../fleet/drone/control.js';
import { HoldfastError } from '../lib/errors.js';

/** @param {import('node:test').TestContext} t @param {string} [token] */
async function startControl(t, token = '') {
  /** @type {unknown[]} */
  const seen = [];
  const controlled = {
    stats: () => ({ streams: 5 }),
    counts: () => ({ open: 3 }),
    set: async (/** @type {[string, string][]} */ changes) => {
      const [[name, value]] = changes;
      if (name === 'host') throw new Refusal(value, `it is ${value}`, 'a:80');
      if (name === 'busy') throw new HoldfastError('BUSY', 'try again later');
      if (changes[0]?.[0] === 'x') throw new HoldfastError('BAD_PARAM', 'unknown parameter x');
      if (changes[0]?.[0] === 'fault') throw new TypeError('a bug');
      seen.push(...changes);
      return { n: 1 };
    },
    restart: async () => void seen.push('restart'),
    stop: () => void seen.push('stop'),
    note: (/** @type {string} */ line) => void seen.push(line),
  };
  const control = new Control(controlled, token);
  const port = await control.listen('127.0.0.1', 0);
  t.after(() => control.close());
  return { port, seen };
}

/**
 * @param {number} port @param {string} path @param {string} [method] @param {Record<string, string>} [headers]
 * @returns {Promise<{ status?: number, allow?: string, body: any }>}
 */
function ask(port, path, method = 'GET', headers = {}) {
  return new Promise((resolve, reject) => {
    const question = request({ port, host: '127.0.0.1', path, method, headers, agent: false }, (response) => {
      const { statusCode: status, headers: answered } = response;
      const allow = answered.allow === undefined ? {} : { allow: answered.allow };
      let text = '';
      response.on('data', (data) => {
        text += data;
      });
      response.on('end', () => resolve({ status, ...allow, body: JSON.parse(text) }));
    });
    question.on('error', reject).end();
  });
}

test('GET / returns the stats, GET /counts the counts, POST /set changes parameters, POST /restart and /stop do so', async (t) => {
  const { port, seen } = await startControl(t);
  assert.deepEqual(await ask(port, '/'), { status: 200, body: { streams: 5 } });
  assert.deepEqual(await ask(port, '/counts'), { status: 200, body: { counts: { open: 3 } } });
  assert.deepEqual(await ask(port, '/set?n=5&host2=a%20b', 'POST'), {
    status: 200,
    body: { params: { n: 1 } },
  });
  assert.equal((await ask(port, '/restart', 'POST')).status, 200);
  assert.equal((await ask(port, '/stop', 'POST')).status, 200);
  assert.deepEqual(seen, [['n', '5'], ['host2', 'a b'], 'restart', 'stop']);
});

test('what a link must not trigger takes POST', async (t) => {
  const { port, seen } = await startControl(t);
  for (const path of ['/set', '/restart', '/stop']) {
    const { status, allow, body } = await ask(port, `${path}?n=5`);
    assert.deepEqual([status, allow, body], [405, 'POST', { error: `${path} takes POST` }]);
  }
  assert.deepEqual(await ask(port, '/nothing'), {
    status: 404,
    body: { error: 'the paths are /, /counts, /set, /restart, /stop' },
  });
  assert.deepEqual(seen, []);
});

test('errors are one line and a status: 400 for a bad parameter, 503 if others wait, 500 for a bug', async (t) => {
  const { port } = await startControl(t);
  const set = (/** @type {string} */ query) => ask(port, `/set${query}`, 'POST');
  assert.deepEqual(await set('?x=1'), { status: 400, body: { error: 'unknown parameter x' } });
  assert.deepEqual(await set('?busy=1'), { status: 503, body: { error: 'try again later' } });
  assert.equal((await set('?fault=1')).status, 500);
  const empty = await set('');
  assert.deepEqual([empty.status, empty.body.error], [400, 'no parameter given: use /set?n=1000&ramp=500']);
});

test('a target that may not be dialled has one answer, whatever the reason; the drone notes the reason', async (t) => {
  const { port, seen } = await startControl(t);
  const codes = ['NO_HOST', 'BAD_TARGET', 'NO_ANSWER', 'NO_CONSENT'];
  const answers = await Promise.all(codes.map((code) => ask(port, `/set?host=${code}`, 'POST')));
  for (const { status, body } of answers) {
    assert.equal(status, 403);
    assert.match(
      body.error,
      /^refusing to load a:80: it did not confirm that it accepts load, .* --accept-load$/,
    );
  }
  assert.equal(new Set(answers.map(({ body }) => body.error)).size, 1);
  assert.deepEqual(seen.sort(), codes.map((code) => `it is ${code}`).sort());
});

/** What the browser of a victim sends for a page of somebody else. @type {Record<string, string>[]} */
const PAGES = [
  { Origin: 'http://evil.example' },
  { Origin: 'null' },
  { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' },
  { 'Sec-Fetch-Site': 'same-site' },
  { 'Sec-Fetch-Site': 'same-origin' },
  { 'Sec-Fetch-Site': 'none, cross-site' },
];

test('web pages are refused, by what their browser says, with a token too', async (t) => {
  for (const token of ['', 'secret']) {
    const { port, seen } = await startControl(t, token);
    const authorization = { Authorization: `Bearer ${token}` };
    for (const page of PAGES) {
      const { status } = await ask(port, '/set?n=9', 'POST', { ...authorization, ...page });
      assert.equal(status, 403, JSON.stringify(page));
    }
    assert.deepEqual(seen, []);
    const typed = { ...authorization, 'Sec-Fetch-Site': 'none' };
    assert.equal((await ask(port, '/', 'GET', typed)).status, 200);
  }
});

test('without a token, host names that only resolve to here are refused', async (t) => {
  const { port, seen } = await startControl(t);
  for (const host of ['evil.example', `127.0.0.1.evil.example:${port}`, 'localhost@evil.example'])
    assert.equal((await ask(port, '/set?n=9', 'POST', { Host: host })).status, 403, host);
  for (const host of [`localhost:${port}`, '127.0.0.1', '[::1]:80'])
    assert.equal((await ask(port, '/set?n=9', 'POST', { Host: host })).status, 200, host);
  assert.equal(seen.length, 3);
});

test('with a token, only requests that have it are accepted, under any name of the machine', async (t) => {
  const { port, seen } = await startControl(t, 'secret');
  for (const authorization of ['', 'Bearer', 'Bearer secre', 'Bearer secrets', 'Basic secret']) {
    const headers = authorization ? { Authorization: authorization } : undefined;
    assert.equal((await ask(port, '/set?n=9', 'POST', headers)).status, 401, authorization);
  }
  assert.deepEqual(seen, []);
  const headers = { Authorization: 'Bearer secret', Host: 'a.example' };
  assert.equal((await ask(port, '/set?n=9', 'POST', headers)).status, 200);
});

test('connections that send nothing, or not the whole head, do not lock anybody out', async (t) => {
  const { port } = await startControl(t);
  const sockets = Array.from({ length: 200 }, (_, i) => {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume();
    if (i % 2) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX: ');
    return socket;
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  assert.equal((await ask(port, '/')).status, 200);
  await Promise.all(sockets.map((socket) => socket.destroyed || once(socket, 'close')));
});

test('a connection is closed after its answer, even if the client wants to keep it or never sends its body', async (t) => {
  const { port } = await startControl(t);
  const head = 'Host: localhost\r\nConnection: keep-alive\r\n';
  const requests = [
    `GET / HTTP/1.1\r\n${head}\r\n`,
    `POST /set?n=1 HTTP/1.1\r\n${head}Content-Length: 100000000\r\n\r\nabc`,
  ];
  for (const text of requests) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(text);
    socket.resume();
    await once(socket, 'close', { signal: AbortSignal.timeout(2500) });
  }
});

test('does not listen on an address others can reach without a token', async () => {
  const control = new Control(/** @type {any} */ ({}), '');
  await assert.rejects(control.listen('0.0.0.0', 0), {
    code: 'NO_TOKEN',
    message: /--listen 0\.0\.0\.0 is not a loopback address, .* HOLDFAST_TOKEN$/,
  });
});

test('a port that is in use is an error of one line', async (t) => {
  const { port } = await startControl(t);
  const other = new Control(/** @type {any} */ ({}), '');
  await assert.rejects(other.listen('127.0.0.1', port), {
    code: 'EADDRINUSE',
    message: new RegExp(`127\\.0\\.0\\.1:${port} is in use: .* --listen-port$`),
  });
});
