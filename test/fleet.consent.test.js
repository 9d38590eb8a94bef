/*
 * Which servers a drone may dial. Addresses other than loopback are in a network namespace of the test.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { askConsent, isLoopback, Refusal } from '../fleet/drone/consent.js';
import { untilListening } from '../lib/listening.js';
import { spawnDrone } from './helpers/drone.js';
import { makeNamespace } from './helpers/namespace.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const OTHER_ADDRESS = '10.99.0.1';
const MORE_ADDRESSES = ['10.99.0.2', '10.99.0.3'];

/** @param {import('node:test').TestContext} t */
function namespaceOf(t) {
  const namespace = makeNamespace(t, {});
  let { problem } = namespace;
  for (const address of [OTHER_ADDRESS, ...MORE_ADDRESSES])
    problem ||= namespace.run('ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
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
    `drone: refusing to load ${OTHER_ADDRESS}:${server.port}: /.well-known/holdfast-load does not contain "consent": true; ` +
      'drones load only this machine, or a server started with --accept-load\n',
  );
});

/**
 * A server that prints what it is asked.
 * @param {import('node:test').TestContext} t @param {string[]} prefix @param {number} port @param {string[]} consenting
 */
async function loadable(t, prefix, port, ...consenting) {
  const words = [...prefix, process.execPath, 'test/fixtures/loadable.js', String(port), ...consenting];
  const server = run(t, words[0], words.slice(1), { stdio: ['pipe', 'pipe', 'pipe', 'ipc'] });
  const listening = await untilListening(server.child);
  return { ...server, port: listening.port };
}

test('the addresses of a server are asked one after the other, and no more after the first refusal', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const [second, third] = MORE_ADDRESSES;
  const server = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const drone = droneIn(t, prefix, server.port, '--host', [OTHER_ADDRESS, second, third].join(','));
  assert.equal((await drone.exit).code, 1);
  assert.match(drone.output.stderr, new RegExp(`^drone: refusing to load ${second}:${server.port}: `));
  assert.equal(server.output.stdout, `question ${OTHER_ADDRESS}, 1 at once\nquestion ${second}, 1 at once\n`);
});

test('a server that comes back without consent is not dialled again, and the drone says so', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const first = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const drone = droneIn(t, prefix, first.port, '--ramp', '1000', '--expect', 'any');
  await until(() => drone.output.stdout.includes('streams 20 of 20 (holding)'), 'it holds');
  first.child.kill('SIGKILL');
  await first.exit;
  const second = await loadable(t, prefix, first.port);
  await until(() => drone.output.stdout.includes('streams 0 of 20 (no-consent)'), 'it gives up');
  assert.equal(
    drone.output.stderr,
    `drone: refusing to load ${OTHER_ADDRESS}:${first.port}: /.well-known/holdfast-load does not contain "consent": true; ` +
      'drones load only this machine, or a server started with --accept-load\n',
  );
  assert.match(second.output.stdout, /^(question 10\.99\.0\.1, 1 at once\n)+$/);
});

test('a server that comes back and still consents is dialled again', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const first = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const drone = droneIn(t, prefix, first.port, '--ramp', '1000', '--expect', 'any');
  await until(() => drone.output.stdout.includes('streams 20 of 20 (holding)'), 'it holds');
  first.child.kill('SIGKILL');
  await until(() => drone.output.stdout.includes('lost 20,'), 'it has noticed');
  const second = await loadable(t, prefix, first.port, OTHER_ADDRESS);
  await until(() => /streams 20 of 20 \(holding\), .*lost 20,/.test(drone.output.stdout), 'it holds again');
  assert.match(second.output.stdout, /^(question 10\.99\.0\.1, 1 at once\n)+(stream 10\.99\.0\.1\n){20}$/);
});

