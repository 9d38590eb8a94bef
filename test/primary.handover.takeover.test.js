/*
 * A new server takes over from the running one: streams, publications, counters, CSV and ports.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { FAIL_STEPS } from '../lib/failat.js';
import { native } from '../native/index.js';
import { get, rawClient } from './helpers/client.js';
import {
  assertAllGot,
  controlOf,
  datasOf,
  openStreams,
  publishAllTheTime,
  startNew,
  startOld,
  untilTotals,
} from './helpers/handover.js';
import { readCsv, run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

/** Options of a server, as environment variables. */
const SMALL = {
  HOLDFAST_PORT: '0',
  HOLDFAST_ADMIN_PORT: '0',
  HOLDFAST_NO_LOG: '1',
  HOLDFAST_DASHBOARD: 'off',
  HOLDFAST_WORKERS: '1',
  HOLDFAST_DRAIN: '500',
};

const skip = native ? false : 'the native core is not built';

/** Steps after which the old server does not have the streams any more. */
const TOO_LATE = ['go', 'gone', 'moved', 'serving', 'drained', 'switched'];

test('three servers take over from each other, with other workers, and streams lose nothing', {
  skip,
}, async (t) => {
  const first = await startOld(t);
  const { clients, ofHub } = await openStreams(t, first.port, 60);
  const publisher = publishAllTheTime(t, first.port);
  /** @type {{ exit: Promise<{ code: number | null }>, output: { stderr: string } }} */
  let old = first;
  let adminPort = first.adminPort;
  for (const args of [
    ['--workers', '3'],
    ['--workers', '1', '--streams', '60000'],
    ['--workers', '2'],
  ]) {
    const next = startNew(t, first, args);
    const listening = await next.listening;
    assert.equal((await old.exit).code, 0, old.output.stderr);
    assert.deepEqual([listening.port, listening.adminPort], [first.port, adminPort]);
    assert.match(old.output.stderr, /pid \d+ has taken over 60 streams; ran for/);
    adminPort = listening.adminPort;
    old = next;
  }
  await assertAllGot(ofHub, await publisher.stop());
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
  const totals = await untilTotals(adminPort, ({ streams }) => streams === 60, 'all streams are counted');
  assert.deepEqual([totals.opened - totals.closed, totals.lost], [60, 0]);
});

test('a message that is published on the admin port meanwhile reaches each stream once', {
  skip,
}, async (t) => {
  const old = await startOld(t);
  const { ofChannel } = await openStreams(t, old.port, 20);
  const next = startNew(t, old);
  /** @type {string[]} */
  const sent = [];
  let isOver = false;
  void next.listening.then(() => {
    isOver = true;
  });
  for (let i = 0; !isOver || i < 10; i++) {
    const url = `http://127.0.0.1:${old.adminPort}/publish?channel=news`;
    const response = await fetch(url, { method: 'POST', body: `${i}` }).catch(() => null);
    if (response?.status === 202) sent.push(`${i}`);
    await response?.text();
  }
  for (const client of ofChannel) {
    await until(() => datasOf(client).at(-1) === sent.at(-1), 'the last message');
    const got = datasOf(client).slice(1);
    assert.equal(new Set(got).size, got.length, 'none twice');
    assert.deepEqual(
      sent.filter((data) => !got.includes(data)),
      [],
    );
  }
});

test('counters, elapsed time and the CSV continue', { skip }, async (t) => {
  const old = await startOld(t);
  await openStreams(t, old.port, 20);
  await old.untilTotals(({ streams, elapsedMs }) => streams === 20 && elapsedMs > 1000, 'a second');
  const rows = old.csv().length;
  const { adminPort, csvPath } = await startNew(t, old).listening;
  assert.equal(
    csvPath,
    join(old.folder, readdirSync(old.folder).find((name) => name.endsWith('.csv')) ?? ''),
  );
  await untilTotals(adminPort, ({ elapsedMs }) => elapsedMs > 2000, 'another second');
  const all = readCsv(old.folder);
  assert.ok(all.length > rows + 3);
  for (const name of ['elapsedMs', 'opened', 'pings', 'bytesWritten', 'processCpuSeconds'])
    for (let i = 1; i < all.length; i++)
      assert.ok(
        Number(all[i][name]) >= Number(all[i - 1][name]),
        `${name} in row ${i}: ${all[i - 1][name]}, ${all[i][name]}`,
      );
  for (const { streams } of all.slice(rows)) assert.equal(streams, '20');
});

