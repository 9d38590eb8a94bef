/*
 * Workers that are replaced while their streams go on: reload, and crashes of their JS.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { assertAllGot, OPTIONS, openStreams, post, publishAllTheTime, startOld } from './helpers/handover.js';
import { startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const skip = native ? false : 'the native core is not built';

/** @param {{ output: { stderr: string } }} server @param {RegExp} pattern @param {number} [times] */
const untilSaid = ({ output }, pattern, times = 1) =>
  until(
    () => [...output.stderr.matchAll(new RegExp(pattern, 'g'))].length >= times,
    () => `${pattern} in ${output.stderr}`,
    30_000,
  );

test('reloading replaces all workers, and streams lose nothing', { skip }, async (t) => {
  const server = await startOld(t);
  const { clients, ofHub } = await openStreams(t, server.port, 60);
  const publisher = publishAllTheTime(t, server.port);
  const before = (await server.frame()).workers.map(({ pid }) => pid);
  for (let times = 1; times <= 3; times++) {
    assert.equal(await post(server, '/reload'), '202 reloading 2 workers');
    await untilSaid(server, /reloaded 2 of 2 workers/, times);
  }
  const sent = await publisher.stop();
  await assertAllGot(ofHub, sent);
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
  const totals = await server.untilTotals(({ streams }) => streams === 60, 'all streams are counted');
  assert.equal(Number(totals.opened) - Number(totals.closed), 60, 'what was opened before still counts');
  assert.equal(totals.lost, 0);
  const { workers } = await server.frame();
  assert.equal(workers.filter(({ pid }) => before.includes(pid)).length, 0);
  assert.doesNotMatch(server.output.stderr, /died/);
});

test('a message on a channel reaches each stream once while workers are replaced', { skip }, async (t) => {
  const server = await startOld(t);
  const { ofChannel } = await openStreams(t, server.port, 40);
  assert.equal(await post(server, '/reload'), '202 reloading 2 workers');
  /** @type {string[]} */
  const sent = [];
  while (!/reloaded/.test(server.output.stderr)) {
    const data = `${sent.length}`;
    /** @type {string} */
    const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
    const response = await fetch(url, { method: 'POST', body: data });
    assert.deepEqual([response.status, await response.json()], [202, { listeners: 20 }]);
    sent.push(data);
  }
  assert.ok(sent.length > 0);
  await assertAllGot(ofChannel, ['Welcome!', ...sent]);
});

test('streams that are revoked while workers are replaced end, wherever they are', { skip }, async (t) => {
  const server = await startOld(t);
  for (let times = 1; times <= 4; times++) {
    const { ofHub, ofChannel } = await openStreams(t, server.port, 40);
    await post(server, '/reload');
    // Somewhere in the start of the first successor, in its rounds, or later.
    const url = `http://127.0.0.1:${server.adminPort}/revoke`;
    for (let i = 0; i < 20 * times; i++) await server.admin('/readyz');
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams({ topic: 'a' }) });
    assert.equal(response.status, 202, await response.text());
    await until(() => ofHub.every(({ closed }) => closed), 'all of the topic end');
    await untilSaid(server, /reloaded 2 of 2 workers/, times);
    assert.equal(ofChannel.filter(({ closed }) => closed).length, 0);
  }
});

test('a second reload is refused while one is in progress, and so is one of the http transport', {
  skip,
}, async (t) => {
  const server = await startOld(t);
  await post(server, '/reload');
  assert.equal(await post(server, '/reload'), '409 409 Conflict: the workers are being reloaded already');
  const plain = await startServer(t, ['--transport', 'http', '--workers', '1']);
  assert.equal(
    await post(plain, '/reload'),
    "409 409 Conflict: the http transport can't move streams: restart the server instead",
  );
});

test('SIGHUP reloads with --sighup reload', { skip }, async (t) => {
  const server = await startOld(t, '--sighup', 'reload');
  const { clients } = await openStreams(t, server.port, 4);
  server.child.kill('SIGHUP');
  await untilSaid(server, /reloaded 2 of 2 workers/);
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
});

for (const step of ['connect', 'sync', 'go']) {
  test(`a successor that dies at the step ${step} does not end the server`, { skip }, async (t) => {
    const args = ['--transport', 'hold', '--workers', '1', '--anonymous'];
    const server = await startServer(t, args, { prefix: ['env', `HOLDFAST_FAIL_AT=${step}`] });
    const { clients } = await openStreams(t, server.port, 20);
    await post(server, '/reload');
    await untilSaid(server, /reloaded \d of 1 worker/);
    if (step !== 'go') assert.equal(clients.filter(({ closed }) => closed).length, 0);
    await until(
      async () => (await server.admin('/readyz')).status === 200,
      () => server.output.stderr,
    );
    await openStreams(t, server.port, 4);
  });
}

const CRASH = { nodeArgs: ['--import', './test/fixtures/crash.js'] };

test('when the JS of a worker throws, another one gets its streams', { skip }, async (t) => {
  const server = await startServer(t, ['--workers', '2', ...OPTIONS], CRASH);
  const { clients, ofHub } = await openStreams(t, server.port, 60);
  const publisher = publishAllTheTime(t, server.port);
  const [crashed, other] = server.workerPids;
  process.kill(crashed, 'SIGUSR2');
  await untilSaid(server, /worker 1: pid \d+ took over \d+ streams from pid \d+/);
  await assertAllGot(ofHub, await publisher.stop());
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
  assert.match(server.output.stderr, /worker 1: Error: a bug in JS/);
  assert.match(
    server.output.stderr,
    /worker 1 \(pid \d+\) has crashed: a bug in JS; another worker takes over its streams/,
  );
  await until(async () => {
    const { workers, totals } = await server.frame();
    assert.equal(totals.lost, 0);
    const pids = workers.map(({ pid }) => pid);
    return !pids.includes(crashed) && pids.includes(other);
  }, 'only the other worker is still there');
});

test('workers that crash again and again are replaced less and less often, and keep their streams', {
  skip,
}, async (t) => {
  const how = { ...CRASH, prefix: ['env', 'CRASH_AT_ONCE=1'] };
  const server = await startServer(t, ['--workers', '1', ...OPTIONS], how);
  const { clients } = await openStreams(t, server.port, 20);
  await untilSaid(server, /worker 1: pid \d+ took over 20 streams/, 3);
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
  assert.doesNotMatch(server.output.stderr, /died/);
});

test('a crash of a worker of the http transport ends it, and it is restarted', { skip }, async (t) => {
  const server = await startServer(t, ['--transport', 'http', '--workers', '1'], CRASH);
  process.kill(server.workerPids[0], 'SIGUSR2');
  await untilSaid(server, /died \(status 1\).*restarting/);
  await untilSaid(server, /worker 1 \(pid \d+\) is listening/);
});
