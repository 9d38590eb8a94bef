/*
 * Builds the native core for one kind of machine. No path of this machine gets in, and with an installed standard library, the
 * same sources and tools give the same bytes. If the standard library is built too, the order of functions differs between
 * folders.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { FOLDER, fileOf } from '../../native/prebuilt.js';
import { sourcesIn, sourcesOfStd, writeTools } from './toolchain.js';

export const CRATE = fileURLToPath(new URL('../../native', import.meta.url));
/** A link to the sources of the standard library, so that their path is known. */
const STD = join(CRATE, 'target/rust-src');
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
  const sources = sourcesOfStd(rust, target, rustSrc);
  const args = ['build', '--profile', PROFILE, '--locked', '--target', triple];
  if (sources) args.push('-Zbuild-std=std,panic_unwind');
  const { status } = spawnSync('cargo', args, {
    cwd: CRATE,
    stdio: 'inherit',
    env: {
      ...process.env,
      ...(sources ? buildingStd(sources) : {}),
      ...compilingWith(writeTools(join(folder, 'zig'), python, target), triple, join(folder, 'zig')),
      CARGO_TARGET_DIR: folder,
      CARGO_ENCODED_RUSTFLAGS: [...remaps(rust), ...target.flags].join('\x1f'),
    },
  });
  if (status !== 0) throw new HoldfastError('BUILD_FAILED', `cargo exited with status ${status}`);
  put(join(folder, triple, PROFILE, 'libholdfast_native.so'), fileOf(name));
  return sources ? 'sources' : 'installed';
}

/** @param {string} sources @returns {Record<string, string>} variables for a cargo that builds the standard library */
function buildingStd(sources) {
  mkdirSync(join(CRATE, 'target'), { recursive: true });
  if (!existsSync(STD) || readlinkSync(STD) !== sources) {
    rmSync(STD, { force: true });
    symlinkSync(sources, STD); // a new link would make cargo build everything again
  }
  return { RUSTC_BOOTSTRAP: '1', __CARGO_TESTS_ONLY_SRC_ROOT: STD };
}

/** @param {import('./toolchain.js').Tools} tools @param {string} triple @param {string} cache of zig @returns {Record<string, string>} */
function compilingWith({ cc, ar }, triple, cache) {
  const name = triple.replaceAll('-', '_');
  return {
    [`CARGO_TARGET_${name.toUpperCase()}_LINKER`]: cc,
    [`CC_${name}`]: cc,
    [`AR_${name}`]: ar,
    // No paths, and none of the checks that zig adds.
    [`CFLAGS_${name}`]: `-g0 -fno-sanitize=all -ffile-prefix-map=${registry()}=/crates`,
    ZIG_GLOBAL_CACHE_DIR: cache,
    ZIG_LOCAL_CACHE_DIR: cache,
  };
}

/** @returns {string} where cargo keeps the sources of crates */
const registry = () => join(process.env.CARGO_HOME || join(homedir(), '.cargo'), 'registry/src');

/** @param {import('./toolchain.js').Rust} rust @returns {string[]} flags that replace the paths of this machine; the last one that fits wins */
function remaps(rust) {
  const std = `/rustc/${rust.commit}/library`; // as in the standard library of rustup
  const pairs = [
    [CRATE, '/holdfast'],
    [registry(), '/crates'],
    [sourcesIn(rust), std],
    [STD, std],
  ];
  return pairs.map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
}

/** Renamed, not overwritten: a process that has loaded the old one keeps it intact. @param {string} from @param {string} to */
function put(from, to) {
  mkdirSync(FOLDER, { recursive: true });
  copyFileSync(from, `${to}.${process.pid}`);
  renameSync(`${to}.${process.pid}`, to);
}
