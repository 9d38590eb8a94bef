/*
 * The one table of fields. Every view is made from it: the columns of the CSV, the totals and workers of a
 * frame, the metrics of Prometheus. The order is the order of the columns.
 */
import { totalOf } from '../lib/counts.js';
import { CLOSE_REASONS, REFUSAL_STATUSES } from '../lib/reasons.js';
import { GC_KINDS } from '../lib/sampler.js';

/** @typedef {number | string | null} Value null where it is not known */
/** @typedef {import('./frame.js').Reading} Reading */
/** @typedef {import('./frame.js').WorkerReading} WorkerReading */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {'ISO 8601' | 'µs' | 'ms' | 's' | 'bytes' | 'bytes/s' | '1/s' | '%' | 'count'} unit
 * @property {'gauge' | 'counter'} kind
 * @property {string} help
 * @property {((worker: WorkerReading) => number | null) | null} worker its value for one worker, null where
 *   it has none
 * @property {(reading: Reading) => Value} total its value for the whole
 * @property {{ name: string, labels: Record<string, string> } | null} metric its name for Prometheus; units
 *   become base units there
 */

/** @type {Field[]} */
// biome-ignore format: a table reads best with a row a line
export const FIELDS = [
  {
    ...row('time', 'ISO 8601', 'gauge', 'when the second was sampled, UTC'),
    total: (r) => new Date(r.timeMs).toISOString(),
  },
  whole('elapsedMs', 'ms', 'since the server listened', (r) => Math.round(r.elapsedMs)),
  whole('workers', 'count', 'workers that listen', (r) => r.workers.filter((w) => w.state === 'ready').length, 'holdfast_workers'),
  whole('workersLate', 'count', 'workers that did not answer in time', (r) => r.workers.filter((w) => w.late).length, 'holdfast_workers_late'),

  sum('streams', 'count', 'gauge', 'open streams', (w) => w.snapshot?.streams ?? 0, 'holdfast_streams'),
  counter('opened', 'count', 'streams opened', (w) => w.snapshot?.opened ?? 0, (r) => r.counts.opened, 'holdfast_streams_opened_total'),
  whole('closed', 'count', 'streams closed, lost ones not counted', (r) => totalOf(r.counts.closed)),
  ...CLOSE_REASONS.map((reason) => ({
    ...counter(`closed${camel(reason)}`, 'count', `streams closed: ${reason}`, (w) => w.snapshot?.closed[reason] ?? 0, (r) => r.counts.closed[reason]),
    metric: { name: 'holdfast_streams_closed_total', labels: { reason } },
  })),
  {
    ...whole('lost', 'count', 'streams lost with a worker that died', (r) => r.counts.lost, 'holdfast_streams_lost_total'),
    kind: 'counter',
  },
  ...REFUSAL_STATUSES.map((status) => ({
    ...counter(`refused${status}`, 'count', `requests refused with ${status}`, (w) => w.snapshot?.refused[status] ?? 0, (r) => r.counts.refused[status]),
    metric: { name: 'holdfast_requests_refused_total', labels: { status: String(status) } },
  })),
  counter('cut', 'count', 'connections over the limit, closed without an answer', (w) => w.snapshot?.cut ?? 0, (r) => r.counts.cut, 'holdfast_connections_cut_total'),
  rate('openedPerSecond', '1/s', 'streams opened a second', 'opened'),
  rate('closedPerSecond', '1/s', 'streams closed a second, lost ones counted', 'ended'),
  counter('pings', 'count', 'pings written', (w) => w.snapshot?.pings ?? 0, (r) => r.counts.pings, 'holdfast_pings_total'),
  rate('pingsPerSecond', '1/s', 'pings written a second', 'pings'),
  counter('deliveries', 'count', 'published messages written to streams', (w) => w.snapshot?.deliveries ?? 0, (r) => r.counts.deliveries, 'holdfast_deliveries_total'),
  rate('deliveriesPerSecond', '1/s', 'published messages written a second', 'deliveries'),
  counter('bytesWritten', 'bytes', 'bytes written to streams', (w) => w.snapshot?.bytesWritten ?? 0, (r) => r.counts.bytesWritten, 'holdfast_written_bytes_total'),
  rate('bytesPerSecond', 'bytes/s', 'bytes written to streams a second', 'bytesWritten'),
  sum('backlogBytes', 'bytes', 'gauge', 'bytes that the kernel refused and that wait', (w) => w.snapshot?.backlogBytes ?? 0, 'holdfast_backlog_bytes'),

  whole('cpuUserPercent', '%', 'CPU of the machine in user mode; 100 is one core', (r) => r.cpu?.userPercent ?? null),
  whole('cpuSysPercent', '%', 'CPU of the machine in the kernel; 100 is one core', (r) => r.cpu?.sysPercent ?? null),
  whole('cpuIdlePercent', '%', 'CPU of the machine that is idle; 100 is one core', (r) => r.cpu?.idlePercent ?? null),
  {
    ...row('processCpuPercent', '%', 'gauge', 'CPU of the primary and the workers; 100 is one core'),
    worker: (w) => w.usage?.cpuPercent ?? null,
    total: (r) => r.primary.cpuPercent + (sumOver(r, (w) => w.usage?.cpuPercent ?? 0) ?? 0),
  },
  {
    ...row('processCpuSeconds', 's', 'counter', 'CPU time of the primary and the workers, dead ones included'),
    worker: (w) => w.usage?.cpuSeconds ?? null,
    total: (r) => [...r.cpuSecondsOf.values()].reduce((sum, seconds) => sum + seconds, 0),
    metric: { name: 'process_cpu_seconds_total', labels: {} },
  },
  whole('primaryCpuPercent', '%', 'CPU of the primary alone', (r) => r.primary.cpuPercent),

  whole('memoryUsedBytes', 'bytes', 'memory of the machine that is neither free nor cache', (r) => r.host?.memory.usedBytes ?? null),
  whole('memoryFreeBytes', 'bytes', 'free memory of the machine', (r) => r.host?.memory.freeBytes ?? null),
  whole('memoryCachedBytes', 'bytes', 'buffers and cache of the machine', (r) => r.host?.memory.cachedBytes ?? null),
  whole('slabBytes', 'bytes', 'kernel objects of the machine (sockets are among them)', (r) => r.host?.memory.slabBytes ?? null),
  whole('kernelSocketBytes', 'bytes', 'kernel socket buffers of the machine', (r) => r.host?.sockets.bufferBytes ?? null),
  whole('tcpSockets', 'count', 'TCP sockets of the machine, those of clients here included', (r) => r.host?.sockets.tcp ?? null),
  sum('rssBytes', 'bytes', 'gauge', 'resident memory of the workers', (w) => w.usage?.rssBytes ?? null, 'process_resident_memory_bytes'),
  sum('heapUsedBytes', 'bytes', 'gauge', 'JS heap of the workers in use', (w) => w.snapshot?.heapUsedBytes ?? null, 'nodejs_heap_size_used_bytes'),
  sum('heapTotalBytes', 'bytes', 'gauge', 'JS heap of the workers', (w) => w.snapshot?.heapTotalBytes ?? null, 'nodejs_heap_size_total_bytes'),
  sum('heapPhysicalBytes', 'bytes', 'gauge', 'JS heap of the workers that is resident', (w) => w.snapshot?.heapPhysicalBytes ?? null),
  sum('externalBytes', 'bytes', 'gauge', 'memory outside the heap that JS objects of the workers own', (w) => w.snapshot?.externalBytes ?? null, 'nodejs_external_memory_bytes'),
  sum('nativeBytes', 'bytes', 'gauge', 'resident memory of the workers less the JS heap in it', nativeBytesOf),
  whole('primaryRssBytes', 'bytes', 'resident memory of the primary', (r) => r.primary.rssBytes),
  whole('primaryHeapUsedBytes', 'bytes', 'JS heap of the primary in use', (r) => r.primary.heapUsedBytes),
  whole('streamHeapBytes', 'bytes', 'JS heap a stream: heapPhysicalBytes since the first stream, by streams', (r) => r.cost?.heapBytes ?? null, 'holdfast_stream_heap_bytes'),
  whole('streamNativeBytes', 'bytes', 'native memory a stream: nativeBytes since the first stream, by streams', (r) => r.cost?.nativeBytes ?? null, 'holdfast_stream_native_bytes'),
  whole('streamKernelBytes', 'bytes', 'kernel memory a stream: slab and socket buffers since the first stream, by sockets (those of clients here share it)', (r) => r.cost?.kernelBytes ?? null, 'holdfast_stream_kernel_bytes'),

  merged('tickAvgMs', 'tick of the workers, mean', 'ticks', (h) => h.meanMs(), 'nodejs_eventloop_lag_mean_seconds'),
  merged('tickP90Ms', 'tick of the workers, 90th percentile', 'ticks', (h) => h.percentileMs(0.9), 'nodejs_eventloop_lag_p90_seconds'),
  merged('tickP99Ms', 'tick of the workers, 99th percentile', 'ticks', (h) => h.percentileMs(0.99), 'nodejs_eventloop_lag_p99_seconds'),
  merged('tickMaxMs', 'tick of the workers, the worst', 'ticks', (h) => h.maxMs(), 'nodejs_eventloop_lag_max_seconds'),
  merged('pingLatenessP50Ms', 'lateness of pings, median', 'lateness', (h) => h.percentileMs(0.5), 'holdfast_ping_lateness_p50_seconds'),
  merged('pingLatenessP99Ms', 'lateness of pings, 99th percentile', 'lateness', (h) => h.percentileMs(0.99), 'holdfast_ping_lateness_p99_seconds'),
  merged('pingLatenessMaxMs', 'lateness of pings, the worst', 'lateness', (h) => h.maxMs(), 'holdfast_ping_lateness_max_seconds'),
  cpu('openCpuUs', 'CPU to open a stream, mean', 'openCpu', (h) => h.meanMs(), 'holdfast_open_cpu_mean_seconds'),
  cpu('openCpuP99Us', 'CPU to open a stream, 99th percentile', 'openCpu', (h) => h.percentileMs(0.99), 'holdfast_open_cpu_p99_seconds'),
  cpu('pingCpuUs', 'CPU of a ping, mean', 'pingCpu', (h) => h.meanMs(), 'holdfast_ping_cpu_mean_seconds'),
  cpu('pingCpuP99Us', 'CPU of a ping, 99th percentile', 'pingCpu', (h) => h.percentileMs(0.99), 'holdfast_ping_cpu_p99_seconds'),
  cpu('deliveryCpuUs', 'CPU of a delivery, mean', 'deliveryCpu', (h) => h.meanMs(), 'holdfast_delivery_cpu_mean_seconds'),
  cpu('deliveryCpuP99Us', 'CPU of a delivery, 99th percentile', 'deliveryCpu', (h) => h.percentileMs(0.99), 'holdfast_delivery_cpu_p99_seconds'),
  counter('gcCount', 'count', 'garbage collections of the workers', (w) => totalOf(w.snapshot?.gcCount ?? {}), (r) => r.counts.gcCount),
  counter('gcMs', 'ms', 'time in garbage collections of the workers', (w) => totalOf(w.snapshot?.gcMs ?? {}), (r) => r.counts.gcMs),
  whole('logRowsDropped', 'count', 'rows of the CSV that the disk did not take', (r) => r.log?.rowsDropped ?? 0),
  whole('frameMs', 'ms', 'from asking the workers to having all answers', (r) => r.collectMs, 'holdfast_frame_seconds'),
];

