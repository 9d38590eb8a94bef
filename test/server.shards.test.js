/*
 * Shards: threads of a worker with a descriptor table of their own, and what the plan does without them.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { native } from '../native/index.js';
import { get, rawClient } from './helpers/client.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const HAS_PRLIMIT = !spawnSync('prlimit', ['--version']).error;
const HOLD = ['--transport', 'hold'];
/** A descriptor table holds 91 streams. */
const FEW_DESCRIPTORS = ['prlimit', '--nofile=160:160'];
/** Two reasons for not getting a separate descriptor table: our switch, and a kernel filter. */
const REFUSED = {
  'HOLDFAST_UNSHARE=off': ['env', 'HOLDFAST_UNSHARE=off'],
  'a seccomp filter': ['python3', 'test/fixtures/no-unshare.py'],
};

/** @param {number} pid @returns {string[]} ids of the threads that are shards */
const shardsOf = (pid) =>
  readdirSync(`/proc/${pid}/task`).filter((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8').startsWith('holdfast-'),
  );

describe('shards', { skip: !native && 'the native core is not built' }, () => {
  test('one worker holds more streams than a process may have descriptors', async (t) => {
    if (!HAS_PRLIMIT) return t.skip('prlimit is not installed (Debian: util-linux)');
    const server = await startServer(t, [...HOLD, '--workers', '1', '--streams', '300'], {
      prefix: FEW_DESCRIPTORS,
    });
    const clients = Array.from({ length: 300 }, () => rawClient(server.port, get()));
    await server.untilTotals(({ streams }) => streams === 300, '300 streams in one worker');
    const [{ pid }] = (await server.frame()).workers;
    assert.ok(shardsOf(pid).length > 3);
    for (const client of clients) client.close();
    await server.untilTotals(({ streams }) => streams === 0, 'all are gone');
  });

  test('a shard has no descriptor of the process in its table, and a lower priority than the event loop', async (t) => {
    const server = await startServer(t, [...HOLD, '--workers', '1']);
    const [{ pid }] = (await server.frame()).workers;
    const [shard] = shardsOf(pid);
    const descriptors = readdirSync(`/proc/${pid}/task/${shard}/fd`);
    // Standard input, output and error, two bells, the epoll, the transfer, the listening socket, and a second copy of
    // the bells and the transfer for a shard that takes its place.
    assert.equal(descriptors.length, 11);
    const nice = readFileSync(`/proc/${pid}/task/${shard}/stat`, 'utf8').split(') ')[1].split(' ')[16];
    assert.equal(nice, '10');
  });

  for (const [how, refuse] of Object.entries(REFUSED)) {
    test(`without tables of their own (${how}) the plan has more workers, or says how many it needs`, async (t) => {
      if (!HAS_PRLIMIT) return t.skip('prlimit is not installed (Debian: util-linux)');
      if (spawnSync(refuse[0], [...refuse.slice(1), 'true']).status !== 0)
        return t.skip(`${refuse[0]} is not installed`);
      const prefix = [...FEW_DESCRIPTORS, ...refuse];
      const server = await startServer(t, [...HOLD, '--streams', '250'], { prefix });
      assert.match(server.output.stderr, /unshare is refused.*: one shard per worker/);
      const clients = Array.from({ length: 200 }, () => rawClient(server.port, get()));
      await server.untilTotals(({ streams }) => streams === 200, '200 streams');
      assert.equal((await server.frame()).workers.length, 3);
      for (const client of clients) client.close();

      const [command, ...words] = [...prefix, process.execPath, 'server.js', ...HOLD];
      const failing = run(t, command, [...words, '--workers', '1', '--streams', '250', '--port', '0']);
      assert.equal((await failing.exit).code, 1);
      assert.match(
        failing.output.stderr,
        /^holdfast: --streams 250 does not fit --workers 1: .*use --workers 3[^\n]*\n$/,
      );
    });
  }

  test('out of descriptors it stops accepting instead of trying again and again, and goes on when there are some', async (t) => {
    if (!HAS_PRLIMIT) return t.skip('prlimit is not installed (Debian: util-linux)');
    const server = await startServer(t, [...HOLD, '--workers', '1'], {
      prefix: REFUSED['HOLDFAST_UNSHARE=off'],
    });
    const [{ pid }] = (await server.frame()).workers;
    const [shard] = shardsOf(pid);
    const limitTo = (/** @type {number} */ n) =>
      spawnSync('prlimit', ['--pid', String(pid), `--nofile=${n}:20000`]);
    const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
    let free = 0;
    while (taken.has(free)) free++;
    limitTo(free); // below it every number is taken
    const clients = Array.from({ length: 40 }, () => rawClient(server.port, get()));
    const switches = () => {
      const status = readFileSync(`/proc/${pid}/task/${shard}/status`, 'utf8');
      return [...status.matchAll(/_switches:\s+(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const cpuTicks = () => {
      const fields = readFileSync(`/proc/${pid}/task/${shard}/stat`, 'utf8').split(') ')[1].split(' ');
      return Number(fields[11]) + Number(fields[12]);
    };
    const [ticksBefore, switchesBefore] = [cpuTicks(), switches()];
    const { elapsedMs } = (await server.frame()).totals;
    await server.untilTotals((totals) => totals.elapsedMs > Number(elapsedMs) + 1000, 'a second has passed');
    assert.ok(cpuTicks() - ticksBefore < 30, 'it used less than a third of a core');
    assert.ok(switches() - switchesBefore < 200, 'it woke a few times only');
    // Node may have closed a few of its own in the meantime.
    assert.ok(clients.filter(({ received }) => received === '').length > 20);
    limitTo(20_000);
    await until(() => clients.every(({ received }) => received.includes('Welcome!')), 'all are served');
    for (const client of clients) client.close();
  });
});
