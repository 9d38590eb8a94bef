/*
 * What it takes to build for another machine: zig links, for any libc and without its headers, and Rust's standard library
 * comes from rustup, or is built from its sources.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../../lib/errors.js';
import { pythonPackage } from './python.js';

export const ZIG = '0.17.1';

/** @returns {Promise<string>} a Python that has zig @throws {HoldfastError} NO_ZIG */
export async function pythonWithZig() {
  const { folder, problem } = await pythonPackage(`ziglang-${ZIG}`, `ziglang==${ZIG}`);
  if (problem) throw new HoldfastError('NO_ZIG', problem);
  return join(folder, 'python');
}

/** @typedef {{ cc: string, ar: string }} Tools paths of programs: one compiles C and links, the other one makes archives */

/**
 * Writes what rustc and the crates with C in them (aws-lc-sys) want as programs. Crates name the target as Rust does, which zig does not know.
 * @param {string} folder where they are written
 * @param {string} python
 * @param {import('./targets.js').Target} target
 * @returns {Tools}
 */
export function writeTools(folder, python, { zig }) {
  mkdirSync(folder, { recursive: true });
  const zigTo = (/** @type {string} */ command) => `exec '${python}' -m ziglang ${command} "$@"\n`;
  const withoutTarget =
    'for arg; do\n  shift\n  case $arg in --target=*) ;; *) set -- "$@" "$arg" ;; esac\ndone\n';
  const programs = { cc: withoutTarget + zigTo(`cc -target ${zig}`), ar: zigTo('ar') };
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(folder, `${name}-${zig}`), `#!/bin/sh\n${text}`, { mode: 0o755 });
  return { cc: join(folder, `cc-${zig}`), ar: join(folder, `ar-${zig}`) };
}

/** @typedef {{ version: string, commit: string, sysroot: string }} Rust */

/** @returns {Rust} @throws {HoldfastError} NO_CARGO */
export function findRust() {
  const about = outputOf('rustc', ['-vV']);
  return {
    version: /^release: (.+)$/m.exec(about)?.[1] ?? '',
    commit: /^commit-hash: (.+)$/m.exec(about)?.[1] ?? '',
    sysroot: outputOf('rustc', ['--print', 'sysroot']).trim(),
  };
}

/** @param {string} command @param {string[]} args @returns {string} stdout */
function outputOf(command, args) {
  const { error, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  if (error) throw new HoldfastError('NO_CARGO', 'cargo is not installed (https://rustup.rs)');
  return stdout;
}

/** @param {Rust} rust @returns {string} where rustup puts the sources of the standard library */
export const sourcesIn = ({ sysroot }) => join(sysroot, 'lib/rustlib/src/rust/library');

/**
 * @param {Rust} rust
 * @param {import('./targets.js').Target} target
 * @param {string} rustSrc a folder with the sources of the standard library, of this version; '' for the one of rustup
 * @returns {string} the sources to build the standard library from; '' if it is installed
 * @throws {HoldfastError} NO_STD
 */
export function sourcesOfStd(rust, { triple }, rustSrc) {
  if (existsSync(join(rust.sysroot, 'lib/rustlib', triple, 'lib'))) return '';
  const sources = rustSrc || sourcesIn(rust);
  if (existsSync(join(sources, 'std/Cargo.toml'))) return sources;
  throw new HoldfastError(
    'NO_STD',
    `Rust ${rust.version} has no standard library for ${triple}: run rustup target add ${triple}, or give its sources with --rust-src`,
  );
}