/**
 * Fields that only Prometheus has, for they are split by a label that the totals don't need.
 * @type {Field[]}
 */
// biome-ignore format: likewise
export const METRICS_ONLY = GC_KINDS.flatMap((kind) => [
  {
    ...counter(`gcCount${camel(kind)}`, 'count', 'garbage collections by kind', (w) => w.snapshot?.gcCount[kind] ?? 0, () => null),
    metric: { name: 'holdfast_gc_runs_total', labels: { kind } },
  },
  {
    ...counter(`gcMs${camel(kind)}`, 'ms', 'time in garbage collections by kind', (w) => w.snapshot?.gcMs[kind] ?? 0, () => null),
    metric: { name: 'holdfast_gc_seconds_total', labels: { kind } },
  },
]);

/**
 * @param {string} name @param {Field['unit']} unit @param {Field['kind']} kind @param {string} help
 * @param {string} [metric]
 * @returns {Field}
 */
function row(name, unit, kind, help, metric) {
  return {
    name,
    unit,
    kind,
    help,
    worker: null,
    total: () => null,
    metric: metric ? { name: metric, labels: {} } : null,
  };
}

/**
 * A value of the whole alone.
 * @param {string} name @param {Field['unit']} unit @param {string} help @param {(reading: Reading) => Value} total
 * @param {string} [metric]
 * @returns {Field}
 */
