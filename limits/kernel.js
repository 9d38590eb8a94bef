/*
 * What this machine allows: sysctls, descriptors, memory, control groups. The parsers are pure, `readMachine`
 * is the edge, and what it returns can be saved as JSON and judged elsewhere (limits/index.js).
 */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';

/** The sysctls that limits/index.js asks for. */
export const SYSCTLS = [
  'fs.nr_open',
  'fs.file-max',
  'fs.file-nr',
  'fs.epoll.max_user_watches',
  'net.core.somaxconn',
  'net.ipv4.tcp_max_syn_backlog',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.netfilter.nf_conntrack_max',
  'net.netfilter.nf_conntrack_buckets',
  'net.netfilter.nf_conntrack_count',
  'net.ipv4.tcp_mem',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
  'vm.max_map_count',
  'vm.compaction_proactiveness',
  'kernel.threads-max',
];

/** CAP_SYS_ADMIN, as a bit of CapEff (capabilities(7)). */
const SYS_ADMIN = 21n;
/** What Linux gives where nothing else is said, and what stands for "unlimited": fs.nr_open as it comes. */
const USUAL_NOFILE = 1_048_576;
/** The first control groups (v1) say about 2^63 for "no limit". */
const NO_LIMIT = 2 ** 60;

/**
 * @typedef {object} Machine
 * @property {string} note what it is, for a person; '' for the one that runs this
 * @property {Record<string, string>} sysctls as /proc/sys has them, one blank between values; a missing one is not here
 * @property {{ soft: number, hard: number }} nofile descriptors a process may have
 * @property {{ totalBytes: number, availableBytes: number }} memory of the machine, whatever the control group allows
 * @property {Group} group
 * @property {number} cores that this process may run on
 * @property {number} pageBytes
 * @property {number} threads that run now
 * @property {boolean} canUnshare whether a thread may have a table of descriptors of its own
 * @property {boolean} isPrivileged whether CAP_SYS_ADMIN is here, which fs.file-max does not bind
 *
 * The control group, and all above it: the tightest of each. Null where nothing is limited.
 * @typedef {object} Group
 * @property {number | null} memoryBytes memory.max
 * @property {number | null} memoryFreeBytes what of it is free, or holds files that can be dropped
 * @property {number | null} cores cpu.max
 * @property {number | null} pids pids.max
 * @property {number} pidsNow
 */

/** @typedef {(path: string) => string | null} Read null where there is no such file */

/** @param {string} name 'net.core.somaxconn' @returns {string} its path below the root */
export function pathOfSysctl(name) {
  return `proc/sys/${name.replaceAll('.', '/')}`;
}

/** /proc/self/limits. @param {string} text @returns {Machine['nofile']} */
export function parseNofile(text) {
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text) ?? [];
  const numberOf = (/** @type {string | undefined} */ word) =>
    Number(/^\d+$/.exec(word ?? '') ?? USUAL_NOFILE);
  return { soft: numberOf(soft), hard: numberOf(hard) };
}

/**
 * /proc/self/status. Filters of system calls (seccomp) as containers have them refuse unshare(2), unless
 * CAP_SYS_ADMIN was given too. Only trying it tells for sure: whoever has tried gives `mostShards`.
 * @param {string} text @returns {{ canUnshare: boolean, isPrivileged: boolean }}
 */
export function parseStatus(text) {
  const rights = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(text)?.[1] ?? '0'}`);
  const isPrivileged = ((rights >> SYS_ADMIN) & 1n) === 1n;
  return { canUnshare: isPrivileged || !/^Seccomp:\s*2/m.test(text), isPrivileged };
}

/** /proc/meminfo. @param {string} text @returns {Machine['memory']} */
export function parseMemory(text) {
  const totalBytes = (lineNumber(text, 'MemTotal:') ?? totalmem() / 1024) * 1024;
  return { totalBytes, availableBytes: (lineNumber(text, 'MemAvailable:') ?? totalBytes / 1024) * 1024 };
}

/**
 * /proc/self/cgroup: the folders that say what binds this process, v2 (also as systemd mounts it beside v1) and v1.
 * A path that is not below the mount, as in a container, leaves the mount itself.
 * @param {string} text @returns {string[]} below the root, with all that lie above each
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

/** @param {Read} read @returns {Group} */
function readGroup(read) {
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

/** @param {Read} read @param {string} folder of v2 or v1 @returns {Group} */
function readFolder(read, folder) {
  const number = (/** @type {string} */ name) => limitOf(read(join(folder, name)));
  const memoryBytes = number('memory.max') ?? number('memory.limit_in_bytes');
  const usedBytes = number('memory.current') ?? number('memory.usage_in_bytes') ?? 0;
  const stat = read(join(folder, 'memory.stat')) ?? '';
  const filesBytes = lineNumber(stat, 'total_inactive_file') ?? lineNumber(stat, 'inactive_file') ?? 0;
  const [quota, period] = (read(join(folder, 'cpu.max')) ?? '').split(' ').map(limitOf);
  const share = quota ?? number('cpu.cfs_quota_us');
  return {
    memoryBytes,
    memoryFreeBytes: memoryBytes === null ? null : Math.max(0, memoryBytes - usedBytes + filesBytes),
    cores: share === null || share < 0 ? null : share / (period ?? number('cpu.cfs_period_us') ?? 100_000),
    pids: number('pids.max'),
    pidsNow: number('pids.current') ?? 0,
  };
}

/** @param {string | null} text 'max' is no limit @returns {number | null} */
function limitOf(text) {
  const value = /^-?\d+$/.test(text?.trim() ?? '') ? Number(text) : null;
  return value === null || value >= NO_LIMIT ? null : value;
}

/** @param {string} text lines of a name and a number @param {string} name @returns {number | null} */
function lineNumber(text, name) {
  const line = text.split('\n').find((one) => one.startsWith(name) && /\s/.test(one.charAt(name.length)));
  return line === undefined ? null : Number(line.slice(name.length).trim().split(/\s/)[0]);
}

/**
 * @param {string} [root] the folder that stands for /
 * @returns {Machine} what can't be read is as it usually is
 */
export function readMachine(root = '/') {
  const read = readerOf(root);
  return {
    note: '',
    sysctls: readSysctls(read),
    nofile: parseNofile(read('proc/self/limits') ?? ''),
    memory: parseMemory(read('proc/meminfo') ?? ''),
    group: readGroup(read),
    cores: availableParallelism(),
    pageBytes: Number(/^KernelPageSize:\s+(\d+) kB/m.exec(read('proc/self/smaps') ?? '')?.[1] ?? 4) * 1024,
    threads: Number(/\/(\d+) /.exec(read('proc/loadavg') ?? '')?.[1] ?? 0),
    ...parseStatus(read('proc/self/status') ?? ''),
  };
}

/** @param {string} root @returns {Read} */
function readerOf(root) {
  return (path) => {
    try {
      return readFileSync(join(root, path), 'utf8');
    } catch {
      return null;
    }
  };
}

/** @param {Read} read @returns {Machine['sysctls']} */
function readSysctls(read) {
  const found = SYSCTLS.map((name) => [name, read(pathOfSysctl(name))]).filter(([, text]) => text !== null);
  return Object.fromEntries(found.map(([name, text]) => [name, String(text).trim().replace(/\s+/g, ' ')]));
}
