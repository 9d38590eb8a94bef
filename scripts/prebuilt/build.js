/*
 * Builds the native core for one kind of machine. The same sources and the same tools give the same bytes: no path of this
 * machine gets in.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { FOLDER, fileOf } from '../../native/prebuilt.js';
import { sourcesIn, standardLibrary, writeLinker } from './toolchain.js';

export const CRATE = fileURLToPath(new URL('../../native', import.meta.url));
const PROFILE = 'prebuilt'; // native/Cargo.toml

/**
 * @param {import('./targets.js').Target} target
 * @param {import('./toolchain.js').Rust} rust
 * @param {string} python that has zig
 * @param {string} rustSrc
 * @returns {'installed' | 'sources'} where the standard library is from
 * @throws {HoldfastError} NO_STD, BUILD_FAILED
 */
export function build(target, rust, python, rustSrc) {
  const { name, triple } = target;
  const folder = process.env.CARGO_TARGET_DIR || join(CRATE, 'target');
  const std = standardLibrary(rust, target, rustSrc);
  const args = ['build', '--profile', PROFILE, '--locked', '--target', triple, ...std.args];
  const { status } = spawnSync('cargo', args, {
    cwd: CRATE,
    stdio: 'inherit',
    env: {
      ...process.env,
      ...std.env,
      CARGO_TARGET_DIR: folder,
      CARGO_ENCODED_RUSTFLAGS: [...remaps(rust, rustSrc), ...target.flags].join('\x1f'),
      [`CARGO_TARGET_${triple.toUpperCase().replaceAll('-', '_')}_LINKER`]: writeLinker(
        join(folder, 'zig'),
        python,
        target,
      ),
      ZIG_GLOBAL_CACHE_DIR: join(folder, 'zig'),
      ZIG_LOCAL_CACHE_DIR: join(folder, 'zig'),
    },
  });
  if (status !== 0) throw new HoldfastError('BUILD_FAILED', `cargo exited with status ${status}`);
  put(join(folder, triple, PROFILE, 'libholdfast_native.so'), fileOf(name));
  return std.args.length === 0 ? 'installed' : 'sources';
}

/** @param {import('./toolchain.js').Rust} rust @param {string} rustSrc @returns {string[]} flags that replace the paths of this machine */
function remaps(rust, rustSrc) {
  const registry = join(process.env.CARGO_HOME || join(homedir(), '.cargo'), 'registry/src');
  const std = `/rustc/${rust.commit}/library`; // as in the standard library of rustup
  /** @type {[string, string][]} */
  const pairs = [
    [CRATE, '/holdfast'],
    [registry, '/crates'],
    [sourcesIn(rust), std],
    ...(rustSrc ? [/** @type {[string, string]} */ ([rustSrc, std])] : []),
  ];
  return pairs.map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
}

/** Renamed, not overwritten: a process that has loaded the old one keeps it intact. @param {string} from @param {string} to */
function put(from, to) {
  mkdirSync(FOLDER, { recursive: true });
  copyFileSync(from, `${to}.${process.pid}`);
  renameSync(`${to}.${process.pid}`, to);
}