test('no new connection is refused meanwhile', { skip }, async (t) => {
  const old = await startOld(t);
  const next = startNew(t, old);
  let isOver = false;
  let opened = 0;
  const storm = (async () => {
    while (!isOver) {
      const client = rawClient(old.port, get());
      await client.untilRead(/Welcome!/, 10_000);
      client.close();
      opened++;
    }
  })();
  await next.listening;
  await old.exit;
  isOver = true;
  await storm;
  assert.ok(opened > 10);
});

for (const { step } of FAIL_STEPS.filter((one) => !TOO_LATE.includes(one.step))) {
  test(`the new server is killed at the step ${step}: the old one goes on, and streams lose nothing`, {
    skip,
  }, async (t) => {
    const old = await startOld(t);
    const { clients, ofHub } = await openStreams(t, old.port, 20);
    const publisher = publishAllTheTime(t, old.port);
    const next = startNew(t, old, [], { HOLDFAST_FAIL_AT: step });
    await next.exit;
    await until(
      () => /this server goes on/.test(old.output.stderr),
      () => old.output.stderr,
    );
    await startNew(t, old).listening; // it can still be taken over from
    await assertAllGot(ofHub, await publisher.stop());
    assert.equal(clients.filter(({ closed }) => closed).length, 0);
  });
}

for (const step of ['gone', 'moved', 'serving', 'drained']) {
  test(`the new server is killed at the step ${step}: its streams are lost, and the old one serves new ones`, {
    skip,
  }, async (t) => {
    const old = await startOld(t);
    await openStreams(t, old.port, 20);
    await startNew(t, old, [], { HOLDFAST_FAIL_AT: step }).exit;
    await until(
      () => /this server goes on/.test(old.output.stderr),
      () => old.output.stderr,
    );
    await until(
      async () => (await old.admin('/readyz').catch(() => null))?.status === 200,
      () => old.output.stderr,
    );
    await openStreams(t, old.port, 20);
    const { lost } = await old.untilTotals(({ streams }) => streams === 20, 'new streams');
    assert.equal(lost, 20, 'those that the new server had');
  });
}

test('the new server is killed at the step switched, when it has the publications: the old one ends with status 1', {
  skip,
}, async (t) => {
  const old = await startOld(t);
  await openStreams(t, old.port, 20);
  await startNew(t, old, [], { HOLDFAST_FAIL_AT: 'switched' }).exit;
  assert.equal((await old.exit).code, 1);
  assert.match(
    old.output.stderr,
    /\nholdfast: the new server \(pid \d+\) is gone: it has ended, and it had the publications: ending\n$/,
  );
});

test('a server that is ended while another one takes over drains, and the other one ends too', {
  skip,
}, async (t) => {
  const old = await startOld(t);
  await openStreams(t, old.port, 4);
  const next = startNew(t, old);
  await until(
    () => /takes over/.test(old.output.stderr),
    () => old.output.stderr,
  );
  assert.equal((await old.stop()).code, 0);
  assert.equal((await next.exit).code, 1);
});

test('the old server is killed: the new one ends with one line', { skip }, async (t) => {
  const old = await startOld(t);
  const next = startNew(t, old);
  await until(
    () => /taking over from/.test(next.output.stderr),
    () => next.output.stderr,
  );
  old.child.kill('SIGKILL');
  assert.equal((await next.exit).code, 1);
  assert.match(next.output.stderr, /\nholdfast: the old server has ended before this one had taken over\n$/);
});

