/*
 * The limits of the host: file descriptors, memory, threads, CPU.
 */
import { formatBytes, formatCount, formatNoun } from '../lib/format.js';
import { atLeast, finding, LIMITS_FILE, numbersOf, SYSCTL_FILE } from './finding.js';

/** Room for other files and threads of the machine. */
const SPARE_FILES = 4096;
const SPARE_THREADS = 128;
/** With fewer streams, a late tick delays few of them. */
const MANY_STREAMS = 10_000;

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Needs} Needs */
/** @typedef {import('./finding.js').Row} Row */

/** @type {Row[]} */
export const DESCRIPTOR_ROWS = [
  (machine, needs) => nofile(machine, needs, 'hard'),
  (machine, needs) => nofile(machine, needs, 'soft'),
  (machine, { nofile, plan }) =>
    atLeast(machine, 'fs.nr_open', nofile, 'the maximum for nofile of any process', {
      forbids: plan === null,
    }),
  (machine, { files, ends }) =>
    atLeast(
      machine,
      'fs.file-max',
      files + SPARE_FILES + (numbersOf(machine, 'fs.file-nr')?.[0] ?? 0),
      `open files of the whole machine: ${socketsOf(ends)}, plus what is open now`,
      { forbids: !machine.isPrivileged },
    ),
  (machine, { files, ends }) =>
    atLeast(
      machine,
      'fs.epoll.max_user_watches',
      files,
      `sockets that one user may watch with epoll: ${socketsOf(ends)}`,
      { forbids: true },
    ),
];

/** @type {Row[]} */
export const HOST_ROWS = [
  (machine, { maps }) =>
    atLeast(
      machine,
      'vm.max_map_count',
      maps,
      'memory mappings of one process: the stacks of its threads, its heap',
      { forbids: true },
    ),
  compaction,
  (machine, { threads, shards }) =>
    atLeast(
      machine,
      'kernel.threads-max',
      machine.threads + threads + SPARE_THREADS,
      `threads of the whole machine: ${threadsOf(threads, shards)}, plus those that run now`,
      { forbids: true },
    ),
  groupThreads,
  memory,
  cpu,
];

/** @param {number} ends */
const socketsOf = (ends) => (ends === 2 ? 'two per stream, one at each end' : 'one per stream');

/** @param {number} threads @param {number} shards */
const threadsOf = (threads, shards) =>
  `${formatCount(threads)} of Holdfast${shards > 1 ? ` (${shards} shards per worker)` : ''}`;

/** @param {Machine} machine @param {Needs} needs @param {'hard' | 'soft'} kind */
function nofile(machine, { nofile: needed, plan }, kind) {
  const isMet = machine.nofile.hard >= needed;
  const now = machine.nofile[kind];
  const hard = plan
    ? isMet
      ? 'file descriptors per process or shard: each stream uses one'
      : `each stream uses a file descriptor: with this few, it takes ${formatNoun(plan.workers, 'worker')} instead of one per core`
    : 'each stream uses a file descriptor, and no number of workers has enough';
  return finding({
    name: `nofile (${kind})`,
    now,
    needed: kind === 'soft' && isMet ? 'any' : needed,
    why: kind === 'hard' ? hard : 'Node raises it to the hard limit when it starts',
    isMet,
    forbids: kind === 'hard' && plan === null,
    // In limits.conf(5), * does not include root.
    fix: { file: LIMITS_FILE, line: `* ${kind} nofile ${needed}\nroot ${kind} nofile ${needed}` },
  });
}

/** The only limit that should be low. @type {Row} */
function compaction(machine, { wish }) {
  const name = 'vm.compaction_proactiveness';
  const now = numbersOf(machine, name)?.[0];
  if (now === undefined) return null;
  return finding({
    name,
    now,
    needed: wish.streams < MANY_STREAMS ? 'any' : 0,
    why: 'the kernel compacts memory in the background, for 15 to 45 ms at a time, which delays ticks and pings',
    isMet: now === 0 || wish.streams < MANY_STREAMS,
    fix: { file: SYSCTL_FILE, line: `${name} = 0` },
  });
}

/** @type {Row} */
function groupThreads({ group }, { threads, shards }) {
  if (group.pids === null) return null;
  const needed = group.pidsNow + threads + SPARE_THREADS;
  return finding({
    name: 'pids.max of the control group',
    now: group.pids,
    needed,
    why: `threads of the control group: ${threadsOf(threads, shards)}, plus those that run now`,
    isMet: group.pids >= needed,
    forbids: true,
    fix: {
      file: '',
      line: `TasksMax=${needed} for the service, or --pids-limit ${needed} for the container`,
    },
  });
}

/** Its names: in the control group, or the machine's. */
export const MEMORY_ROWS = ['memory of the control group (free)', 'memory (free)'];

/** @type {Row} */
function memory({ memory: { availableBytes }, group }, { bytes, streamBytes, processes }) {
  const free = group.memoryFreeBytes ?? Number.POSITIVE_INFINITY;
  const isGroup = free < availableBytes;
  const now = Math.min(free, availableBytes);
  return finding({
    name: MEMORY_ROWS[isGroup ? 0 : 1],
    unit: 'bytes',
    now,
    needed: bytes,
    why: `${formatBytes(streamBytes)} per stream (kernel and process), plus ${processes} processes`,
    isMet: now >= bytes,
    forbids: true,
    fix: {
      file: '',
      line: `${isGroup ? 'a larger memory.max for the control group' : 'more memory'}, or fewer streams`,
    },
  });
}

/** Opening streams ends at some point, so the run is forbidden only if pings alone need all cores. @type {Row} */
function cpu({ cores, group }, { wish, cpu: { low, high, pings }, pings: rate }) {
  const now = Math.floor(Math.min(cores, group.cores ?? cores) * 100);
  const intervalMs = Math.ceil((wish.pingIntervalMs * high) / now / 1000) * 1000;
  return finding({
    name: 'CPU (estimate)',
    unit: 'percent',
    now,
    needed: Math.ceil(high),
    why: `${formatNoun(rate, 'ping')} and ${formatCount(wish.openRate)} new streams per second: ${low.toFixed(0)} to ${high.toFixed(0)} % of a core (docs/bench.md)`,
    isMet: now >= high,
    forbids: pings > now,
    fix: { file: '', line: `--ping-interval ${intervalMs} or more, or fewer new streams per second` },
  });
}
