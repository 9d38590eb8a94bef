/*
 * Whom a drone may dial. What is not loopback here is an address in a network namespace of the test's own.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { askConsent, isLoopback } from '../fleet/drone/consent.js';
import { makeNamespace } from './helpers/namespace.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const ELSEWHERE = '10.99.0.1';

/** @param {import('node:test').TestContext} t */
function elsewhere(t) {
  const namespace = makeNamespace(t, {});
  const problem = namespace.problem || namespace.run('ip', 'address', 'add', `${ELSEWHERE}/32`, 'dev', 'lo');
  if (problem) t.skip(problem);
  return { ...namespace, problem };
}

/** @param {import('node:test').TestContext} t @param {string[]} prefix @param {number} port @param {string[]} args */
function droneIn(t, prefix, port, ...args) {
  const [command, ...words] = [...prefix, process.execPath, 'fleet/drone.js'];
  const where = ['--host', ELSEWHERE, '--port', String(port), '--listen-port', '0', '--n', '20'];
  return run(t, command, [...words, ...where, ...args]);
}

test('loopback is 127.0.0.0/8 and ::1', () => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    assert.ok(isLoopback(address), address);
  for (const address of ['10.0.0.1', '0.0.0.0', '::', '::2', '128.0.0.1', '127.example.com', '']) {
    assert.ok(!isLoopback(address), address);
  }
});

test('a server elsewhere is dialled when it says that it accepts load', async (t) => {
  const { problem, prefix } = elsewhere(t);
  if (problem) return;
  const server = await startServer(t, ['--accept-load', '--ping-interval', '300'], { prefix, remote: true });
  const drone = droneIn(t, prefix, server.port);
  await until(
    () => /streams 20 of 20 \(holding\), failed 0, lost 0, pings read [1-9]/.test(drone.output.stdout),
    () => drone.output.stdout + drone.output.stderr,
  );
});

test('a server elsewhere that does not is left alone, and the drone says why in one line', async (t) => {
  const { problem, prefix } = elsewhere(t);
  if (problem) return;
  const server = await startServer(t, [], { prefix, remote: true });
  const drone = droneIn(t, prefix, server.port);
  assert.equal((await drone.exit).code, 1);
  assert.equal(
    drone.output.stderr,
    `drone: ${ELSEWHERE}:${server.port} is not dialled: it answers /.well-known/holdfast-load with 404; ` +
      'a drone dials loopback, or a server started with --accept-load\n',
  );
});

test('nothing elsewhere is dialled where nobody answers', async (t) => {
  const { problem, prefix } = elsewhere(t);
  if (problem) return;
  const drone = droneIn(t, prefix, 1);
  assert.equal((await drone.exit).code, 1);
  assert.match(drone.output.stderr, /is not dialled: it does not answer \(connect ECONNREFUSED/);
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

test('whatever loopback answers, the interval is a number above 0 or not known', async (t) => {
  const bodies = ['', 'null', '[]', '{"pingIntervalMs":-5}', '{"pingIntervalMs":"x"}', 'x'.repeat(100_000)];
  for (const body of bodies) {
    const port = await answering(t, (_, response) => response.end(body));
    assert.equal((await askConsent('127.0.0.1', port)).pingIntervalMs, null, body.slice(0, 30));
  }
});

test('a host that is not known is said in one line', async () => {
  await assert.rejects(askConsent('no-such-host.invalid', 80), {
    code: 'NO_HOST',
    message: /^host got 'no-such-host\.invalid': it is not known here/,
  });
});
