/*
 * What N streams need, in numbers: file descriptors, memory, CPU, threads, ports. Pure; limits/index.js compares them
 * with what the machine allows.
 */
import { HoldfastError } from '../lib/errors.js';
import { planWorkers } from './plan.js';

/**
 * What a stream costs in each transport: bytes of the server's memory and µs of one core, as the lowest and the highest
 * value measured (docs/bench.md, docs/cost.md).
 * @type {Record<Transport, { userBytes: number, pingMicros: number[], openMicros: number[] }>}
 */
const COSTS = {
  hold: { userBytes: 64, pingMicros: [4, 12], openMicros: [10, 23] },
  http: { userBytes: 10_600, pingMicros: [13, 26], openMicros: [50, 145] },
};
/** What TLS adds: a session, and a handshake when a stream is opened (docs/tls.md), from resumed on a fast machine to full on a slow one. */
const TLS = { userBytes: 100, openMicros: [100, 160] };
/** An idle socket, in the kernel (docs/cost.md). */
const KERNEL_BYTES = 5100;
/** A Node process that holds nothing yet. */
const PROCESS_BYTES = 45_000_000;
/** Threads of a Node process: its own, V8's, libuv's. */
const PROCESS_THREADS = 12;
/** Memory mappings of such a process, and of each additional thread: its stack, the guard page, its malloc arena. */
const PROCESS_MAPS = 2000;
const THREAD_MAPS = 4;
/** V8 maps its heap in chunks of this size. */
const HEAP_PIECE_BYTES = 262_144;
/** V8's default limit for a heap. */
const HEAP_CEILING_BYTES = 4e9;
/** Files that a process has open for itself. */
const PROCESS_FILES = 64;
/** The kernel's default for somaxconn since 5.4, and a backlog of handshakes that is enough for a quiet start. */
const FEWEST_WAITING = 4096;
const FEWEST_HANDSHAKES = 1024;
/** A listening socket is served at least this often, as we plan it: it may wait a quarter of a second. */
const WAITS_A_SECOND = 4;
/** Streams a drone opens from one address if it chooses the addresses itself (fleet/drone/params.js). */
const STREAMS_A_SOURCE = 8000;
/** The most shards of a worker of the hold transport (transport/index.js). */
const MOST_SHARDS = 255;
const FEWEST_DESCRIPTORS = 128;
const MOST_DESCRIPTORS = 2 ** 30;

/** @typedef {'hold' | 'http'} Transport */
/** @typedef {import('./kernel.js').Machine} Machine */

/**
 * @typedef {object} Wish
 * @property {number} streams
 * @property {Transport} transport
 * @property {number} pingIntervalMs
 * @property {number} openRate streams opened per second
 * @property {boolean} [isTls] whether the server speaks TLS
 * @property {boolean} isFleetHere whether the clients run on this machine too
 * @property {number} [sources] addresses that those clients connect from; 0, the default, means as many as they need
 * @property {number[]} [ports] that the server listens on
 * @property {number | 'auto'} [workers]
 * @property {number} [mostShards] of a worker, if the caller has tried it (transport/index.js)
 */

/**
 * @typedef {object} Needs
 * @property {Wish} wish
 * @property {number} ends of each connection that are on this machine: 1, or 2 with the clients
 * @property {import('./plan.js').Plan | null} plan null if there is none at this descriptor limit
 * @property {number} nofile file descriptors per process with which one worker per core is enough
 * @property {number} processes of server and clients
 * @property {number} shards of a worker
 * @property {number} files open at the same time
 * @property {number} waiting connections that may wait to be accepted
 * @property {number} handshakes in progress at the same time
 * @property {number} bytes
 * @property {number} streamBytes of one stream, both ends if both are here
 * @property {number} threads
 * @property {number} maps of one worker
 * @property {number} portsEach local ports used of each address of the clients
 * @property {number} pings a second
 * @property {{ low: number, high: number, pings: number }} cpu percent of one core; `pings` alone, at the least
 */

