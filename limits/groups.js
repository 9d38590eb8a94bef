/*
 * What the control groups of this process allow. Every group on the way up to the root limits it, so the tightest
 * value counts. `read` gives the text of a file below the root, so that tests can use their own folder.
 */
import { join } from 'node:path';

/** cgroup v1 reports about 2^63 for "no limit". */
const NO_LIMIT = 2 ** 60;

/** @typedef {(path: string) => string | null} Read null if there is no such file */

/**
 * The tightest limits of the control group and all groups above it; null if nothing is limited.
 * @typedef {object} Group
 * @property {number | null} memoryBytes memory.max
 * @property {number | null} memoryFreeBytes the part of it that is free, or holds files that can be dropped
 * @property {number | null} cores cpu.max
 * @property {number | null} pids pids.max
 * @property {number} pidsNow
 */

/** @param {Read} read @returns {Group} */
export function readGroup(read) {
  const groups = groupFolders(read('proc/self/cgroup') ?? '').map((folder) => readFolder(read, folder));
  const least = (/** @type {(number | null)[]} */ values) => {
    const known = values.filter((value) => value !== null);
    return known.length > 0 ? Math.min(...known) : null;
  };
  const pids = groups.filter((group) => group.pids !== null).sort((a, b) => left(a) - left(b))[0];
  return {
    memoryBytes: least(groups.map(({ memoryBytes }) => memoryBytes)),
    memoryFreeBytes: least(groups.map(({ memoryFreeBytes }) => memoryFreeBytes)),
    cores: least(groups.map(({ cores }) => cores)),
    pids: pids?.pids ?? null,
    pidsNow: pids?.pidsNow ?? 0,
  };
}

/** @param {Group} group */
const left = ({ pids, pidsNow }) => (pids ?? 0) - pidsNow;

/**
 * The folders with the limits of this process, from /proc/self/cgroup: v2 (also where systemd mounts it next to v1) and
 * v1. If the path is not below the mount, as in a container, only the mount itself counts.
 * @param {string} text @returns {string[]} below the root, each with all folders above it
 */
export function groupFolders(text) {
  return text.split('\n').flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) return [];
    const known = controllers.split(',').filter((name) => ['memory', 'cpu', 'pids'].includes(name));
    const mounts =
      controllers === ''
        ? ['sys/fs/cgroup', 'sys/fs/cgroup/unified']
        : known.map((name) => `sys/fs/cgroup/${name}`);
    return mounts.flatMap((mount) => upwards(path).map((folder) => join(mount, folder)));
  });
}

/** @param {string} path '/a/b' @returns {string[]} '/a/b', '/a', '/' */
function upwards(path) {
  const parts = path.split('/').filter(Boolean);
  return Array.from({ length: parts.length + 1 }, (_, i) => `/${parts.slice(0, parts.length - i).join('/')}`);
}

/** @param {Read} read @param {string} folder of v2 or v1 @returns {Group} */
function readFolder(read, folder) {
  const number = (/** @type {string} */ name) => limitOf(read(join(folder, name)));
  return {
    ...memoryIn(number, read(join(folder, 'memory.stat')) ?? ''),
    ...cpuIn(read, folder, number),
    ...pidsIn(number),
  };
}

/** @typedef {(name: string) => number | null} ReadNumber of a file in the folder */

/** @param {ReadNumber} number @param {string} stat memory.stat */
function memoryIn(number, stat) {
  const memoryBytes = number('memory.max') ?? number('memory.limit_in_bytes');
  if (memoryBytes === null) return { memoryBytes, memoryFreeBytes: null };
  const usedBytes = number('memory.current') ?? number('memory.usage_in_bytes') ?? 0;
  const filesBytes = rowOf(stat, 'total_inactive_file') ?? rowOf(stat, 'inactive_file') ?? 0;
  return { memoryBytes, memoryFreeBytes: Math.max(0, memoryBytes - usedBytes + filesBytes) };
}

/** @param {Read} read @param {string} folder @param {ReadNumber} number */
function cpuIn(read, folder, number) {
  const [quota, period] = (read(join(folder, 'cpu.max')) ?? '').split(' ').map(limitOf);
  const share = quota ?? number('cpu.cfs_quota_us');
  const cores =
    share === null || share < 0 ? null : share / (period ?? number('cpu.cfs_period_us') ?? 100_000);
  return { cores };
}

/** @param {ReadNumber} number */
function pidsIn(number) {
  return { pids: number('pids.max'), pidsNow: number('pids.current') ?? 0 };
}

/** @param {string | null} text 'max' means no limit @returns {number | null} */
function limitOf(text) {
  const value = /^-?\d+$/.test(text?.trim() ?? '') ? Number(text) : null;
  return value === null || value >= NO_LIMIT ? null : value;
}

/** @param {string} text lines of a name and a number @param {string} name @returns {number | null} */
function rowOf(text, name) {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text);
  return found && Number(found[1]);
}