function whole(name, unit, help, total, metric) {
  return { ...row(name, unit, 'gauge', help, metric), total };
}

/**
 * A value of each worker whose total is the sum.
 * @param {string} name @param {Field['unit']} unit @param {Field['kind']} kind @param {string} help
 * @param {(worker: WorkerReading) => number | null} worker @param {string} [metric]
 * @returns {Field}
 */
function sum(name, unit, kind, help, worker, metric) {
  return { ...row(name, unit, kind, help, metric), worker, total: (reading) => sumOver(reading, worker) };
}

/**
 * A count of each worker; the total has those of dead workers in it, so that it never falls.
 * @param {string} name @param {Field['unit']} unit @param {string} help
 * @param {(worker: WorkerReading) => number} worker @param {(reading: Reading) => Value} total
 * @param {string} [metric]
 * @returns {Field}
 */
function counter(name, unit, help, worker, total, metric) {
  return { ...row(name, unit, 'counter', help, metric), worker, total };
}

/**
 * How fast a count of the whole grew since the last frame.
 * @param {string} name @param {Field['unit']} unit @param {string} help @param {import('./frame.js').RateName} of
 * @returns {Field}
 */
function rate(name, unit, help, of) {
  return whole(name, unit, help, (reading) => reading.rates[of]);
}

