/*
 * Workers that hang: late, then not ready, then killed and replaced.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/** Not ready after 10 frames, killed after 20. */
const HUNG_AFTER = ['--hung-after', '2000'];

/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

/** @param {Server} server */
async function readiness(server) {
  const response = await server.admin('/readyz');
  return `${response.status} ${await response.text()}`;
}

/** @param {Server} server @param {RegExp} pattern */
const untilReadiness = (server, pattern) =>
  until(async () => pattern.test(await readiness(server)), `/readyz says ${pattern}`);

for (const transport of TRANSPORTS) {
  describe(`a hung worker of the ${transport} transport`, () => {
    const args = ['--transport', transport, '--workers', '2'];

    test('makes the server not ready, and is then killed and replaced', async (t) => {
      const server = await startServer(t, [...args, ...HUNG_AFTER]);
      const [stuck, other] = server.workerPids;
      process.kill(stuck, 'SIGSTOP');
      await untilReadiness(server, /^503 not ready: worker 1 does not report\n$/);
      await untilReadiness(server, /^200 ready\n$/);
      const pids = (await server.frame()).workers.map(({ pid }) => pid);
      assert.ok(!pids.includes(stuck) && pids.includes(other));
      const named = `worker 1 \\(pid ${stuck}\\)`;
      assert.match(
        server.output.stderr,
        new RegExp(
          [
            `${named} did not report in time\n[\\s\\S]*`,
            `${named} has not reported for 1000 ms: the server is not ready\n[\\s\\S]*`,
            `${named} has not reported for 2000 ms \\(--hung-after\\): killing it\n[\\s\\S]*`,
            `${named} died \\(SIGKILL\\): 0 streams lost; restarting in 100 ms\n[\\s\\S]*`,
            'worker 1 \\(pid \\d+\\) is listening\n',
          ].join(''),
        ),
      );
      const clients = Array.from({ length: 20 }, () => rawClient(server.port, get()));
      for (const client of clients) await client.untilRead(/Welcome!/);
      for (const client of clients) client.close();
    });

    test('does not keep a drain from ending', async (t) => {
      const server = await startServer(t, [...args, ...HUNG_AFTER, '--drain', '3600000']);
      process.kill(server.workerPids[0], 'SIGSTOP');
      server.child.kill('SIGTERM');
      assert.equal((await server.exit).code, 0);
      assert.match(server.output.stderr, /--hung-after\): killing it\n/);
    });
  });
}

test('with --hung-after 0 a hung worker is never killed, but the server is not ready until it reports', async (t) => {
  const server = await startServer(t, ['--hung-after', '0', '--refresh', '100']);
  const [stuck] = server.workerPids;
  process.kill(stuck, 'SIGSTOP');
  await untilReadiness(server, /^503 /);
  process.kill(stuck, 'SIGCONT');
  await untilReadiness(server, /^200 /);
  assert.equal((await server.frame()).workers[0].pid, stuck);
  assert.doesNotMatch(server.output.stderr, /killing/);
});

test('a primary that was stopped for longer than --hung-after kills no worker', async (t) => {
  const server = await startServer(t, HUNG_AFTER);
  const stoppedMs = 3000;
  for (const pid of [server.pid, -server.pid]) {
    process.kill(pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, stoppedMs)); // the wall time that must not count
    process.kill(pid, 'SIGCONT');
    const { elapsedMs } = (await server.frame()).totals;
    await server.untilTotals((totals) => totals.elapsedMs > Number(elapsedMs) + 500, 'frames go on');
  }
  const pids = (await server.frame()).workers.map(({ pid }) => pid);
  assert.deepEqual(pids, server.workerPids);
  assert.doesNotMatch(server.output.stderr, /has not reported/);
});

test('a worker that is slow but answers is not killed', async (t) => {
  const server = await startServer(t, [...HUNG_AFTER, '--workers', '1']);
  const [slow] = server.workerPids;
  for (let i = 0; i < 25; i++) {
    process.kill(slow, 'SIGSTOP');
    await until(async () => (await server.frame()).workers[0].state === 'late', 'it is late');
    process.kill(slow, 'SIGCONT');
    await until(async () => (await server.frame()).workers[0].state === 'ready', 'it has answered');
  }
  assert.deepEqual(
    (await server.frame()).workers.map(({ pid }) => pid),
    [slow],
  );
});
