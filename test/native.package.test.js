/*
 * The installed package builds the native core from its own files.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { install, pack } from './helpers/package.js';
import { ROOT } from './helpers/server.js';

test('with cargo installed, the package builds the native core', (t) => {
  if (spawnSync('cargo', ['--version']).error) return t.skip('cargo is not installed');
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, 'native/target'); // what is built there already is used
  const folder = install(t, pack(t).tarball, { CARGO_TARGET_DIR: target, HOLDFAST_NATIVE: '' });
  const code =
    "import { Hold } from 'holdfast'; const hold = new Hold({}); console.log(hold.isNative); hold.close(0);";
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_NATIVE: '' },
  });
  assert.equal(stdout, 'true\n', stderr);
  assert.equal(existsSync(join(folder, 'node_modules/holdfast/native/target')), false);
});
