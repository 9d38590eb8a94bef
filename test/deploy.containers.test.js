/*
 * Dockerfile and compose.yaml, as far as they can be checked without images: docs/deploy.md says what was tried with them.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OPTIONS, readConfig } from '../lib/config.js';
import { variableOf } from '../lib/options.js';
import { freePort } from '../lib/port.js';
import { rawClient } from './helpers/client.js';
import { pythonPackage } from './helpers/python.js';
import { ROOT, run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const read = (/** @type {string} */ file) => readFileSync(join(ROOT, file), 'utf8');
const DOCKERFILE = read('Dockerfile');
const COMPOSE = read('compose.yaml');

/** @returns {string[]} the command of the health check */
function healthCheck() {
  const [, json] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(DOCKERFILE) ?? [];
  return JSON.parse(json);
}

test('the health check of the image succeeds while the server lives, ready or not, and fails otherwise', async (t) => {
  const server = await startServer(t, ['--workers', '1', '--hung-after', '2000']);
  const [, ...args] = healthCheck();
  const check = async (/** @type {number} */ port) => {
    const env = { ...process.env, HOLDFAST_ADMIN_PORT: String(port) };
    return (await run(t, process.execPath, args, { env }).exit).code;
  };
  assert.equal(await check(server.adminPort), 0);
  process.kill(server.workerPids[0], 'SIGSTOP');
  await until(async () => (await server.admin('/readyz')).status === 503, 'it is not ready');
  assert.equal(await check(server.adminPort), 0);
  assert.equal(await check(await freePort(0, '127.0.0.1')), 1, 'nobody is there');
});

test('with a token, the health check needs none, and containers that have it find the admin port by its name', async (t) => {
  const token = 'a-token-for-the-admin-port';
  const options = ['--workers', '1', '--admin-host', '0.0.0.0', '--admin-token', token];
  const { adminPort } = await startServer(t, options);
  const env = { ...process.env, HOLDFAST_ADMIN_PORT: String(adminPort) };
  const [, ...args] = healthCheck();
  assert.equal((await run(t, process.execPath, args, { env }).exit).code, 0);
  const statusOf = async (/** @type {string} */ headers) => {
    const client = rawClient(
      adminPort,
      `GET /metrics HTTP/1.1\r\nHost: holdfast:8890\r\nConnection: close\r\n${headers}\r\n`,
    );
    await client.untilClosed();
    return client.received.slice(9, 12);
  };
  assert.equal(await statusOf(`Authorization: Bearer ${token}\r\n`), '200');
  assert.equal(await statusOf(''), '401');
});

test('the image starts the server of the package, as a user that is not root', () => {
  const { bin } = JSON.parse(read('package.json'));
  assert.ok(
    DOCKERFILE.includes(`ENTRYPOINT ["node", "/opt/holdfast/node_modules/holdfast/${bin.holdfast}"]`),
  );
  assert.match(DOCKERFILE, /^USER [1-9]\d*:[1-9]\d*$/m);
});

test('the variables of the image and of compose.yaml are options', () => {
  const image = [...DOCKERFILE.matchAll(/\b(HOLDFAST_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]);
  assert.equal(image.length, 2);
  const { config } = readConfig([], Object.fromEntries(image));
  assert.deepEqual([config.dashboard, config.noLog], ['off', true]);
  const compose = [...COMPOSE.matchAll(/^ +(HOLDFAST_\w+): /gm)].map(([, name]) => name);
  const known = OPTIONS.map(({ flag }) => variableOf(flag));
  assert.ok(compose.length >= 4);
  for (const name of compose) assert.ok(known.includes(name), name);
});

test('the files that compose.yaml mounts are there', () => {
  const files = [...COMPOSE.matchAll(/^ +- (\.\/docs\/\S+?):/gm)].map(([, file]) => file);
  assert.equal(files.length, 5);
  for (const file of files) assert.ok(existsSync(join(ROOT, file)), file);
});

test('compose.yaml follows the specification of Compose', async (t) => {
  const { folder, problem } = await pythonPackage('check-jsonschema-0.33.3', 'check-jsonschema==0.33.3');
  if (problem) return t.skip(problem);
  const words = ['-m', 'check_jsonschema', '--builtin-schema', 'vendor.compose-spec', 'compose.yaml'];
  const { status, stdout, stderr } = spawnSync(join(folder, 'python'), words, {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
});

test('every container is confined: a read-only file system, no capabilities, no new privileges', () => {
  const [, services] = /^services:\n([\s\S]*?)^networks:/m.exec(COMPOSE) ?? [];
  const names = [...services.matchAll(/^ {2}(\w+):$/gm)].map(([, name]) => name);
  assert.deepEqual(names, ['holdfast', 'nats', 'prometheus', 'grafana']);
  assert.equal(services.match(/^ {4}<<: \*confined$/gm)?.length, names.length);
  for (const line of ['read_only: true', 'cap_drop: [ALL]', 'security_opt: ["no-new-privileges:true"]'])
    assert.ok(COMPOSE.includes(`\n  ${line}\n`), line);
});
