/*
 * npm install goes on without the native core, and one line says why it was not built.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { ROOT, temporaryFolder } from './helpers/server.js';

/** @param {Record<string, string>} env */
function build(env) {
  return spawnSync(process.execPath, ['native/build.js'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
}

test('without cargo, or turned off, it is not built, and one line says why', (t) => {
  for (const [env, why] of /** @type {[Record<string, string>, string][]} */ ([
    [{ PATH: temporaryFolder(t) }, 'cargo is not installed (https://rustup.rs)'],
    [{ HOLDFAST_NATIVE: 'off' }, 'HOLDFAST_NATIVE is off'],
  ])) {
    const { status, stdout, stderr } = build(env);
    assert.equal(stdout, `holdfast: native core not built: ${why}; streams will be held in JS\n`);
    assert.deepEqual([status, stderr], [0, '']);
  }
});

test('a build that fails does not fail npm install', (t) => {
  const { status, stdout } = build({ CARGO_TARGET_DIR: temporaryFolder(t), RUSTFLAGS: '--no-such-flag' });
  assert.match(stdout, /native core not built: cargo exited with status \d+; streams will be held in JS\n$/);
  assert.equal(status, 0);
});
