/*
 * The command line of examples/nodecached/server.js: what can't work is said in one line.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { MOST_PAGES } from '../examples/nodecached/layout.js';
import { memoryFor, Store } from '../examples/nodecached/store.js';
import { startCached, talk } from './helpers/nodecached.js';
import { ROOT } from './helpers/server.js';

/** @param {string[]} args @param {RegExp} message */
function refuses(args, message) {
  const { status, stderr } = spawnSync(process.execPath, ['examples/nodecached/server.js', '-p0', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 10_000,
  });
  assert.equal(status, 1, args.join(' '));
  assert.match(stderr, message);
  assert.doesNotMatch(stderr, /\n {4}at /);
}

test('more memory than a store can address is refused', () => {
  refuses(['-m', '1984'], /--memory-limit: got 1984, expected at most 1983 per thread/);
  refuses(['-m', '4000', '-t', '2'], /--memory-limit: got 4000, expected at most 1983 per thread/);
});

test('the largest store can be used up to its last page', () => {
  const store = new Store(memoryFor(MOST_PAGES, false), MOST_PAGES, new Int32Array([100]));
  const items = Array.from({ length: MOST_PAGES }, () => store.allocate(1 << 20));
  assert.ok(items.every((item) => item > 0));
  assert.equal(store.allocate(1 << 20), 0);
});

test('threads may have more memory together', async (t) => {
  const { port } = await startCached(t, ['-m', '2500', '-t', '2']);
  assert.match(await talk(port, 'stats\r\n'), /limit_maxbytes 2621440000\r\n/);
});

test('an empty address is refused: it would be all addresses', () => {
  refuses(['-l', ''], /--listen: got '', expected an address/);
});

test('a budget that is no time is refused', () => {
  refuses(['--profile', '--budget', 'parse=..us'], /--budget: got 'parse=..us'/);
});

test('a CSV that cannot be written is said in one line', () => {
  refuses(['--profile', '--profile-csv', '/nowhere/x.csv'], /server.js: can't write .*nowhere\/x.csv/);
});

for (const threads of ['1', '2']) {
  test(`with ${threads} threads, a port that another server has is refused`, async (t) => {
    const { port } = await startCached(t, ['-t', threads]);
    refuses(['-p', String(port), '-t', threads], /can't listen on 127.0.0.1:\d+: .*EADDRINUSE/);
  });
}
