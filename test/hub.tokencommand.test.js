/*
 * `holdfast token` makes tokens that a server with the same secret accepts.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { clientsOf, PATH, SECRET } from './helpers/hub.js';
import { ROOT, startServer, temporaryFolder } from './helpers/server.js';

/** @param {string[]} args @param {Record<string, string>} [env] */
function token(args, env = { HOLDFAST_JWT_SECRET: SECRET }) {
  const { PATH: path } = process.env;
  const program = spawnSync(process.execPath, ['server.js', 'token', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: path, ...env },
  });
  return { status: program.status, stdout: program.stdout, stderr: program.stderr };
}

/** @param {string} text of a token @returns {any} */
const claimsOf = (text) => JSON.parse(Buffer.from(text.split('.')[1], 'base64url').toString());

test('a server with the same secret accepts it, for what it allows', async (t) => {
  const server = await startServer(t, ['--jwt-secret', SECRET]);
  const post = async (/** @type {string} */ topic, /** @type {string} */ bearer) => {
    const body = new URLSearchParams({ topic, data: 'x' });
    const headers = { Authorization: `Bearer ${bearer.trim()}` };
    const url = `http://127.0.0.1:${server.port}${PATH}`;
    return (await fetch(url, { method: 'POST', headers, body })).status;
  };
  const news = token(['--publish', 'news', '--publish', 'sports']).stdout;
  assert.deepEqual(
    await Promise.all(['news', 'sports', 'other'].map((topic) => post(topic, news))),
    [200, 200, 401],
  );
  assert.equal(await post('other', token(['--publish', '*']).stdout), 200);

  const reader = token(['--subscribe', 'news', '--subject', 'alice', '--expires', '2d']).stdout.trim();
  const { exp, iat, sub } = claimsOf(reader);
  assert.deepEqual([exp - iat, sub], [2 * 86_400, 'alice']);
  const { subscribe } = clientsOf(t, server.port);
  await subscribe('match=news', { Authorization: `Bearer ${reader}` });
});

test('with an audience it is a token of draft-08, which a server without 0.x accepts', async (t) => {
  const audience = `https://hub.example${PATH}`;
  const args = [
    '--jwt-secret',
    SECRET,
    '--mercure-legacy',
    'off',
    '--jwt-audience',
    audience,
    '--jwt-issuer',
    'me',
  ];
  const server = await startServer(t, args);
  const post = async (/** @type {string[]} */ ...more) => {
    const headers = { Authorization: `Bearer ${token(['--publish', 'news', ...more]).stdout.trim()}` };
    const body = new URLSearchParams({ topic: 'news', data: 'x' });
    return (await fetch(`http://127.0.0.1:${server.port}${PATH}`, { method: 'POST', headers, body })).status;
  };
  assert.equal(await post('--audience', audience, '--issuer', 'me'), 200);
  assert.equal(await post('--audience', audience), 401);
  assert.equal(await post('--issuer', 'me'), 401);
});

test('the secret can be in a file, and is never printed', (t) => {
  const file = join(temporaryFolder(t), 'secret');
  writeFileSync(file, `${SECRET}\n`);
  const { stdout } = token(['--jwt-secret', `@${file}`, '--publish', 'a'], {});
  const other = token(['--publish', 'a']).stdout;
  assert.equal(stdout.split('.').length, 3);
  assert.equal(stdout.split('.')[0], other.split('.')[0]);
});

test('a mistake is one line that says what to do', () => {
  for (const [
    args,
    env,
    expected,
  ] of /** @type {[string[], Record<string, string> | undefined, RegExp][]} */ ([
    [['--publish', '*'], {}, /^holdfast: no secret given: use HOLDFAST_JWT_SECRET, or --jwt-secret @FILE\n$/],
    [
      [],
      undefined,
      /^holdfast: the token would allow nothing: give --publish TOPIC, --subscribe TOPIC or both\n$/,
    ],
    [
      ['--publish', 'a', '--expires', 'soon'],
      undefined,
      /^holdfast: --expires got 'soon': expected a number and s, m, h, d or y/,
    ],
    [['--publsh', 'a'], undefined, /^holdfast: unknown option --publsh: did you mean --publish\?/],
  ])) {
    const { status, stdout, stderr } = token(args, env);
    assert.match(stderr, expected);
    assert.deepEqual([status, stdout], [1, '']);
  }
  assert.match(token(['--help']).stdout, /^Usage: holdfast token/);
});
