import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../lib/folder.js';
import { run, temporaryFolder } from './helpers/server.js';

test('a folder is made with those above it, and an existing one is left as it is', (t) => {
  const folder = join(temporaryFolder(t), 'a', 'b', 'c');
  makeFolder(folder, 0o700);
  makeFolder(folder);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
});

test('a file in its place, or above it, is an error', (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  assert.throws(() => makeFolder(file), { code: 'EEXIST' });
  assert.throws(() => makeFolder(join(file, 'a', 'b')), { code: 'ENOTDIR' });
});

test("a server that can't write its CSV says so, even on a file system that can't have folders", async (t) => {
  const words = ['server.js', '--port', '0', '--admin-port', '0', '--log-dir', '/proc/holdfast/logs'];
  const { exit, output } = run(t, process.execPath, words);
  assert.equal((await exit).code, 1);
  assert.match(
    output.stderr,
    /^\S+: can't write to --log-dir \/proc\/holdfast\/logs: ENOENT.+; use another folder, or --no-log$/m,
  );
});
