/*
 * The server with --store: it opens the store before it forks, and closes it after its workers have gone.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openEnvironment } from '../broker/disk/environment.js';
import { run, startServer, temporaryFolder } from './helpers/server.js';

/** @param {string} store */
async function contentsOf(store) {
  const { root, meta } = await openEnvironment(store, { readOnly: true });
  const contents = { epoch: meta.get('epoch'), owner: meta.get('owner') };
  await root.close();
  return contents;
}

test('a store lives longer than its server, whether that is stopped or killed', async (t) => {
  const store = join(temporaryFolder(t), 'store');
  const first = await startServer(t, ['--store', store, '--drain', '0']);
  const { epoch, owner } = await contentsOf(store);
  assert.equal(owner.pid, first.pid);
  await first.stop();
  assert.deepEqual(await contentsOf(store), { epoch, owner: undefined });
  const second = await startServer(t, ['--store', store, '--store-sync', 'off', '--cache-topics', 'a']);
  process.kill(second.pid, 'SIGKILL');
  await second.exit;
  const third = await startServer(t, ['--store', store]);
  assert.equal((await contentsOf(store)).epoch, epoch);
  await third.stop();
});

test('a store that can not be used ends the server with one line, before it listens', async (t) => {
  const folder = temporaryFolder(t);
  const server = await startServer(t, ['--store', folder]);
  for (const [store, line] of [
    [folder, `--store ${folder} is in use by process ${server.pid}: stop that server, or use another folder`],
    ['/proc/store', "can't open --store /proc/store: ENOENT: no such file or directory, mkdir '/proc/store'"],
  ]) {
    const { exit, output } = run(t, process.execPath, [
      'server.js',
      '--port',
      '0',
      '--admin-port',
      '0',
      '--store',
      store,
    ]);
    assert.equal((await exit).code, 1);
    assert.equal(output.stderr, `holdfast: ${line}\n`);
  }
});
