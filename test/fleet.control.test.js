/*
 * How a drone is controlled, and by whom.
 */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
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
      if (changes[0]?.[0] === 'host') throw new HoldfastError('NO_CONSENT', 'it refuses');
      if (changes[0]?.[0] === 'x') throw new HoldfastError('BAD_PARAM', 'unknown parameter x');
      if (changes[0]?.[0] === 'fault') throw new TypeError('a bug');
      seen.push(...changes);
      return { n: 1 };
    },
    restart: async () => void seen.push('restart'),
    stop: () => void seen.push('stop'),
  };
  const control = new Control(controlled, token);
  const port = await control.listen('127.0.0.1', 0);
  t.after(() => control.close());
  return { port, seen };
}

/**
 * @param {number} port @param {string} path @param {string} [method] @param {Record<string, string>} [headers]
 * @returns {Promise<{ status?: number, body: any }>}
 */
function ask(port, path, method = 'GET', headers = {}) {
  return new Promise((resolve, reject) => {
    const question = request({ port, host: '127.0.0.1', path, method, headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (data) => {
        text += data;
      });
      response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }));
    });
    question.on('error', reject).end();
  });
}

test('GET / returns the stats, GET /counts the counts, GET /set changes parameters, POST /restart and /stop do so', async (t) => {
  const { port, seen } = await startControl(t);
  assert.deepEqual(await ask(port, '/'), { status: 200, body: { streams: 5 } });
  assert.deepEqual(await ask(port, '/counts'), { status: 200, body: { counts: { open: 3 } } });
  assert.deepEqual(await ask(port, '/set?n=5&host2=a%20b'), { status: 200, body: { params: { n: 1 } } });
  assert.equal((await ask(port, '/restart', 'POST')).status, 200);
  assert.equal((await ask(port, '/stop', 'POST')).status, 200);
  assert.deepEqual(seen, [['n', '5'], ['host2', 'a b'], 'restart', 'stop']);
});

test('what a link must not trigger takes POST', async (t) => {
  const { port, seen } = await startControl(t);
  for (const path of ['/restart', '/stop']) {
    const { status, body } = await ask(port, path);
    assert.deepEqual([status, body], [405, { error: `${path} takes POST` }]);
  }
  assert.deepEqual(await ask(port, '/nothing'), {
    status: 404,
    body: { error: 'the paths are /, /counts, /set, /restart, /stop' },
  });
  assert.deepEqual(seen, []);
});

test('errors are one line and a status: 400 for a bad parameter, 403 for a target that refuses, 500 for a bug', async (t) => {
  const { port } = await startControl(t);
  assert.deepEqual(await ask(port, '/set?x=1'), { status: 400, body: { error: 'unknown parameter x' } });
  assert.deepEqual(await ask(port, '/set?host=a'), { status: 403, body: { error: 'it refuses' } });
  assert.equal((await ask(port, '/set?fault=1')).status, 500);
});

test('web pages are refused, by their Origin and by host names that only resolve to here', async (t) => {
  const { port, seen } = await startControl(t);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Origin: 'http://evil.example' })).status, 403);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Host: 'evil.example' })).status, 403);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Host: `localhost:${port}` })).status, 200);
  assert.deepEqual(seen, [['n', '9']]);
});

test('with a token, only requests that have it are accepted', async (t) => {
  const { port, seen } = await startControl(t, 'secret');
  for (const authorization of ['', 'Bearer', 'Bearer secre', 'Bearer secrets', 'Basic secret']) {
    const headers = authorization ? { Authorization: authorization } : undefined;
    assert.equal((await ask(port, '/set?n=9', 'GET', headers)).status, 401, authorization);
  }
  assert.deepEqual(seen, []);
  assert.equal(
    (await ask(port, '/set?n=9', 'GET', { Authorization: 'Bearer secret', Host: 'a.example' })).status,
    200,
  );
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
