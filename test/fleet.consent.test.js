/*
 * Which servers a drone may dial. Addresses other than loopback are in a network namespace of the test.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { askConsent, isLoopback } from '../fleet/drone/consent.js';
import { spawnDrone } from './helpers/drone.js';
import { makeNamespace } from './helpers/namespace.js';
import { startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const OTHER_ADDRESS = '10.99.0.1';

/** @param {import('node:test').TestContext} t */
function namespaceOf(t) {
  const namespace = makeNamespace(t, {});
  const problem =
    namespace.problem || namespace.run('ip', 'address', 'add', `${OTHER_ADDRESS}/32`, 'dev', 'lo');
  if (problem) t.skip(problem);
  return { ...namespace, problem };
}

/** @param {import('node:test').TestContext} t @param {string[]} prefix @param {number} port @param {string[]} args */
function droneIn(t, prefix, port, ...args) {
  return spawnDrone(t, ['--host', OTHER_ADDRESS, '--port', String(port), '--n', '20', ...args], { prefix });
}

test('loopback is 127.0.0.0/8 and ::1', () => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    assert.ok(isLoopback(address), address);
  for (const address of ['10.0.0.1', '0.0.0.0', '::', '::2', '128.0.0.1', '127.example.com', '']) {
    assert.ok(!isLoopback(address), address);
  }
});

test('a server on another machine is dialled if it says that it accepts load', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const server = await startServer(t, ['--accept-load', '--ping-interval', '300'], { prefix });
  const drone = droneIn(t, prefix, server.port);
  await until(
    () => /streams 20 of 20 \(holding\), failed 0, lost 0, pings read [1-9]/.test(drone.output.stdout),
    () => drone.output.stdout + drone.output.stderr,
  );
});

test('a server on another machine that does not is left alone, and the drone says why in one line', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const server = await startServer(t, [], { prefix });
  const drone = droneIn(t, prefix, server.port);
  assert.equal((await drone.exit).code, 1);
  assert.equal(
    drone.output.stderr,
    `drone: refusing to load ${OTHER_ADDRESS}:${server.port}: /.well-known/holdfast-load has status 404; ` +
      'drones load only this machine, or a server started with --accept-load\n',
  );
});

test('an address that does not answer is not dialled', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const drone = droneIn(t, prefix, 1);
  assert.equal((await drone.exit).code, 1);
  assert.match(drone.output.stderr, /^drone: refusing to load .*: it does not answer \(connect ECONNREFUSED/);
});

/** @param {import('node:test').TestContext} t @param {import('node:http').RequestListener} listener */
async function answering(t, listener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

test('loopback is asked for its ping interval, and needs no consent', async (t) => {
  const port = await answering(t, (_, response) => response.end('{"consent":true,"pingIntervalMs":250}'));
  assert.deepEqual(await askConsent('localhost', port), { address: '127.0.0.1', pingIntervalMs: 250 });
  assert.deepEqual(await askConsent('127.0.0.1', 1), { address: '127.0.0.1', pingIntervalMs: null });
});

test('whatever loopback answers, the interval is a positive number or unknown', async (t) => {
  const bodies = ['', 'null', '[]', '{"pingIntervalMs":-5}', '{"pingIntervalMs":"x"}', 'x'.repeat(100_000)];
  for (const body of bodies) {
    const port = await answering(t, (_, response) => response.end(body));
    assert.equal((await askConsent('127.0.0.1', port)).pingIntervalMs, null, body.slice(0, 30));
  }
});

test('an unknown host is an error of one line', async () => {
  await assert.rejects(askConsent('no-such-host.invalid', 80), {
    code: 'NO_HOST',
    message: /^unknown host 'no-such-host\.invalid' /,
  });
});
