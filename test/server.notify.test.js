/*
 * What a service manager hears of the server (NOTIFY_SOCKET, as systemd sets it with Type=notify), on a real datagram socket.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { Notify, openNotify } from '../primary/notify.js';
import { get, rawClient } from './helpers/client.js';
import { startManager } from './helpers/notified.js';
import { startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('./helpers/notified.js').Datagram} Datagram */

const noPython = spawnSync('python3', ['--version']).error ? 'python3 is not installed' : false;
const noProgram = spawnSync('systemd-notify', ['--version']).error
  ? 'systemd-notify is not installed'
  : false;
const noCore = native ? false : 'the native core is not built';
/** A watchdog that wants to hear something every 200 ms. */
const WATCHED = 'WATCHDOG_USEC=200000 WATCHDOG_PID=$$';

/** @param {TestContext} t @param {string} path @param {string[]} [args] of the server @param {string} [variables] for the shell, which becomes the server */
function startNotifying(t, path, args = [], variables = '') {
  const script = `export NOTIFY_SOCKET='${path}' ${variables}; exec "$@"`;
  return startServer(t, args, { prefix: ['sh', '-c', script, 'sh'] });
}

for (const kind of ['a file', 'an abstract name']) {
  test(`a service manager on ${kind} hears when the server is ready, how it is, and when it stops`, {
    skip: noPython || noCore,
  }, async (t) => {
    const { path, datagrams } = await startManager(
      t,
      kind === 'a file' ? undefined : `@holdfast-${process.pid}`,
    );
    const server = await startNotifying(t, path);
    const first = await until(() => datagrams()[0], 'a datagram');
    assert.deepEqual(first, { pid: server.pid, lines: ['READY=1', 'STATUS=0 streams, 2 workers'] });
    const client = rawClient(server.port, get());
    await server.untilTotals(({ streams }) => streams === 1, 'a stream');
    await server.stop();
    client.close();
    const last = await until(() => datagrams()[1], 'another one');
    const [, , ...others] = datagrams();
    const [stopping, extend, status] = last.lines;
    assert.equal(stopping, 'STOPPING=1');
    assert.equal(extend, 'EXTEND_TIMEOUT_USEC=20000000', 'the 5 s of the drain, and some');
    assert.equal(status, 'STATUS=not ready: the server is draining; 1 stream, 2 workers');
    assert.deepEqual(others, []);
  });
}

test('only the primary speaks: its workers do not know the socket', {
  skip: noPython || noCore,
}, async (t) => {
  const { path } = await startManager(t);
  const server = await startNotifying(t, path, [], WATCHED);
  for (const pid of server.workerPids)
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), /NOTIFY_SOCKET|WATCHDOG/);
});

test('the watchdog is fed while the server is well, and not while no worker is left', {
  skip: noPython || noCore,
}, async (t) => {
  const { path, datagrams, lines } = await startManager(t);
  const server = await startNotifying(t, path, ['--workers', '1'], WATCHED);
  await until(() => lines().filter((line) => line === 'WATCHDOG=1').length > 5, 'it is fed');
  for (let deaths = 1; deaths <= 5; deaths++) {
    const pid = await until(async () => (await server.frame()).workers[0]?.state === 'ready' && (await server.frame()).workers[0].pid, 'a worker'); // biome-ignore format: one line
    process.kill(pid, 'SIGKILL');
    await until(async () => (await server.frame()).workers[0].pid !== pid || (await server.frame()).workers[0].state === 'dead', 'it is dead'); // biome-ignore format: one line
  }
  const isHungry = (/** @type {Datagram} */ { lines: [status, watchdog] }) =>
    status === 'STATUS=not ready: worker 1 is dead; 0 streams, 1 worker' && watchdog === undefined;
  await until(() => datagrams().some(isHungry), 'it is not fed');
  await until(() => datagrams().at(-1)?.lines.includes('WATCHDOG=1'), 'it is fed again');
});

test('a watchdog for another process is not fed', { skip: noPython || noCore }, async (t) => {
  const { path, datagrams } = await startManager(t);
  await startNotifying(t, path, [], 'WATCHDOG_USEC=200000 WATCHDOG_PID=1');
  const other = await startNotifying(t, path, [], WATCHED);
  const isOf = (/** @type {Datagram} */ { pid }) => pid === other.pid;
  await until(() => datagrams().filter(isOf).length > 5, 'the other one is watched');
  const ofFirst = datagrams().filter((one) => !isOf(one));
  assert.deepEqual(ofFirst[0].lines, ['READY=1', 'STATUS=0 streams, 2 workers']);
  assert.ok(ofFirst.every((one) => !one.lines.includes('WATCHDOG=1')));
});

test('without the native core, systemd-notify speaks', { skip: noPython || noProgram }, async (t) => {
  const { path, lines } = await startManager(t);
  const server = await startNotifying(t, path, [], `HOLDFAST_NATIVE=off ${WATCHED}`);
  await until(() => lines().filter((line) => line === 'WATCHDOG=1').length > 2, 'it is fed');
  const [ready, status] = lines();
  assert.deepEqual([ready, status], ['READY=1', 'STATUS=0 streams, 2 workers']);
  await server.stop();
  await until(() => lines().includes('STOPPING=1'), 'it stops');
});

test('a service manager that is gone costs one line, and nothing else', { skip: noCore }, async (t) => {
  const path = join(temporaryFolder(t), 'nobody');
  const server = await startNotifying(t, path, [], WATCHED);
  const before = Number((await server.frame()).totals.elapsedMs);
  await server.untilTotals(({ elapsedMs }) => elapsedMs > before + 500, 'several attempts');
  assert.equal((await server.stop()).code, 0);
  assert.deepEqual(server.output.stderr.match(/.*notified.*/g), [
    "holdfast: the service manager can't be notified: No such file or directory (os error 2)",
  ]);
});

test('an address that is none is ignored with a reason', async (t) => {
  const server = await startNotifying(t, 'vsock:2:1234');
  assert.match(
    server.output.stderr,
    /^holdfast: NOTIFY_SOCKET=vsock:2:1234 is ignored: expected a path, or @ and a name$/m,
  );
  assert.equal((await server.admin('/readyz')).status, 200);
});

test('a path that is too long for a socket costs one line', { skip: noCore }, async () => {
  /** @type {string[]} */
  const notes = [];
  const env = { NOTIFY_SOCKET: `/${'x'.repeat(150)}` };
  const workers = { slots: [] };
  assert.equal(
    await openNotify({ env, workers, problem: () => '', onNote: (line) => notes.push(line) }),
    null,
  );
  assert.equal(notes.length, 1);
  assert.match(notes[0], /^the service manager can't be notified: /);
});

test('a step that finds the queue of the service manager full is said again', async () => {
  /** @type {string[]} */
  const said = [];
  const tell = (/** @type {string} */ text) => said.push(text) > 1;
  const notify = new Notify({ workers: { slots: [] }, problem: () => '', tell, watchdogMs: 0 });
  notify.stopping(1000);
  await until(() => said.length === 2, 'it is said again');
  assert.equal(said[1], said[0]);
  assert.equal(notify.step, '');
});