test('if one of several servers dies, its streams move to the others, and it gets some again when it is back', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const first = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const other = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const others = ['--others', `${OTHER_ADDRESS}:${other.port}`];
  const drone = droneIn(
    t,
    prefix,
    first.port,
    ...others,
    '--ramp',
    '1000',
    '--expect',
    'any',
    '--churn',
    '2',
  );
  await until(() => drone.output.stdout.includes('streams 20 of 20 (holding)'), 'it holds');
  first.child.kill('SIGKILL');
  await until(() => /holding\), .*lost [1-9]/.test(drone.output.stdout), 'all are at the other one');
  await loadable(t, prefix, first.port, OTHER_ADDRESS).then(({ output }) =>
    until(() => output.stdout.includes('stream'), 'it gets streams again'),
  );
  assert.equal(drone.output.stderr, '');
});

test('if one of several servers refuses, nothing is dialled', async (t) => {
  const { problem, prefix } = namespaceOf(t);
  if (problem) return;
  const first = await loadable(t, prefix, 0, OTHER_ADDRESS);
  const other = await loadable(t, prefix, 0);
  const drone = droneIn(t, prefix, first.port, '--others', `${OTHER_ADDRESS}:${other.port}`);
  assert.equal((await drone.exit).code, 1);
  assert.match(
    drone.output.stderr,
    new RegExp(`^drone: refusing to load ${OTHER_ADDRESS}:${other.port}: [^\\n]+\\n$`),
  );
  assert.doesNotMatch(first.output.stdout, /stream/);
});

test('several ports, or many addresses, of another machine are refused without a question', async () => {
  const many = Array.from({ length: 9 }, (_, i) => `192.0.2.${i}`);
  await Promise.all([
    assert.rejects(askConsent(['192.0.2.1'], [80, 81]), { code: 'BAD_TARGET' }),
    assert.rejects(askConsent(many, [80]), { code: 'BAD_TARGET' }),
    assert.rejects(askConsent(['127.0.0.1', '192.0.2.1'], [80, 81]), { code: 'BAD_TARGET' }),
  ]);
});

test('every refusal has the same answer and takes the same time', async () => {
  /** @type {[string[], number[]][]} */
  const targets = [
    [['no-such-host.invalid'], [80]],
    [['0.0.0.0'], [1]],
    [['0.0.0.0'], [1, 2]],
  ];
  const begunMs = performance.now();
  const refusals = await Promise.all(
    targets.map(([hosts, ports]) =>
      askConsent(hosts, ports).catch((error) => ({ error, ms: performance.now() - begunMs })),
    ),
  );
  const answers = refusals.map((outcome) => {
    assert.ok('error' in outcome && outcome.error instanceof Refusal);
    assert.ok(outcome.ms >= 2990, `${outcome.error.message}: ${outcome.ms} ms`);
    return outcome.error.answer.replace(/^refusing to load [a-z0-9.-]+:\d+: /, '');
  });
  assert.equal(new Set(answers).size, 1, answers.join('\n'));
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
  assert.deepEqual(await askConsent(['localhost'], [port]), {
    addresses: ['127.0.0.1'],
    isLocal: true,
    pingIntervalMs: 250,
    idlePings: false,
  });
  assert.deepEqual(await askConsent(['127.0.0.1', '127.0.0.2'], [1, 2]), {
    addresses: ['127.0.0.1', '127.0.0.2'],
    isLocal: true,
    pingIntervalMs: null,
    idlePings: false,
  });
});

test('whatever loopback answers, the interval is a positive number or unknown', async (t) => {
  const bodies = ['', 'null', '[]', '{"pingIntervalMs":-5}', '{"pingIntervalMs":"x"}', 'x'.repeat(100_000)];
  for (const body of bodies) {
    const port = await answering(t, (_, response) => response.end(body));
    assert.equal((await askConsent(['127.0.0.1'], [port])).pingIntervalMs, null, body.slice(0, 30));
  }
});

test('an unknown host is an error of one line', async () => {
  await assert.rejects(askConsent(['no-such-host.invalid'], [80]), {
    code: 'NO_HOST',
    message: /^unknown host 'no-such-host\.invalid' /,
  });
});
