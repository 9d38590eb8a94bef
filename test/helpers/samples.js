/*
 * Samples of a server, for tests of what is made from them.
 */
import { noCounters } from '../../lib/counters.js';
import { noCounts } from '../../lib/counts.js';
import { Histogram } from '../../lib/histogram.js';
import { noHubCounters } from '../../lib/hubcounters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from '../../lib/reasons.js';
import { GC_KINDS } from '../../lib/sampler.js';
import { deriveReading, frameOf } from '../../monitor/frame.js';

/** @param {number[]} values in the unit @param {import('../../lib/histogram.js').RecordedUnit} [unit] */
export function encoded(values, unit = 'µs') {
  const histogram = new Histogram(unit);
  for (const value of values) histogram.record(value);
  return histogram.take();
}

/** @param {Partial<import('../../lib/counters.js').Snapshot>} [values] */
export function snapshot(values) {
  return {
    ...noCounters(),
    ...noHubCounters(),
    closed: zeroes(CLOSE_REASONS),
    refused: zeroes(REFUSAL_STATUSES),
    lateness: encoded([]),
    openCpu: encoded([], 'ns'),
    pingCpu: encoded([], 'ns'),
    deliveryCpu: encoded([], 'ns'),
    ticks: encoded([10_000, 10_000, 10_000]),
    heapUsedBytes: 5e6,
    heapTotalBytes: 10e6,
    heapPhysicalBytes: 10e6,
    externalBytes: 1e6,
    gcCount: zeroes(GC_KINDS),
    gcMs: zeroes(GC_KINDS),
    ...values,
  };
}

/**
 * @param {number} id
 * @param {Partial<import('../../lib/counters.js').Snapshot>} [values]
 * @param {Partial<import('../../monitor/collect.js').WorkerSample>} [rest]
 * @returns {import('../../monitor/collect.js').WorkerSample}
 */
export function workerSample(id, values, rest) {
  const taken = snapshot(values);
  return {
    id,
    pid: 1000 + id,
    state: 'ready',
    late: false,
    snapshot: taken,
    unread: [taken],
    usage: { cpuPercent: 5, cpuSeconds: 1, rssBytes: 50e6 },
    ...rest,
  };
}

/** @param {Partial<import('../../monitor/collect.js').Sample>} [values] @returns {import('../../monitor/collect.js').Sample} */
export function sample(values) {
  return {
    timeMs: Date.UTC(2026, 0, 2, 3, 4, 5),
    elapsedMs: 0,
    collectMs: 2,
    workers: [workerSample(1), workerSample(2)],
    retired: noCounts(),
    queueBytes: 0,
    subscriptions: 0,
    node: null,
    primary: { pid: 999, cpuPercent: 3, cpuSeconds: 1, rssBytes: 70e6, ...snapshot() },
    host: host(),
    log: null,
    ...values,
  };
}

/**
 * @param {{ user?: number, sys?: number, idle?: number, slabBytes?: number, bufferBytes?: number, tcpSockets?: number }} [values]
 * @returns {import('../../monitor/host.js').Host}
 */
export function host({
  user = 100,
  sys = 100,
  idle = 800,
  slabBytes = 100e6,
  bufferBytes = 1e6,
  tcpSockets = 4,
} = {}) {
  return {
    cpu: { cores: 2, user, sys, idle, total: user + sys + idle },
    memory: {
      totalBytes: 24e9,
      usedBytes: 1e9,
      freeBytes: 20e9,
      availableBytes: 22e9,
      cachedBytes: 3e9,
      slabBytes,
    },
    sockets: { tcp: tcpSockets, bufferBytes },
  };
}

/** @param {import('../../monitor/collect.js').Sample[]} samples @returns {import('../../monitor/frame.js').Frame} of the last */
export function frameAfter(...samples) {
  /** @type {import('../../monitor/frame.js').Reading | null} */
  let reading = null;
  for (const one of samples) reading = deriveReading(reading, one);
  return frameOf(/** @type {import('../../monitor/frame.js').Reading} */ (reading));
}