/** @param {Machine} machine @param {Wish} wish @returns {Needs} */
export function needsOf(machine, wish) {
  const { streams, isFleetHere, sources = 0, openRate } = wish;
  const ends = isFleetHere ? 2 : 1;
  const nofile = leastNofile(machine, wish);
  const plan = planHere(machine, wish);
  const { workers, shards } = plan ?? planAt(nofile, machine, wish) ?? { workers: machine.cores, shards: 1 };
  const processes = workers + ends;
  const userBytes = COSTS[wish.transport].userBytes + (wish.isTls ? TLS.userBytes : 0);
  const streamBytes = userBytes + KERNEL_BYTES + (isFleetHere ? COSTS.hold.userBytes + KERNEL_BYTES : 0);
  const burst = 2 ** Math.ceil(Math.log2(Math.max(1, openRate / WAITS_A_SECOND)));
  const heapBytes = heapBytesOf(wish, workers);
  return {
    wish,
    ends,
    plan,
    nofile,
    processes,
    shards,
    files: streams * ends + processes * PROCESS_FILES,
    waiting: Math.max(FEWEST_WAITING, burst),
    handshakes: Math.max(FEWEST_HANDSHAKES, burst),
    streamBytes,
    bytes: processes * PROCESS_BYTES + streams * streamBytes,
    threads: processes * PROCESS_THREADS + workers * shards,
    maps: Math.ceil(PROCESS_MAPS + (PROCESS_THREADS + shards) * THREAD_MAPS + heapBytes / HEAP_PIECE_BYTES),
    portsEach: sources === 0 ? Math.min(streams, STREAMS_A_SOURCE) : Math.ceil(streams / sources),
    pings: (streams / wish.pingIntervalMs) * 1000,
    cpu: cpuOf(wish, ends),
  };
}

/** @param {Wish} wish @param {number} workers @returns {number} bytes of the JS heap of each */
function heapBytesOf({ streams, transport }, workers) {
  if (transport === 'hold') return 0;
  return Math.min((streams / workers) * COSTS.http.userBytes, HEAP_CEILING_BYTES);
}

/** The client's end of a ping or an opening is assumed to cost the same again. @param {Wish} wish @param {number} ends */
function cpuOf({ streams, transport, pingIntervalMs, openRate, isTls }, ends) {
  const { pingMicros, openMicros } = COSTS[transport];
  const percent = (/** @type {number} */ at) => {
    const pings = (streams / pingIntervalMs) * 1000 * pingMicros[at];
    const opening = openMicros[at] + (isTls ? TLS.openMicros[at] : 0);
    return ((pings + openRate * opening) * ends) / 10_000;
  };
  const pings = ((streams / pingIntervalMs) * 1000 * pingMicros[0] * ends) / 10_000;
  return { low: percent(0), high: percent(1), pings };
}

/** @param {Machine} machine @param {Wish} wish @returns {Needs['plan']} null if nothing fits */
export function planHere(machine, wish) {
  return planAt(machine.nofile.hard, machine, wish);
}

/** @param {number} descriptorLimit @param {Machine} machine @param {Wish} wish @returns {Needs['plan']} */
function planAt(descriptorLimit, { cores, canUnshare }, wish) {
  const { streams, transport, workers = 'auto' } = wish;
  const shards = transport === 'hold' && canUnshare ? MOST_SHARDS : 1;
  try {
    return planWorkers({ workers, streams, cores, descriptorLimit, mostShards: wish.mostShards ?? shards });
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}

/**
 * The smallest nofile with which one worker per core, or the number of workers asked for, can hold the streams.
 * @param {Machine} machine @param {Wish} wish @returns {number}
 */
function leastNofile(machine, wish) {
  const workers = typeof wish.workers === 'number' ? wish.workers : machine.cores;
  let low = Math.max(FEWEST_DESCRIPTORS, Math.floor(wish.streams / workers / MOST_SHARDS));
  let high = MOST_DESCRIPTORS;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const plan = planAt(middle, machine, wish);
    if (plan && plan.workers <= workers) high = middle;
    else low = middle + 1;
  }
  return low;
}
