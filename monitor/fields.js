/*
 * The one table of fields. Every view is made from it: the columns of the CSV, the totals and workers of a
 * frame, the metrics of Prometheus. The order of the rows is the order of the columns.
 */
import { closedOf, lostOf, totalOf } from '../lib/counts.js';
import { HUB_COUNTS } from '../lib/hubcounters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES } from '../lib/reasons.js';
import { GC_KINDS } from '../lib/sampler.js';
import { count, counter, mean, merged, percentile, rate, row, sum, sumOver, whole, worst } from './kinds.js';

/** @typedef {number | string | null} Value null if unknown */
/** @typedef {import('./frame.js').Reading} Reading */
/** @typedef {import('./frame.js').WorkerReading} WorkerReading */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {'ISO 8601' | 'µs' | 'ms' | 's' | 'bytes' | 'bytes/s' | '1/s' | '%' | 'count'} unit
 * @property {'gauge' | 'counter'} kind
 * @property {string} help
 * @property {((worker: WorkerReading) => number | null) | null} worker its value for one worker; null if
 *   there is none
 * @property {(reading: Reading) => Value} total its value for the whole
 * @property {{ name: string, labels: Record<string, string> } | null} metric its name for Prometheus; units
 *   become base units there
 */

/** @type {Field[]} */
// biome-ignore format: a table reads best with one row per line
export const FIELDS = [
  {
    ...row('time', 'ISO 8601', 'gauge', 'when the frame was sampled, UTC'),
    total: (r) => new Date(r.timeMs).toISOString(),
  },
  whole('elapsedMs', 'ms', 'since the server started listening', (r) => Math.round(r.elapsedMs)),
  whole('workers', 'count', 'workers that listen', (r) => r.workers.filter((w) => w.state === 'ready').length, 'holdfast_workers'),
  whole('workersPlanned', 'count', 'workers that should listen', (r) => r.workers.length, 'holdfast_workers_planned'),
  whole('workersLate', 'count', 'workers that did not report in time', (r) => r.workers.filter((w) => w.late).length, 'holdfast_workers_late'),

  count('streams', 'holdfast_streams'),
  count('inJs', 'holdfast_streams_in_js'),
  count('connections', 'holdfast_connections'),
  count('opened', 'holdfast_streams_opened_total'),
  whole('closed', 'count', 'streams closed, not counting lost ones', (r) => closedOf(r.counts)),
  ...CLOSE_REASONS.map((reason) => ({
    ...counter(`closed${camel(reason)}`, 'count', `streams closed: ${reason}`, (w) => w.snapshot?.closed[reason] ?? 0, (r) => r.counts.closed[reason]),
    metric: { name: 'holdfast_streams_closed_total', labels: { reason } },
  })),
  {
    ...whole('lost', 'count', 'streams lost when a worker died or a shard failed', (r) => lostOf(r.counts), 'holdfast_streams_lost_total'),
    kind: 'counter',
  },
  ...REFUSAL_STATUSES.map((status) => ({
    ...counter(`refused${status}`, 'count', `requests refused with ${status}`, (w) => w.snapshot?.refused[status] ?? 0, (r) => r.counts.refused[status]),
    metric: { name: 'holdfast_requests_refused_total', labels: { status: String(status) } },
  })),
  count('cut', 'holdfast_connections_cut_total'),
  count('shardFailures', 'holdfast_shard_failures_total'),
  count('handshakes', 'holdfast_tls_handshakes_total'),
  count('resumed', 'holdfast_tls_handshakes_resumed_total'),
  count('handshakeFailures', 'holdfast_tls_handshake_failures_total'),
  rate('openedPerSecond', '1/s', 'streams opened per second', 'opened'),
  rate('closedPerSecond', '1/s', 'streams closed per second, lost ones included', 'ended'),
  count('pings', 'holdfast_pings_total'),
  rate('pingsPerSecond', '1/s', 'pings written per second', 'pings'),
  count('deliveries', 'holdfast_deliveries_total'),
  rate('deliveriesPerSecond', '1/s', 'messages written to streams per second', 'deliveries'),
  count('bytesWritten', 'holdfast_written_bytes_total'),
  rate('bytesPerSecond', 'bytes/s', 'bytes written to streams per second', 'bytesWritten'),
  count('backlogBytes', 'holdfast_backlog_bytes'),
  count('queuedBytes', 'holdfast_queued_bytes'),
  whole('queueBytes', 'bytes', 'publications in the primary that workers have not delivered yet', (r) => r.queueBytes, 'holdfast_primary_queue_bytes'),

  count('updates', 'holdfast_hub_streams'),
  count('hubOpened', 'holdfast_hub_streams_opened_total'),
  count('hubPublished', 'holdfast_hub_publications_total'),
  count('hubDuplicates', 'holdfast_hub_duplicates_total'),
  count('hubWaiting', 'holdfast_hub_waiting'),
  count('hubRecoveries', 'holdfast_hub_recoveries_total'),
  count('hubEarliest', 'holdfast_hub_recoveries_earliest_total'),
  count('hubReplayed', 'holdfast_hub_replayed_total'),
  count('hubTokensRefused', 'holdfast_hub_tokens_refused_total'),
  ...HUB_COUNTS.flatMap((row) => ('limit' in row ? [limited(row.name, row.limit)] : [])),
  whole('natsConnected', 'count', 'whether this server follows the stream of NATS: 1 or 0; unknown without --nats', (r) => (r.node ? Number(r.node.isConnected) : null), 'holdfast_nats_connected'),
  whole('natsBehind', 'count', 'publications in the stream of NATS that this server does not have yet', (r) => r.node?.behind ?? null, 'holdfast_nats_behind'),
  whole('natsLagMs', 'ms', 'how long ago this server last had everything from NATS; 0 if it has', (r) => r.node?.lagMs ?? null, 'holdfast_nats_lag_seconds'),
  whole('hubSubscriptions', 'count', 'subscriptions on the list of --subscriptions', (r) => r.subscriptions, 'holdfast_hub_subscriptions'),

  whole('cpuUserPercent', '%', 'CPU of the machine in user mode; 100 is one core', (r) => r.cpu?.userPercent ?? null),
  whole('cpuSysPercent', '%', 'CPU of the machine in the kernel; 100 is one core', (r) => r.cpu?.sysPercent ?? null),
  whole('cpuIdlePercent', '%', 'idle CPU of the machine; 100 is one core', (r) => r.cpu?.idlePercent ?? null),
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

  whole('memoryUsedBytes', 'bytes', 'memory of the machine that is neither free nor cache', (r) => r.host?.memory.usedBytes ?? null, 'holdfast_machine_memory_used_bytes'),
  whole('memoryFreeBytes', 'bytes', 'free memory of the machine', (r) => r.host?.memory.freeBytes ?? null, 'holdfast_machine_memory_free_bytes'),
  whole('memoryCachedBytes', 'bytes', 'buffers and cache of the machine', (r) => r.host?.memory.cachedBytes ?? null, 'holdfast_machine_memory_cached_bytes'),
  whole('slabBytes', 'bytes', 'kernel objects of the machine, sockets among them', (r) => r.host?.memory.slabBytes ?? null, 'holdfast_machine_slab_bytes'),
  whole('kernelSocketBytes', 'bytes', 'kernel socket buffers of the machine', (r) => r.host?.sockets.bufferBytes ?? null, 'holdfast_machine_socket_buffer_bytes'),
  whole('tcpSockets', 'count', 'TCP sockets of the machine, including those of local clients', (r) => r.host?.sockets.tcp ?? null),
  sum('rssBytes', 'bytes', 'gauge', 'resident memory of the workers', (w) => w.usage?.rssBytes ?? null, 'process_resident_memory_bytes'),
  sum('heapUsedBytes', 'bytes', 'gauge', 'JS heap of the workers in use', (w) => w.snapshot?.heapUsedBytes ?? null, 'nodejs_heap_size_used_bytes'),
  sum('heapTotalBytes', 'bytes', 'gauge', 'JS heap of the workers', (w) => w.snapshot?.heapTotalBytes ?? null, 'nodejs_heap_size_total_bytes'),
  sum('heapPhysicalBytes', 'bytes', 'gauge', 'resident part of the JS heap of the workers', (w) => w.snapshot?.heapPhysicalBytes ?? null),
  sum('externalBytes', 'bytes', 'gauge', 'memory outside the heap owned by JS objects of the workers', (w) => w.snapshot?.externalBytes ?? null, 'nodejs_external_memory_bytes'),
  sum('nativeBytes', 'bytes', 'gauge', 'resident memory of the workers minus their JS heap', nativeBytesOf),
  whole('primaryRssBytes', 'bytes', 'resident memory of the primary', (r) => r.primary.rssBytes, 'holdfast_primary_resident_memory_bytes'),
  whole('primaryHeapUsedBytes', 'bytes', 'JS heap of the primary in use', (r) => r.primary.heapUsedBytes),
  whole('streamHeapBytes', 'bytes', 'JS heap per stream: growth of heapPhysicalBytes since the first stream, divided by streams; unknown if it usually varies more than that', (r) => r.cost.heap?.bytes ?? null, 'holdfast_stream_heap_bytes'),
  whole('streamHeapMostBytes', 'bytes', 'JS heap per stream, at most', (r) => r.cost.heap?.mostBytes ?? null, 'holdfast_stream_heap_most_bytes'),
  whole('streamNativeBytes', 'bytes', 'native memory per stream: growth of nativeBytes since the first stream, divided by streams; unknown if it usually varies more than that', (r) => r.cost.native?.bytes ?? null, 'holdfast_stream_native_bytes'),
  whole('streamNativeMostBytes', 'bytes', 'native memory per stream, at most', (r) => r.cost.native?.mostBytes ?? null, 'holdfast_stream_native_most_bytes'),
  whole('streamKernelBytes', 'bytes', 'kernel memory per stream: growth of slab and socket buffers per new TCP socket of the machine, median of the frames with new ones; unknown if other programs change it by more than that', (r) => r.cost.kernel?.bytes ?? null, 'holdfast_stream_kernel_bytes'),
  whole('streamKernelMostBytes', 'bytes', 'kernel memory per stream, at most', (r) => r.cost.kernel?.mostBytes ?? null, 'holdfast_stream_kernel_most_bytes'),

  merged('tickAvgMs', 'ms', 'tick of the workers, average', 'ticks', mean, 'nodejs_eventloop_lag_mean_seconds'),
  merged('tickP90Ms', 'ms', 'tick of the workers, 90th percentile', 'ticks', percentile(90), 'nodejs_eventloop_lag_p90_seconds'),
  merged('tickP99Ms', 'ms', 'tick of the workers, 99th percentile', 'ticks', percentile(99), 'nodejs_eventloop_lag_p99_seconds'),
  merged('tickMaxMs', 'ms', 'tick of the workers, maximum', 'ticks', worst, 'nodejs_eventloop_lag_max_seconds'),
  merged('pingLatenessP50Ms', 'ms', 'lateness of pings, median', 'lateness', percentile(50), 'holdfast_ping_lateness_p50_seconds'),
  merged('pingLatenessP99Ms', 'ms', 'lateness of pings, 99th percentile', 'lateness', percentile(99), 'holdfast_ping_lateness_p99_seconds'),
  merged('pingLatenessMaxMs', 'ms', 'lateness of pings, maximum', 'lateness', worst, 'holdfast_ping_lateness_max_seconds'),
  merged('openCpuUs', 'µs', 'CPU to open a stream, average; hold transport', 'openCpu', mean, 'holdfast_open_cpu_mean_seconds'),
  merged('openCpuP99Us', 'µs', 'CPU to open a stream, 99th percentile; hold transport', 'openCpu', percentile(99), 'holdfast_open_cpu_p99_seconds'),
  merged('pingCpuUs', 'µs', 'CPU per ping, average; hold transport', 'pingCpu', mean, 'holdfast_ping_cpu_mean_seconds'),
  merged('pingCpuP99Us', 'µs', 'CPU per ping, 99th percentile; hold transport', 'pingCpu', percentile(99), 'holdfast_ping_cpu_p99_seconds'),
  merged('deliveryCpuUs', 'µs', 'CPU per delivery, average; hold transport', 'deliveryCpu', mean, 'holdfast_delivery_cpu_mean_seconds'),
  merged('deliveryCpuP99Us', 'µs', 'CPU per delivery, 99th percentile; hold transport', 'deliveryCpu', percentile(99), 'holdfast_delivery_cpu_p99_seconds'),
  counter('gcCount', 'count', 'garbage collections of the workers', (w) => totalOf(w.snapshot?.gcCount ?? {}), (r) => r.counts.gcCount),
  counter('gcMs', 'ms', 'time in garbage collections of the workers', (w) => totalOf(w.snapshot?.gcMs ?? {}), (r) => r.counts.gcMs),
  {
    ...whole('logRowsDropped', 'count', 'rows of the CSV that could not be written', (r) => r.log?.rowsDropped ?? 0, 'holdfast_log_rows_dropped_total'),
    kind: 'counter',
  },
  whole('frameMs', 'ms', 'time to collect the frame', (r) => r.collectMs, 'holdfast_frame_seconds'),
];

/**
 * Fields only for Prometheus: they are split by a label that the totals don't need.
 * @type {Field[]}
 */
// biome-ignore format: the same
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

/** @param {WorkerReading} worker @returns {number | null} */
function nativeBytesOf({ usage, snapshot }) {
  return usage && snapshot ? usage.rssBytes - snapshot.heapPhysicalBytes : null;
}

/** @param {import('../lib/hubcounters.js').HubLimitName} name @param {string} limit @returns {Field} */
function limited(name, limit) {
  return { ...count(name, ''), metric: { name: 'holdfast_hub_limited_total', labels: { limit } } };
}

/** @param {string} words 'client-gone' → 'ClientGone' */
function camel(words) {
  return words.replace(/(^|-)(.)/g, (_, __, letter) => letter.toUpperCase());
}
