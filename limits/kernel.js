/*
 * What this machine allows: sysctls, file descriptors, memory, control groups. The parsers are pure, `readMachine`
 * reads the files, and what it returns can be saved as JSON and judged elsewhere (limits/index.js).
 */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseMeminfo } from '../lib/meminfo.js';
import { readGroup } from './groups.js';

/** The sysctls that the rows in limits/ look at. */
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
/** The default of fs.nr_open: the usual limit, and the meaning of "unlimited". */
const USUAL_NOFILE = 1_048_576;

/**
 * @typedef {object} Machine
 * @property {string} note what it is, for a person; '' for the machine that runs this
 * @property {Record<string, string>} sysctls as in /proc/sys, with one blank between values; missing ones are left out
 * @property {{ soft: number, hard: number }} nofile file descriptors per process
 * @property {{ totalBytes: number, availableBytes: number }} memory of the machine, whatever the control group allows
 * @property {import('./groups.js').Group} group
 * @property {number} cores that this process may run on
 * @property {number} pageBytes
 * @property {number} threads that run now
 * @property {boolean} canUnshare whether a thread may have its own file descriptor table
 * @property {boolean} isPrivileged whether it has CAP_SYS_ADMIN, which fs.file-max does not apply to
 */

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
 * /proc/self/status. The system call filters (seccomp) of containers refuse unshare(2), unless CAP_SYS_ADMIN was
 * granted. To be sure one has to try it: a caller that has tried passes `mostShards`.
 * @param {string} text @returns {{ canUnshare: boolean, isPrivileged: boolean }}
 */
export function parseStatus(text) {
  const rights = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(text)?.[1] ?? '0'}`);
  const isPrivileged = ((rights >> SYS_ADMIN) & 1n) === 1n;
  return { canUnshare: isPrivileged || !/^Seccomp:\s*2/m.test(text), isPrivileged };
}

/** @param {string} text of /proc/meminfo @returns {Machine['memory']} */
export function parseMemory(text) {
  const found = parseMeminfo(text);
  const totalBytes = found.totalBytes || totalmem();
  return { totalBytes, availableBytes: found.availableBytes || totalBytes };
}

/**
 * @param {string} [root] a folder to read instead of /
 * @returns {Machine} with usual values for anything that can't be read
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

/** @param {string} root @returns {import('./groups.js').Read} */
function readerOf(root) {
  return (path) => {
    try {
      return readFileSync(join(root, path), 'utf8');
    } catch {
      return null;
    }
  };
}

/** @param {import('./groups.js').Read} read @returns {Machine['sysctls']} */
function readSysctls(read) {
  const found = SYSCTLS.map((name) => [name, read(pathOfSysctl(name))]).filter(([, text]) => text !== null);
  return Object.fromEntries(found.map(([name, text]) => [name, String(text).trim().replace(/\s+/g, ' ')]));
}
