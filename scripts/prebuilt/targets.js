/*
 * The kinds of machine that a native core is prebuilt for, and how cargo and zig name them.
 */
import { GLIBC, TARGETS } from '../../native/prebuilt.js';

const CPUS = { x64: 'x86_64', arm64: 'aarch64' };

/**
 * @typedef {object} Target
 * @property {string} name such as linux-x64-gnu
 * @property {string} triple of Rust
 * @property {string} zig the target of `zig cc`, with the glibc to link against
 * @property {string[]} flags of rustc
 * @property {string} glibc the oldest that it runs with; '' for musl
 */

/** @type {Target[]} */
export const targets = TARGETS.map((name) => {
  const [, cpu, libc] = name.split('-');
  const machine = CPUS[/** @type {keyof typeof CPUS} */ (cpu)];
  const isGlibc = libc === 'gnu';
  return {
    name,
    triple: `${machine}-unknown-linux-${libc}`,
    zig: `${machine}-linux-${libc}${isGlibc ? `.${GLIBC}` : ''}`,
    // Rust links musl statically by default, but a library that Node loads has to use the libc of Node.
    flags: isGlibc ? [] : ['-Ctarget-feature=-crt-static', '-Clink-self-contained=no'],
    glibc: isGlibc ? GLIBC : '',
  };
});

/** @param {string} name @returns {Target | undefined} */
export const targetCalled = (name) => targets.find((target) => target.name === name);
