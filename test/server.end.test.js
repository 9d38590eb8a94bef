/*
 * Ending: workers that die, drains, and signals at every stage.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { groupIsAlive, run, startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @param {number[]} pids */
const untilGone = (pids) =>
  until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), `processes ${pids} have exited`);

/** @param {Awaited<ReturnType<typeof startServer>>} server @returns {Promise<number[]>} */
const workerPids = async (server) => (await server.frame()).workers.map(({ pid }) => pid);

/** @param {number} port @param {number} count */
const clientsOf = (port, count) => Array.from({ length: count }, () => rawClient(port, get()));

/** @param {Awaited<ReturnType<typeof startServer>>} server @param {number} pid of the dead @param {number} id */
const untilReplaced = (server, pid, id) =>
  until(async () => {
    const worker = (await server.frame()).workers[id - 1];
    return worker.pid !== pid && worker.state === 'ready' && worker;
  }, `worker ${id} is replaced`);

test('a worker that dies is forked again with back-off; its streams are lost, the others stay open', async (t) => {
  const server = await startServer(t);
  const clients = clientsOf(server.port, 40);
  await server.untilTotals(({ streams }) => streams === 40, '40 streams');
  const workers = (await server.frame()).workers.toSorted(
    (a, b) => Number(b.values.streams) - Number(a.values.streams),
  );
  const [victim, other] = workers;
  process.kill(victim.pid, 'SIGKILL');
  const second = await untilReplaced(server, victim.pid, victim.id);
  const { totals } = await server.frame();
  assert.equal(totals.lost, victim.values.streams);
  assert.equal(totals.streams, other.values.streams);
  assert.equal(totals.opened, 40);
  assert.match(
    server.output.stderr,
    /worker \d \(pid \d+\) died \(SIGKILL\): \d+ streams lost; restarting in 100 ms/,
  );
  process.kill(second.pid, 'SIGKILL');
  await until(() => /restarting in 200 ms/.test(server.output.stderr), 'the back-off grows');
  await untilReplaced(server, second.pid, victim.id);
  const fresh = rawClient(server.port, get());
  await fresh.untilRead(/Welcome!/);
  for (const client of [...clients, fresh]) client.close();
});

test('one stream is not several', async (t) => {
  const server = await startServer(t, ['--workers', '1']);
  const client = rawClient(server.port, get());
  await server.untilTotals(({ streams }) => streams === 1, 'it is open');
  const [{ pid }] = (await server.frame()).workers;
  process.kill(pid, 'SIGKILL');
  await untilReplaced(server, pid, 1);
  await server.stop();
  client.close();
  assert.match(server.output.stderr, /^holdfast: 1 worker[, ]/m);
  assert.match(server.output.stderr, /died \(SIGKILL\): 1 stream lost; restarting/);
  assert.match(server.output.stderr, /; 1 stream opened, 1 lost$/m);
});

test('a worker that is stuck is shown as late, delays no frame, and is on time again later', async (t) => {
  const server = await startServer(t);
  const [stuck] = await workerPids(server);
  process.kill(stuck, 'SIGSTOP');
  await until(async () => (await server.frame()).workers[0].state === 'late', 'worker 1 is late');
  const before = Number((await server.frame()).totals.elapsedMs);
  await server.untilTotals(({ elapsedMs }) => elapsedMs > before + 500, 'frames go on');
  process.kill(stuck, 'SIGCONT');
  const frame = await until(async () => {
    const now = await server.frame();
    return now.workers[0].state === 'ready' && now;
  }, 'worker 1 is on time');
  assert.equal(frame.totals.workersLate, 0);
  assert.match(
    server.output.stderr,
    /worker 1 .* did not report in time\n[\s\S]*worker 1 .* reports in time again\n/,
  );
});

test('when the primary is killed, its workers exit', async (t) => {
  const server = await startServer(t);
  const pids = await workerPids(server);
  process.kill(server.pid, 'SIGKILL');
  await untilGone(pids);
});

