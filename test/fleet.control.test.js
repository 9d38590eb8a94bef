/*
 * How a drone is steered, and by whom.
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
  const steered = {
    stats: () => ({ streams: 5 }),
    counts: () => ({ open: 3 }),
    set: async (/** @type {[string, string][]} */ changes) => {
      if (changes[0]?.[0] === 'host') throw new HoldfastError('NO_CONSENT', 'it does not want to');
      if (changes[0]?.[0] === 'x') throw new HoldfastError('BAD_PARAM', 'there is no x');
      if (changes[0]?.[0] === 'fault') throw new TypeError('a fault of ours');
      seen.push(...changes);
      return { n: 1 };
    },
    restart: async () => void seen.push('restart'),
    stop: () => void seen.push('stop'),
  };
  const control = new Control(steered, token);
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

test('GET / says how it does, GET /set sets, POST /restart and /stop do that', async (t) => {
  const { port, seen } = await startControl(t);
  assert.deepEqual(await ask(port, '/'), { status: 200, body: { streams: 5 } });
  assert.deepEqual(await ask(port, '/counts'), { status: 200, body: { counts: { open: 3 } } });
  assert.deepEqual(await ask(port, '/set?n=5&host2=a%20b'), { status: 200, body: { params: { n: 1 } } });
  assert.equal((await ask(port, '/restart', 'POST')).status, 200);
  assert.equal((await ask(port, '/stop', 'POST')).status, 200);
  assert.deepEqual(seen, [['n', '5'], ['host2', 'a b'], 'restart', 'stop']);
});

test('what must not be done by following a link takes POST', async (t) => {
  const { port, seen } = await startControl(t);
  for (const path of ['/restart', '/stop']) assert.equal((await ask(port, path)).status, 405);
  assert.equal((await ask(port, '/nothing')).status, 404);
  assert.deepEqual(seen, []);
});

test('errors are one line and a status: 400 for a bad parameter, 403 for a target that refuses, 500 for a fault', async (t) => {
  const { port } = await startControl(t);
  assert.deepEqual(await ask(port, '/set?x=1'), { status: 400, body: { error: 'there is no x' } });
  assert.deepEqual(await ask(port, '/set?host=a'), { status: 403, body: { error: 'it does not want to' } });
  assert.equal((await ask(port, '/set?fault=1')).status, 500);
});

test('pages of a browser are refused: by their Origin, and by a name that was pointed here', async (t) => {
  const { port, seen } = await startControl(t);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Origin: 'http://evil.example' })).status, 403);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Host: 'evil.example' })).status, 403);
  assert.equal((await ask(port, '/set?n=9', 'GET', { Host: `localhost:${port}` })).status, 200);
  assert.deepEqual(seen, [['n', '9']]);
});

test('with a token all else is refused, and the right one is taken', async (t) => {
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

test('on an address that others reach it does not listen without a token', async () => {
  const control = new Control(/** @type {any} */ ({}), '');
  await assert.rejects(control.listen('0.0.0.0', 0), {
    code: 'NO_TOKEN',
    message: /--listen 0\.0\.0\.0 is no loopback address: .* HOLDFAST_TOKEN$/,
  });
});

test('a port that is in use is said in one line', async (t) => {
  const { port } = await startControl(t);
  const other = new Control(/** @type {any} */ ({}), '');
  await assert.rejects(other.listen('127.0.0.1', port), {
    code: 'EADDRINUSE',
    message: new RegExp(`127\\.0\\.0\\.1:${port} is in use: .* --listen-port$`),
  });
});