/**
 * A figure of a distribution; that of the whole is of the merged histograms.
 * @param {string} name @param {string} help @param {import('./frame.js').HistogramName} of
 * @param {(histogram: import('../lib/histogram.js').Histogram) => number} figure @param {string} metric
 * @returns {Field}
 */
function merged(name, help, of, figure, metric) {
  const read = (/** @type {WorkerReading | Reading} */ owner) =>
    owner[of].count === 0 ? null : figure(owner[of]);
  return { ...row(name, 'ms', 'gauge', help, metric), worker: read, total: read };
}

/**
 * CPU of the threads that hold the streams, by what it was spent on. Their histograms are of ns, which a histogram
 * of µs takes for a thousand times as much: its ms are our µs.
 * @param {string} name @param {string} help @param {import('./frame.js').HistogramName} of
 * @param {(histogram: import('../lib/histogram.js').Histogram) => number} figure @param {string} metric
 * @returns {Field}
 */
function cpu(name, help, of, figure, metric) {
  return { ...merged(name, `${help}; hold transport`, of, figure, metric), unit: 'µs' };
}

/**
 * @param {Reading} reading @param {(worker: WorkerReading) => number | null} value
 * @returns {number | null} null where no worker has one
 */
function sumOver({ workers }, value) {
  const values = workers.map(value).filter((one) => one !== null);
  return values.length === 0 ? null : values.reduce((total, one) => total + one, 0);
}

/** @param {WorkerReading} worker @returns {number | null} */
function nativeBytesOf({ usage, snapshot }) {
  return usage && snapshot ? usage.rssBytes - snapshot.heapPhysicalBytes : null;
}

/** @param {string} words 'client-gone' → 'ClientGone' */
function camel(words) {
  return words.replace(/(^|-)(.)/g, (_, __, letter) => letter.toUpperCase());
}
