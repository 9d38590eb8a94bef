/*
 * Collects the sample of one second: the workers' snapshots, CPU and RSS of every process, and the host. Nothing here waits
 * longer than the deadline.
 */
import { performance } from 'node:perf_hooks';
import pidusage from 'pidusage';
import { isAlive } from '../lib/states.js';
import { readHost } from './host.js';

/** @typedef {import('../lib/counters.js').Snapshot} Snapshot */

/**
 * The workers, as the monitor sees them (`Workers` in primary/workers.js).
 * @typedef {object} Workers
 * @property {readonly Slot[]} slots
 * @property {{ bytes: number }} publications those that workers have not answered yet
 * @property {{ broker: { state?: NodeState } } | null} broker null until there is one
 * @property {{ count: number } | null} presence subscriptions that are listed; null if they are not
 * @property {import('../lib/counts.js').Counts} retired counts of workers that died
 * @property {(deadlineMs: number) => Promise<void>} sample asks each for its snapshot; resolves at the deadline at the latest
 *
 * @typedef {object} Slot
 * @property {number} id
 * @property {number} pid
 * @property {import('../lib/states.js').WorkerState} state
 * @property {number} askedId id of the request that it has not answered yet; 0 if there is none
 * @property {Snapshot | null} snapshot the last one
 * @property {Snapshot[]} unread taken from here
 */

/**
 * CPU and memory of a process, as the kernel counts them.
 * @typedef {{ cpuPercent: number, cpuSeconds: number, rssBytes: number }} ProcessUsage
 *
 * @typedef {object} WorkerSample
 * @property {number} id
 * @property {number} pid
 * @property {import('../lib/states.js').WorkerState} state
 * @property {boolean} late it did not answer by the deadline
 * @property {Snapshot | null} snapshot the last one
 * @property {Snapshot[]} unread those not used in a frame yet, oldest first
 * @property {ProcessUsage | null} usage null if the process is gone
 *
 * @typedef {{ isConnected: boolean, behind: number, lagMs: number, problem: string }} NodeState see broker/index.js
 *
 * @typedef {object} Sample
 * @property {number} timeMs since the epoch
 * @property {number} elapsedMs since the server started listening
 * @property {number} collectMs how long collecting took
 * @property {WorkerSample[]} workers
 * @property {import('../lib/counts.js').Counts} retired counts of workers that died
 * @property {number} queueBytes publications that workers have not answered yet
 * @property {number} subscriptions that are listed
 * @property {NodeState | null} node how this server is connected to others; null if it is alone
 * @property {{ pid: number } & ProcessUsage & import('../lib/sampler.js').ProcessSample} primary
 * @property {import('./host.js').Host | null} host
 * @property {import('./csv.js').LogStatus | null} log
 */

// Otherwise it prints errors to the terminal.
process.env.PIDUSAGE_SILENT = '1';

const NO_USAGE = { cpuPercent: 0, cpuSeconds: 0, rssBytes: 0 };

/**
 * @param {object} sources
 * @param {Workers} sources.workers
 * @param {import('../lib/sampler.js').Sampler} sources.sampler of the primary
 * @param {number} sources.startedMs on performance's clock
 * @param {number} sources.deadlineMs
 * @param {import('./csv.js').LogStatus | null} sources.log
 * @returns {Promise<Sample>}
 */
export async function collect({ workers, sampler, startedMs, deadlineMs, log }) {
  const beginMs = performance.now();
  const timeMs = Date.now();
  const pids = workers.slots.filter(isAlive).map(({ pid }) => pid);
  const [usage, host] = await Promise.all([
    readUsage([process.pid, ...pids]),
    readHost(),
    workers.sample(deadlineMs),
  ]);
  return {
    timeMs,
    elapsedMs: beginMs - startedMs,
    collectMs: performance.now() - beginMs,
    workers: workers.slots.map((slot) => sampleOf(slot, usage.get(slot.pid) ?? null)),
    retired: structuredClone(workers.retired),
    queueBytes: workers.publications.bytes,
    subscriptions: workers.presence?.count ?? 0,
    node: workers.broker?.broker.state ?? null,
    primary: { pid: process.pid, ...(usage.get(process.pid) ?? NO_USAGE), ...sampler.take() },
    host,
    log,
  };
}

/** @param {Slot} slot @param {ProcessUsage | null} usage @returns {WorkerSample} */
function sampleOf(slot, usage) {
  const { id, pid, state, snapshot } = slot;
  return { id, pid, state, late: slot.askedId !== 0, snapshot, unread: slot.unread.splice(0), usage };
}

/** @param {number[]} pids @returns {Promise<Map<number, ProcessUsage>>} without processes that are gone */
async function readUsage(pids) {
  /** @type {Record<string, { cpu: number, ctime: number, memory: number } | null>} */
  const found = await pidusage(pids).catch(() => ({}));
  const rows = Object.entries(found).flatMap(([pid, usage]) => {
    if (!usage) return [];
    const { cpu, ctime, memory } = usage;
    return [
      /** @type {const} */ ([Number(pid), { cpuPercent: cpu, cpuSeconds: ctime / 1000, rssBytes: memory }]),
    ];
  });
  return new Map(rows);
}
