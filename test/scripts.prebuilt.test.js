/*
 * `npm run prebuilt`: what it needs for each kind of machine, and when a core is outdated.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hashOfSources } from '../scripts/prebuilt/manifest.js';
import { targetCalled, targets } from '../scripts/prebuilt/targets.js';
import { sourcesOfStd, writeTools } from '../scripts/prebuilt/toolchain.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

const CRATE = join(ROOT, 'native');

/** @param {string[]} args @param {Record<string, string>} [env] */
function prebuilt(args, env = {}) {
  return spawnSync(process.execPath, ['scripts/prebuilt.js', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
}

test('each kind of machine has its names in Rust and zig', () => {
  assert.deepEqual(targetCalled('linux-arm64-gnu'), {
    name: 'linux-arm64-gnu',
    triple: 'aarch64-unknown-linux-gnu',
    zig: 'aarch64-linux-gnu.2.17',
    flags: [],
    glibc: '2.17',
  });
  const musl = targetCalled('linux-x64-musl');
  assert.deepEqual(
    [musl?.triple, musl?.zig, musl?.glibc],
    ['x86_64-unknown-linux-musl', 'x86_64-linux-musl', ''],
  );
  assert.ok(musl?.flags.includes('-Ctarget-feature=-crt-static'), 'it uses the libc of Node');
});

test('an unknown target, and a machine without Rust, are errors of one line', (t) => {
  const names = targets.map(({ name }) => name).join(', ');
  const unknown = prebuilt(['linux-x86-gnu']);
  assert.equal(unknown.stderr, `prebuilt: unknown target 'linux-x86-gnu': expected ${names}\n`);
  const bare = prebuilt([], { PATH: temporaryFolder(t) });
  assert.equal(bare.stderr, 'prebuilt: cargo is not installed (https://rustup.rs)\n');
  assert.deepEqual([unknown.status, bare.status], [1, 1]);
});

test('the standard library is the installed one, else it is built, else one line says what to do', (t) => {
  const sysroot = temporaryFolder(t);
  const rust = { version: '1.95.0', commit: 'abc', sysroot };
  const musl = targetCalled('linux-x64-musl');
  assert.ok(musl);
  assert.throws(
    () => sourcesOfStd(rust, musl, ''),
    /^HoldfastError: Rust 1\.95\.0 has no standard library for x86_64-unknown-linux-musl: run rustup target add /,
  );
  const sources = join(sysroot, 'lib/rustlib/src/rust/library');
  const given = join(sysroot, 'given');
  for (const folder of [sources, given]) {
    mkdirSync(join(folder, 'std'), { recursive: true });
    writeFileSync(join(folder, 'std/Cargo.toml'), '');
  }
  assert.equal(sourcesOfStd(rust, musl, ''), sources);
  assert.equal(sourcesOfStd(rust, musl, given), given);
  mkdirSync(join(sysroot, 'lib/rustlib/x86_64-unknown-linux-musl/lib'), { recursive: true });
  assert.equal(sourcesOfStd(rust, musl, given), '');
});

test('the compiler and the archiver are programs that call zig for the target, without the name that Rust has for it', (t) => {
  const gnu = targetCalled('linux-x64-gnu');
  assert.ok(gnu);
  const folder = temporaryFolder(t);
  const python = join(folder, 'python');
  writeFileSync(python, '#!/bin/sh\nfor arg; do echo "[$arg]"; done\n', { mode: 0o755 });
  const { cc, ar } = writeTools(join(folder, 'zig'), python, gnu);
  const called = (/** @type {string} */ program, /** @type {string[]} */ args) =>
    spawnSync(program, args, { encoding: 'utf8' }).stdout.trim().split('\n');
  assert.deepEqual(called(cc, ['-c', '--target=x86_64-unknown-linux-gnu', 'a file.c']), [
    ...['[-m]', '[ziglang]', '[cc]', '[-target]', '[x86_64-linux-gnu.2.17]'],
    ...['[-c]', '[a file.c]'],
  ]);
  assert.deepEqual(called(ar, ['cq', 'a.a']), ['[-m]', '[ziglang]', '[ar]', '[cq]', '[a.a]']);
});

test('a change of any source makes the cores outdated, and nothing else does', (t) => {
  const crate = temporaryFolder(t);
  for (const name of ['Cargo.toml', 'Cargo.lock', 'build.rs', 'src', 'core/Cargo.toml', 'core/src'])
    cpSync(join(CRATE, name), join(crate, name), { recursive: true });
  const before = hashOfSources(crate);
  assert.equal(before, hashOfSources(CRATE));
  writeFileSync(join(crate, 'core/src/notes.md'), 'not a source');
  assert.equal(hashOfSources(crate), before);
  for (const name of [
    'Cargo.lock',
    'src/lib.rs',
    'core/src/lib.rs',
    'core/src/shard/mod.rs',
    'core/src/new.rs',
  ]) {
    const old = hashOfSources(crate);
    writeFileSync(join(crate, name), '// changed', { flag: 'a' });
    assert.notEqual(hashOfSources(crate), old, name);
  }
});
