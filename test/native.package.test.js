/*
 * The installed package has a native core: a prebuilt one, without Rust and without scripts, or one built from its own files.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { machineHere, targetOf } from '../native/prebuilt.js';
import { installSaying, pack, prebuild, toolsWithoutCargo } from './helpers/package.js';
import { ROOT, run } from './helpers/server.js';

const TARGET = targetOf(machineHere());

/** Holds a stream, publishes to it, and prints what the client gets, and who holds it. */
const PROGRAM = `
import { createServer, get } from 'node:http';
import { Hold } from 'holdfast';
const hold = new Hold();
const server = createServer(async (_request, response) => {
  await hold.adopt(response, { channels: ['news'] });
  await hold.publish('news', 'hello');
});
server.listen(0, '127.0.0.1', () => {
  get({ host: '127.0.0.1', port: server.address().port }, (response) => response.once('data', (data) => {
    const { streams, inJs } = hold.counters();
    console.log(JSON.stringify({ data: String(data), isNative: hold.isNative, streams, inJs }));
    server.close();
    hold.close(0);
  }));
});
`;

/** @param {import('node:test').TestContext} t @param {string} folder in which the package is installed @param {Record<string, string>} env */
async function assertHoldsNatively(t, folder, env = {}) {
  writeFileSync(join(folder, 'program.js'), PROGRAM);
  const switches = { HOLDFAST_NATIVE: '', ...env };
  const { output, exit } = run(t, process.execPath, ['program.js'], {
    cwd: folder,
    env: { ...process.env, ...switches },
  });
  assert.equal((await exit).code, 0, output.stderr);
  const said = JSON.parse(output.stdout);
  assert.deepEqual(said, { data: 'data: hello\n\n', isNative: true, streams: 1, inJs: 0 });
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
    await assertHoldsNatively(t, folder, env);
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
  await assertHoldsNatively(t, folder);
});