for (const transport of TRANSPORTS) {
  describe(`a drain of the ${transport} transport`, () => {
    test('stops accepting, closes the streams properly over the period, and exits with 0', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--drain', '1000']);
      const clients = clientsOf(server.port, 40);
      await server.untilTotals(({ streams }) => streams === 40, '40 streams');
      const pids = await workerPids(server);
      /** @type {number[]} */
      const ends = [];
      for (const { socket } of clients) socket.on('end', () => ends.push(Date.now()));
      const startedMs = Date.now();
      server.child.kill('SIGTERM');
      await until(() => ends.length > 0, 'the first stream is closed');
      const late = rawClient(server.port, get());
      await late.untilClosed();
      assert.equal(late.received, '', 'nothing is accepted anymore');
      assert.equal((await server.admin('/readyz')).status, 503);
      assert.equal((await server.admin('/healthz')).status, 200);
      assert.deepEqual(await server.exit, { code: 0, signal: null });
      for (const client of clients) {
        await client.untilClosed();
        assert.match(client.received, /\r\n0\r\n\r\n$/);
      }
      const lastMs = Math.max(...ends) - startedMs;
      assert.ok(lastMs > 900, `the last stream was closed after ${lastMs} ms`);
      const last = server.csv().at(-1);
      assert.deepEqual([last?.streams, last?.closedDrain, last?.lost], ['0', '40', '0']);
      await untilGone(pids);
    });

    test('answers 503 to a request head that is completed meanwhile, and is not delayed by it', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--drain', '1500']);
      const held = clientsOf(server.port, 20);
      const half = rawClient(server.port, 'GET / HTTP/1.1\r\nHo');
      const silent = rawClient(server.port);
      await server.untilTotals(({ streams }) => streams === 20, '20 streams');
      server.child.kill('SIGTERM');
      await until(() => held.some(({ ended }) => ended), 'the drain has begun');
      half.send('st: a\r\n\r\n');
      await half.untilClosed();
      assert.match(half.received, /^HTTP\/1\.1 503 /);
      assert.equal((await server.exit).code, 0);
      assert.equal(silent.received, '');
      assert.equal(server.csv().at(-1)?.closedDrain, '20');
    });

    test('without streams is not delayed by a silent connection', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--drain', '60000']);
      const silent = rawClient(server.port);
      await until(() => silent.socket.readyState === 'open', 'it is connected');
      server.child.kill('SIGTERM');
      assert.equal(
        await until(() => server.child.exitCode !== null && `${server.child.exitCode}`, 'it ends'),
        '0',
      );
    });

    test('ends even if a client does not read', async (t) => {
      const server = await startServer(t, ['--transport', transport, '--drain', '100']);
      const client = run(t, process.execPath, ['test/fixtures/holder.js', String(server.port), '3']);
      await until(() => client.output.stdout, 'the streams are open');
      process.kill(client.pid, 'SIGSTOP');
      assert.equal((await server.stop()).code, 0);
    });
  });
}

test('Ctrl-C, which reaches the workers too, drains', async (t) => {
  const server = await startServer(t, ['--drain', '200']);
  const [client] = clientsOf(server.port, 1);
  await client.untilRead(/Welcome!/);
  process.kill(-server.pid, 'SIGINT');
  assert.deepEqual(await server.exit, { code: 0, signal: null });
  await client.untilClosed();
  assert.match(client.received, /\r\n0\r\n\r\n$/);
  assert.match(server.output.stderr, /1 stream opened, 0 lost\n$/);
});

test('a second signal ends it immediately', async (t) => {
  const server = await startServer(t, ['--drain', '60000']);
  clientsOf(server.port, 20);
  await server.untilTotals(({ streams }) => streams === 20, '20 streams');
  const pids = await workerPids(server);
  server.child.kill('SIGINT');
  await until(() => /draining/.test(server.output.stderr), 'it drains');
  await until(() => !server.child.kill('SIGINT') || server.child.exitCode !== null, 'a second one counts');
  assert.deepEqual(await server.exit, { code: 130, signal: null });
  await untilGone(pids);
});

test('a signal that arrives twice at once, because npm forwards it, counts as one', async (t) => {
  const server = await startServer(t, ['--drain', '300']);
  const client = clientsOf(server.port, 1)[0];
  await client.untilRead(/Welcome!/);
  server.child.kill('SIGINT');
  server.child.kill('SIGINT');
  await until(() => /draining/.test(server.output.stderr), 'it drains');
  server.child.kill('SIGINT');
  assert.deepEqual(await server.exit, { code: 0, signal: null });
});

test('a fork that fails is retried', async (t) => {
  if (spawnSync('prlimit', ['--version']).error)
    return t.skip('prlimit is not installed (Debian: util-linux)');
  const server = await startServer(t);
  const limitTo = (/** @type {number} */ n) =>
    spawnSync('prlimit', ['--pid', String(server.pid), `--nofile=${n}:20000`]);
  const [victim] = await workerPids(server);
  limitTo(readdirSync(`/proc/${server.pid}/fd`).length); // from here no question of ours could be accepted either
  process.kill(victim, 'SIGKILL');
  await until(() => /worker 1 .* died \(spawn .*EMFILE\)/.test(server.output.stderr), 'the fork fails');
  limitTo(20_000);
  await untilReplaced(server, victim, 1);
});

test('closing the terminal drains', async (t) => {
  const server = await startServer(t, ['--drain', '100']);
  process.kill(-server.pid, 'SIGHUP');
  assert.deepEqual(await server.exit, { code: 0, signal: null });
});

test('a signal at any moment of the start ends it cleanly and leaves nothing behind', async (t) => {
  for (let delayMs = 0; delayMs <= 600; delayMs += 60) {
    const folder = temporaryFolder(t);
    const args = [
      'server.js',
      '--port',
      '0',
      '--admin-port',
      '0',
      '--dashboard',
      'off',
      '--drain',
      '0',
      '--log-dir',
      folder,
    ];
    const { child, exit, output, pid } = run(t, process.execPath, args);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    child.kill('SIGTERM');
    const { code, signal } = await exit;
    const beforeOurs = signal === 'SIGTERM' && output.stderr === '';
    assert.ok(code === 0 || beforeOurs, `after ${delayMs} ms: ${code} ${signal} ${output.stderr}`);
    if (!/CSV in/.test(output.stderr) && !beforeOurs)
      assert.deepEqual(readdirSync(folder), [], `after ${delayMs} ms`);
    await until(() => !groupIsAlive(pid), 'no worker is left');
  }
});