test('a server that could not take over says why in one line', { skip }, async (t) => {
  const old = await startOld(t);
  const lineOf = async (/** @type {string[]} */ ...args) => {
    const { exit, output } = startNew(t, old, args);
    assert.equal((await exit).code, 1);
    return output.stderr.trim().split('\n').at(-1);
  };
  assert.equal(
    await lineOf('--port', '1234'),
    `holdfast: not taken over: the running server listens on port ${old.port}, not on port 1234: use the same --port and --host`,
  );
  assert.match(
    (await lineOf('--host', '127.0.0.1')) ?? '',
    /listens on port \d+, not on 127\.0\.0\.1:\d+: use the same/,
  );
  assert.equal(
    await lineOf('--transport', 'http'),
    "holdfast: not taken over: the http transport can't move streams: restart the server instead",
  );
  assert.match(
    (await lineOf('--control', join(old.folder, 'nobody'))) ?? '',
    /no server answers at .*nobody \(ENOENT\): start one without --takeover, or give its --control$/,
  );
  assert.match((await lineOf('--control', '')) ?? '', /--takeover needs --control/);
  assert.match(
    (await lineOf('--control', `/${'x'.repeat(107)}`)) ?? '',
    /expected a path of at most 107 bytes/,
  );
  assert.equal((await fetch(`http://127.0.0.1:${old.adminPort}/readyz`)).status, 200);
});

test('a server whose store could not be opened does not take over anything', { skip }, async (t) => {
  const old = await startOld(t);
  const { clients } = await openStreams(t, old.port, 4);
  const { exit, output } = startNew(t, old, ['--store', '/proc/nowhere']);
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^holdfast: can't open --store \/proc\/nowhere: ENOENT/);
  assert.doesNotMatch(old.output.stderr, /takes over/);
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
});

test('a server without room for all streams takes over only with --force', { skip }, async (t) => {
  const old = await startOld(t);
  const { clients } = await openStreams(t, old.port, 400);
  await old.untilTotals(({ streams }) => streams === 400, 'all are counted');
  const small = (/** @type {string[]} */ ...args) =>
    run(
      t,
      'sh',
      ['-c', 'ulimit -n 300; exec "$@"', 'sh', process.execPath, 'server.js', '--takeover', ...args],
      { env: { ...process.env, ...SMALL, HOLDFAST_CONTROL: controlOf(old) } },
    );
  const { exit, output } = small();
  await until(
    () => /not taken over/.test(output.stderr),
    () => output.stderr,
    10_000,
  );
  assert.equal((await exit).code, 1);
  assert.match(
    output.stderr,
    /the new server has room for 224 streams, but there are 400: raise 'ulimit -n', use more --workers, or use --force to lose the others\n$/,
  );
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
  small('--force');
  assert.equal((await old.exit).code, 0, old.output.stderr);
});

test('another protocol of takeovers is refused', { skip }, async (t) => {
  const old = await startOld(t);
  const socket = connect(controlOf(old));
  const request = {
    type: 'takeOver',
    protocol: 999,
    version: '9.0.0',
    pid: 1,
    transport: 'hold',
    port: 0,
    host: '',
    shards: [1],
  };
  socket.write(`${JSON.stringify(request)}\n`);
  let received = '';
  for await (const data of socket) received += data;
  assert.deepEqual(JSON.parse(received), {
    type: 'refused',
    problem: 'server 9.0.0 speaks takeover protocol 999, and the running server 1: restart it instead',
  });
});

test('a server that keeps publications elsewhere is refused', { skip }, async (t) => {
  const old = await startOld(t);
  const { exit, output } = startNew(t, old, ['--store', join(old.folder, 'store')]);
  assert.equal((await exit).code, 1);
  assert.match(
    output.stderr,
    /not taken over: the running server keeps publications in memory, not in .*store: use the same --store and --nats$/m,
  );
});

test('only this user can open the control socket, and it is gone after the server', { skip }, async (t) => {
  const server = await startOld(t);
  const { mode } = statSync(controlOf(server));
  assert.equal(mode & 0o777, 0o600);
  await server.stop();
  assert.equal(existsSync(controlOf(server)), false);
});

test('a stale socket is replaced, and one that answers is not', { skip }, async (t) => {
  const first = await startOld(t);
  first.child.kill('SIGKILL');
  await first.exit;
  assert.equal(existsSync(controlOf(first)), true);
  const second = await startServer(t, [
    '--workers',
    '1',
    '--transport',
    'hold',
    '--control',
    controlOf(first),
  ]);
  const third = startServer(t, ['--workers', '1', '--transport', 'hold', '--control', controlOf(first)]);
  await assert.rejects(
    third,
    /another server answers at .*control\.sock: use --takeover or another --control/,
  );
  assert.equal((await second.admin('/readyz')).status, 200);
});
