/*
 * The installed package has a native core: a prebuilt one, without Rust and without scripts, or one built from its own files.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { machineHere, targetOf } from '../native/prebuilt.js';
import { installSaying, pack, prebuild, toolsWithoutCargo } from './helpers/package.js';
import { ROOT, run } from './helpers/server.js';

const TARGET = targetOf(machineHere());

/** @param {import('node:test').TestContext} t @param {string} folder in which the package is installed @param {string} origin */
async function assertHoldsNatively(t, folder, origin, env = process.env) {
  const args = ['scripts/prebuilt/trial.js', join(folder, 'node_modules/holdfast')];
  const { output, exit } = run(t, process.execPath, args, { env: { ...env, HOLDFAST_NATIVE: '' } });
  assert.equal((await exit).code, 0, output.stderr);
  assert.deepEqual(JSON.parse(output.stdout), {
    origin,
    node: process.version,
    isNative: true,
    inJs: 0,
    received: 'data: hello\n\n',
    end: 'failed', // the trial lets its shard fail
    restarts: 1,
  });
}

for (const flags of [[], ['--ignore-scripts']]) {
  test(`without cargo, npm install ${flags.join(' ')} brings a native core that holds streams`, async (t) => {
    const problem = prebuild();
    if (problem) return t.skip(problem);
    const env = { PATH: toolsWithoutCargo(t), HOLDFAST_NATIVE: '' };
    const { folder, stdout } = installSaying(t, pack(t).tarball, env, flags);
    const line = `holdfast: native core loaded (${TARGET}); HOLDFAST_BUILD=1 npm rebuild holdfast builds it here\n`;
    assert.equal(stdout.includes(line), flags.length === 0, stdout);
    assert.equal(existsSync(join(folder, 'node_modules/holdfast/native/holdfast.node')), false);
    await assertHoldsNatively(t, folder, TARGET, { ...process.env, ...env });
  });
}

test('with cargo and HOLDFAST_BUILD=1, the package builds the native core', async (t) => {
  if (spawnSync('cargo', ['--version']).error) return t.skip('cargo is not installed');
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, 'native/target'); // what is built there already is used
  const env = { CARGO_TARGET_DIR: target, HOLDFAST_NATIVE: '', HOLDFAST_BUILD: '1' };
  const { folder, stdout } = installSaying(t, pack(t).tarball, env);
  assert.match(stdout, /^holdfast: native core built$/m);
  const native = join(folder, 'node_modules/holdfast/native');
  assert.deepEqual(
    [existsSync(join(native, 'holdfast.node')), existsSync(join(native, 'target'))],
    [true, false],
  );
  await assertHoldsNatively(t, folder, 'built');
});

test('a prebuilt core is tried with any Node, and a failure is one line', async (t) => {
  const problem = prebuild();
  if (problem) return t.skip(problem);
  const attempt = async (/** @type {string[]} */ args, env = {}) => {
    const trial = run(t, process.execPath, ['scripts/prebuilt/try.js', ...args], {
      env: { ...process.env, HOLDFAST_NATIVE: '', ...env },
    });
    return { ...(await trial.exit), ...trial.output };
  };
  const { stdout, stderr } = await attempt([process.execPath]);
  const what = 'holds a stream, delivers a message, survives a panic';
  assert.equal(stdout, `prebuilt: ${TARGET}: ${what} (Node ${process.version})\n`, stderr);
  const inJs = await attempt([process.execPath], { HOLDFAST_NATIVE: 'off' });
  assert.deepEqual([inJs.code, inJs.stderr], [1, 'prebuilt: the stream is held in JS\n']);
  const absent = await attempt(['/no/such/node']);
  assert.deepEqual([absent.code, absent.stderr], [1, 'prebuilt: spawnSync /no/such/node ENOENT\n']);
});
