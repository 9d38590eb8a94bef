/*
 * Which native core is loaded, and what `npm install` does about it: one line says what, and why if there is none.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ADDON } from '../native/index.js';
import { causeOf, machineHere, TARGETS, targetOf } from '../native/prebuilt.js';
import { PROTOCOL } from '../native/protocol.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

const NEEDS_ADDON = { skip: !existsSync(ADDON) && 'the native core is not built' };
const HERE = targetOf(machineHere());

/** @param {Record<string, string>} env @param {string} [cwd] */
function build(env, cwd = ROOT) {
  return spawnSync(process.execPath, ['native/build.js'], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_NATIVE: '', HOLDFAST_BUILD: '', ...env },
  });
}

/**
 * A package with these native cores: 'good' is the one of this clone, 'broken' does not load.
 * @param {import('node:test').TestContext} t
 * @param {{ built?: 'good' | 'broken', prebuilt?: 'good' | 'broken', protocol?: number }} cores
 * @returns {string} its folder
 */
function packageWith(t, { built, prebuilt, protocol = PROTOCOL }) {
  const folder = join(temporaryFolder(t), 'node_modules/holdfast');
  const put = (/** @type {string | undefined} */ core, /** @type {string} */ path) => {
    if (core === 'good') copyFileSync(ADDON, join(folder, path));
    if (core === 'broken') writeFileSync(join(folder, path), 'not a library');
  };
  mkdirSync(join(folder, 'native/prebuilt'), { recursive: true });
  for (const name of ['index.js', 'prebuilt.js', 'protocol.js', 'build.js'])
    cpSync(join(ROOT, 'native', name), join(folder, 'native', name));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  put(built, 'native/holdfast.node');
  put(prebuilt, `native/prebuilt/${HERE}.node`);
  const numbers = join(folder, 'native/protocol.js');
  writeFileSync(numbers, readFileSync(numbers, 'utf8').replace(/(PROTOCOL = )\d+/, `$1${protocol}`));
  return folder;
}

/**
 * @param {string} folder of a package
 * @param {Record<string, string>} [machine] what to pretend, such as the platform
 * @returns {{ origin: string, problem: string }} what it loads
 */
function loadedFrom(folder, machine = {}) {
  const code = `
    for (const [name, value] of Object.entries(${JSON.stringify(machine)})) Object.defineProperty(process, name, { value });
    const { origin, problem } = await import('./native/index.js');
    console.log(JSON.stringify({ origin, problem }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_NATIVE: '' },
  });
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

test('the one that was built here comes first, then the prebuilt one', NEEDS_ADDON, (t) => {
  const both = packageWith(t, { built: 'good', prebuilt: 'good' });
  assert.deepEqual(loadedFrom(both), { origin: 'built', problem: '' });
  const broken = packageWith(t, { built: 'broken', prebuilt: 'good' });
  assert.deepEqual(loadedFrom(broken), { origin: HERE, problem: '' });
  const prebuilt = packageWith(t, { prebuilt: 'good' });
  assert.deepEqual(loadedFrom(prebuilt), { origin: HERE, problem: '' });
});

test('one that does not fit is not loaded, and one line says why and what to do', NEEDS_ADDON, (t) => {
  const stale = `speaks protocol ${PROTOCOL} and this version needs 99`;
  const remedy = 'with cargo in PATH, run HOLDFAST_BUILD=1 npm rebuild holdfast';
  const problemOf = (/** @type {Parameters<typeof packageWith>[1]} */ cores) =>
    loadedFrom(packageWith(t, cores)).problem;
  assert.equal(problemOf({ built: 'good', protocol: 99 }), `the one built here ${stale}: run npm run build`);
  assert.equal(
    problemOf({ prebuilt: 'good', protocol: 99 }),
    `the prebuilt one for ${HERE} ${stale}; ${remedy}`,
  );
  assert.match(
    problemOf({ prebuilt: 'broken' }),
    /^the prebuilt one for \S+ does not load \(.*\); with cargo/,
  );
  assert.match(
    problemOf({ built: 'broken' }),
    /^the one built here does not load \(.*\): run npm run build$/,
  );
  assert.equal(problemOf({}), 'it was not built: run npm install with cargo in PATH');
});

test('where none is prebuilt, it says so', (t) => {
  const folder = packageWith(t, {});
  assert.equal(
    loadedFrom(folder, { platform: 'darwin', arch: 'arm64' }).problem,
    'it needs Linux, and this is darwin-arm64',
  );
  const libc = HERE.split('-')[2];
  if (process.platform === 'linux')
    assert.equal(
      loadedFrom(folder, { arch: 'riscv64' }).problem,
      `none is prebuilt for linux-riscv64-${libc}: run npm install with cargo in PATH`,
    );
});

test('the machine decides which one fits, and a glibc that is too old is named', () => {
  const machine = { platform: 'linux', arch: 'arm64', glibc: '2.36' };
  assert.equal(targetOf(machine), 'linux-arm64-gnu');
  assert.equal(targetOf({ ...machine, glibc: '' }), 'linux-arm64-musl');
  assert.equal(targetOf({ ...machine, platform: 'win32' }), 'win32-arm64');
  assert.ok(TARGETS.includes(targetOf(machine)));
  const error = "Error: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.17' not found (required by x.node)";
  assert.equal(
    causeOf({ ...machine, glibc: '2.12' }, error),
    'needs glibc 2.17 or later, and this system has 2.12',
  );
  assert.equal(causeOf(machine, 'does not load'), 'does not load');
});

test('a package with a prebuilt core that loads builds nothing, unless it is told to', NEEDS_ADDON, (t) => {
  const folder = packageWith(t, { prebuilt: 'good' });
  const env = { PATH: temporaryFolder(t) };
  assert.equal(
    build(env, folder).stdout,
    `holdfast: native core loaded (${HERE}); HOLDFAST_BUILD=1 npm rebuild holdfast builds it here\n`,
  );
  const why = 'native core not built: cargo is not installed (https://rustup.rs)';
  assert.equal(
    build({ ...env, HOLDFAST_BUILD: '1' }, folder).stdout,
    `holdfast: ${why}; the one for ${HERE} is used\n`,
  );
  const stale = packageWith(t, { prebuilt: 'good', protocol: 99 });
  assert.equal(build(env, stale).stdout, `holdfast: ${why}; streams will be held in JS\n`);
});

test('in a clone, without cargo, what was built before is used', NEEDS_ADDON, (t) => {
  const { status, stdout, stderr } = build({ PATH: temporaryFolder(t) });
  const why = 'cargo is not installed (https://rustup.rs)';
  assert.equal(stdout, `holdfast: native core not built: ${why}; the one built before is used\n`);
  assert.deepEqual([status, stderr], [0, '']);
});

test('turned off, it is not built, and one line says why', () => {
  const { status, stdout, stderr } = build({ HOLDFAST_NATIVE: 'off' });
  const line = 'native core not built: HOLDFAST_NATIVE is off; streams will be held in JS';
  assert.equal(stdout, `holdfast: ${line}\n`);
  assert.deepEqual([status, stderr], [0, '']);
});

test('a build that fails does not fail npm install', (t) => {
  const { status, stdout } = build({ CARGO_TARGET_DIR: temporaryFolder(t), RUSTFLAGS: '--no-such-flag' });
  assert.match(stdout, /native core not built: cargo exited with status \d+; /);
  assert.equal(status, 0);
});
