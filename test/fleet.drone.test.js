import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { ROOT, run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @param {import('node:test').TestContext} t @param {number} port @param {string[]} args */
const droneAt = (t, port, ...args) =>
  run(t, process.execPath, ['fleet/drone.js', '--port', String(port), ...args]);

test('a drone climbs at its ramp, holds, and loses none until it is stopped', async (t) => {
  const server = await startServer(t, ['--ping-interval', '500']);
  const drone = droneAt(t, server.port, '--streams', '400', '--ramp', '400');
  const climbing = await server.untilTotals(({ streams }) => streams > 0, 'the first streams');
  assert.ok(Number(climbing.streams) < 300, `${climbing.streams} did not come at once`);
  await server.untilTotals(({ streams, pings }) => streams === 400 && pings > 400, 'all are open and pinged');
  await until(
    () => /streams 400 of 400, failed 0, lost 0, pings read [1-9]/.test(drone.output.stdout),
    'it says so',
  );
  drone.child.kill('SIGTERM');
  assert.deepEqual(await drone.exit, { code: 0, signal: null });
  const totals = await server.untilTotals(({ streams }) => streams === 0, 'all are closed');
  assert.equal(totals.closedClientGone, 400);
});

test('streams that the server lets go are lost, and the exit status says so', async (t) => {
  const server = await startServer(t, ['--drain', '0']);
  const drone = droneAt(t, server.port, '--streams', '10');
  await server.untilTotals(({ streams }) => streams === 10, '10 streams');
  await server.stop();
  assert.equal((await drone.exit).code, 1);
  assert.match(drone.output.stdout, /failed 0, lost 10/);
});

test('what is not a stream of ours counts as failed, with a sample of the bytes', async (t) => {
  const other = createServer((socket) => socket.on('error', () => {}).end('SSH-2.0-other\r\n')).listen(
    0,
    '127.0.0.1',
  );
  t.after(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = /** @type {import('node:net').AddressInfo} */ (other.address());
  const drone = droneAt(t, port, '--streams', '2');
  assert.equal((await drone.exit).code, 1);
  assert.match(drone.output.stdout, /failed 2, .*SSH-2\.0-other/);
});

test('a drone dials loopback only, and says so in one line', () => {
  const { status, stderr } = spawnSync(process.execPath, ['fleet/drone.js', '--host', '192.0.2.1'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(stderr, "drone: --host got '192.0.2.1': a drone dials loopback only, 127.0.0.1 or ::1\n");
  assert.equal(status, 1);
});
