/*
 * Which machine, which Node, which commit: the facts that belong to a figure.
 */
import { arch, cpus, release, totalmem, type } from 'node:os';
import { descriptorLimit } from '../../lib/descriptors.js';
import { formatBytes } from '../../lib/format.js';
import { machineLine } from '../../lib/machine.js';
import { native, problem } from '../../native/index.js';

/**
 * @typedef {object} Facts
 * @property {string} machine everything in one line
 * @property {string} cpu
 * @property {number} cores
 * @property {number} memoryBytes
 * @property {string} kernel
 * @property {string} node
 * @property {string} v8
 * @property {string} commit
 * @property {number} nofile
 * @property {string} core whether the native core is built
 */

/** @returns {Facts} */
export function readFacts() {
  const machine = machineLine();
  return {
    machine,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()} ${arch()}`,
    node: process.version,
    v8: process.versions.v8,
    commit: /commit (\S+)$/.exec(machine)?.[1] ?? 'unknown',
    nofile: descriptorLimit(),
    core: native ? 'built' : `not built: ${problem}`,
  };
}

/** @param {Facts} facts @returns {string} in Markdown */
export function factsText({ cpu, cores, memoryBytes, kernel, node, v8, commit, nofile, core }) {
  const rows = [
    ['CPU', `${cores} x ${cpu}`],
    ['memory', formatBytes(memoryBytes)],
    ['kernel', kernel],
    ['Node', `${node} (V8 ${v8})`],
    ['commit', `${commit}${commit.endsWith('+') ? ' (with uncommitted changes)' : ''}`],
    ['descriptors per process', String(nofile)],
    ['native core', core],
  ];
  return ['| fact | value |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join(
    '\n',
  );
}
