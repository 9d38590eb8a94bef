/*
 * What the dashboard for Grafana shows: rows of panels. dashboard.js makes JSON of it.
 *
 * In expressions, {} stands for the servers that are chosen on top of the dashboard, and {reason="slow"} for some of their series.
 */

/**
 * @typedef {object} Panel
 * @property {string} title
 * @property {string} help
 * @property {string} unit of Grafana
 * @property {[expression: string, legend: string][]} shows
 * @property {'timeseries' | 'stat' | 'heatmap'} [type] timeseries by default
 * @property {boolean} [isStacked]
 * @property {boolean} [isLog]
 * @property {number} [width] of 24
 *
 * @typedef {{ title: string, panels: Panel[] }} Row
 */

const PER_SERVER = '{{instance}}';

/** @param {string} metric of a histogram @param {number} quantile */
const quantile = (metric, quantile) =>
  `histogram_quantile(${quantile}, sum by (instance, le) (rate(${metric}_bucket{}[$__rate_interval])))`;

/** @param {string} metric a counter @param {string} [by] */
const rate = (metric, by = 'instance') => `sum by (${by}) (rate(${metric}[$__rate_interval]))`;

/** @param {string} metric a gauge */
const sum = (metric) => `sum by (instance) (${metric})`;

/** @param {string} metric a histogram @returns {[string, string][]} */
const quantiles = (metric) =>
  [0.5, 0.9, 0.99, 0.999].map((one) => [quantile(metric, one), `p${one * 100} ${PER_SERVER}`]);

/** The mean of a histogram. @param {string} metric */
const mean = (metric) => `${rate(`${metric}_sum{}`)} / ${rate(`${metric}_count{}`)}`;

// biome-ignore format: a table reads best with one row per line
/** @type {Row[]} */
export const ROWS = [
  {
    title: 'At a glance',
    panels: [
      { title: 'Servers', help: 'that Prometheus reaches', unit: 'none', type: 'stat', shows: [['sum(up{})', '']] },
      { title: 'Workers', help: 'that listen', unit: 'none', type: 'stat', shows: [['sum(holdfast_workers{})', 'listen'], ['sum(holdfast_workers_planned{})', 'planned']] },
      { title: 'Streams', help: 'open now', unit: 'short', type: 'stat', shows: [['sum(holdfast_streams{})', '']] },
      { title: 'Opened', help: 'per second', unit: 'short', type: 'stat', shows: [['sum(rate(holdfast_streams_opened_total{}[$__rate_interval]))', '']] },
      { title: 'Publications', help: 'new ones per second', unit: 'short', type: 'stat', shows: [['sum(rate(holdfast_hub_publications_total{}[$__rate_interval]))', '']] },
      { title: 'Lost', help: 'streams of workers that died and shards that failed, in the time shown', unit: 'short', type: 'stat', shows: [['sum(increase(holdfast_streams_lost_total{}[$__range]))', '']] },
    ],
  },
  {
    title: 'Streams',
    panels: [
      { title: 'Streams', help: 'open streams of each server', unit: 'short', isStacked: true, shows: [[sum('holdfast_streams{}'), PER_SERVER]] },
      { title: 'Opened', help: 'streams opened per second', unit: 'ops', shows: [[rate('holdfast_streams_opened_total{}'), PER_SERVER]] },
      { title: 'Closed, by reason', help: 'streams per second; client-gone and answered (polls) are normal, slow and dead-peer are about networks, the others about the server', unit: 'ops', shows: [[rate('holdfast_streams_closed_total{}', 'reason'), '{{reason}}'], [rate('holdfast_streams_lost_total{}', 'job'), 'lost']] },
      { title: 'Refused, by status', help: 'requests per second; 503 is a lack of room; cut are connections closed without an answer', unit: 'ops', shows: [[rate('holdfast_requests_refused_total{}', 'status'), '{{status}}'], [rate('holdfast_connections_cut_total{}', 'job'), 'cut']] },
      { title: 'TLS handshakes', help: 'per second, with --tls-cert; resumed ones are among them and cost less; those that fail are of clients that give up, or do not speak this TLS', unit: 'ops', shows: [[rate('holdfast_tls_handshakes_total{}', 'job'), 'done'], [rate('holdfast_tls_handshakes_resumed_total{}', 'job'), 'resumed'], [rate('holdfast_tls_handshake_failures_total{}', 'job'), 'failed']] },
    ],
  },
  {
    title: 'Lateness',
    panels: [
      { title: 'Lateness of pings', help: 'how late pings were sent', unit: 's', isLog: true, shows: quantiles('holdfast_ping_lateness_seconds') },
      { title: 'Ticks', help: 'the time between two runs of a 10 ms interval in the workers; an idle one reads 10 ms', unit: 's', isLog: true, shows: quantiles('holdfast_tick_seconds') },
      { title: 'Lateness of pings, all of them', help: 'how many pings were how late', unit: 's', type: 'heatmap', shows: [['sum by (le) (increase(holdfast_ping_lateness_seconds_bucket{}[$__rate_interval]))', '{{le}}']] },
      { title: 'Workers that are late', help: 'they did not report in time', unit: 'none', shows: [[sum('holdfast_workers_late{}'), PER_SERVER]] },
    ],
  },
  {
    title: 'Deliveries',
    panels: [
      { title: 'Pings and deliveries', help: 'written to streams per second', unit: 'ops', shows: [[rate('holdfast_pings_total{}'), `pings ${PER_SERVER}`], [rate('holdfast_deliveries_total{}'), `deliveries ${PER_SERVER}`]] },
      { title: 'Bytes written', help: 'to streams', unit: 'Bps', shows: [[rate('holdfast_written_bytes_total{}'), PER_SERVER]] },
      { title: 'Waiting', help: 'backlog: bytes that the kernel refused; shards: bytes that wait there; primary: publications that workers have not delivered yet', unit: 'bytes', shows: [[sum('holdfast_backlog_bytes{}'), `backlog ${PER_SERVER}`], [sum('holdfast_queued_bytes{}'), `shards ${PER_SERVER}`], [sum('holdfast_primary_queue_bytes{}'), `primary ${PER_SERVER}`]] },
    ],
  },
  {
    title: 'Hub',
    panels: [
      { title: 'Publications', help: 'per second; duplicates have an id that was known already', unit: 'ops', shows: [[rate('holdfast_hub_publications_total{}'), `new ${PER_SERVER}`], [rate('holdfast_hub_duplicates_total{}'), `duplicates ${PER_SERVER}`]] },
      { title: 'Recovery', help: 'streams opened with a cursor per second; earliest: something may be missing for them; replayed: publications', unit: 'ops', shows: [[rate('holdfast_hub_recoveries_total{}'), `with a cursor ${PER_SERVER}`], [rate('holdfast_hub_recoveries_earliest_total{}'), `earliest ${PER_SERVER}`], [rate('holdfast_hub_replayed_total{}'), `replayed ${PER_SERVER}`]] },
      { title: 'Refused by limits and for their token', help: 'requests per second', unit: 'ops', shows: [[rate('holdfast_hub_limited_total{}', 'limit'), '{{limit}}'], [rate('holdfast_hub_tokens_refused_total{}', 'job'), 'token']] },
      { title: 'Streams of the hub, and what waits', help: 'publications that wait in workers until there is room for them', unit: 'short', shows: [[sum('holdfast_hub_streams{}'), `streams ${PER_SERVER}`], [sum('holdfast_hub_waiting{}'), `waiting ${PER_SERVER}`]] },
      { title: 'Presence', help: 'subscriptions on the list, with --subscriptions', unit: 'short', shows: [[sum('holdfast_hub_subscriptions{}'), PER_SERVER]] },
    ],
  },
  {
    title: 'NATS (with --nats)',
    panels: [
      { title: 'Connected', help: '1 while the server follows the stream of NATS', unit: 'none', shows: [[sum('holdfast_nats_connected{}'), PER_SERVER]] },
      { title: 'Behind', help: 'how long ago the server last had everything from NATS', unit: 's', shows: [[sum('holdfast_nats_lag_seconds{}'), PER_SERVER]] },
      { title: 'Missing', help: 'publications in the stream of NATS that the server does not have yet', unit: 'short', shows: [[sum('holdfast_nats_behind{}'), PER_SERVER]] },
    ],
  },
  {
    title: 'Memory and CPU',
    panels: [
      { title: 'Memory of the workers', help: 'resident', unit: 'bytes', isStacked: true, shows: [['process_resident_memory_bytes{}', `worker {{worker}} ${PER_SERVER}`], [sum('holdfast_primary_resident_memory_bytes{}'), `primary ${PER_SERVER}`]] },
      { title: 'JS heap and buffers', help: 'of the workers', unit: 'bytes', shows: [[sum('nodejs_heap_size_used_bytes{}'), `used ${PER_SERVER}`], [sum('nodejs_heap_size_total_bytes{}'), `heap ${PER_SERVER}`], [sum('nodejs_external_memory_bytes{}'), `external ${PER_SERVER}`]] },
      { title: 'Memory of the machine', help: 'used includes slab and socket buffers, the kernel side of streams', unit: 'bytes', shows: [[sum('holdfast_machine_memory_used_bytes{}'), `used ${PER_SERVER}`], [sum('holdfast_machine_memory_free_bytes{}'), `free ${PER_SERVER}`], [sum('holdfast_machine_memory_cached_bytes{}'), `cache ${PER_SERVER}`], [sum('holdfast_machine_slab_bytes{}'), `slab ${PER_SERVER}`], [sum('holdfast_machine_socket_buffer_bytes{}'), `socket buffers ${PER_SERVER}`]] },
      { title: 'CPU of the workers', help: '1 is one core', unit: 'percentunit', isStacked: true, shows: [['rate(process_cpu_seconds_total{}[$__rate_interval])', `worker {{worker}} ${PER_SERVER}`]] },
      { title: 'Garbage collection', help: 'share of the time', unit: 'percentunit', shows: [[rate('holdfast_gc_seconds_total{}', 'instance, kind'), `{{kind}} ${PER_SERVER}`]] },
      { title: 'Event loop lag in the last second', help: 'ticks of each worker: the maximum', unit: 's', shows: [['nodejs_eventloop_lag_max_seconds{}', `worker {{worker}} ${PER_SERVER}`]] },
    ],
  },
  {
    title: 'The cost of a stream',
    panels: [
      { title: 'Memory per stream', help: 'growth since before the first stream, divided by the streams; none if it is too small to tell', unit: 'bytes', shows: [[sum('holdfast_stream_heap_bytes{}'), `heap ${PER_SERVER}`], [sum('holdfast_stream_native_bytes{}'), `native ${PER_SERVER}`], [sum('holdfast_stream_kernel_bytes{}'), `kernel ${PER_SERVER}`]] },
      { title: 'CPU per stream, ping and delivery', help: 'on average; hold transport', unit: 's', shows: [[mean('holdfast_open_cpu_seconds'), `to open a stream ${PER_SERVER}`], [mean('holdfast_ping_cpu_seconds'), `per ping ${PER_SERVER}`], [mean('holdfast_delivery_cpu_seconds'), `per delivery ${PER_SERVER}`]] },
      { title: 'Time to collect a frame', help: 'what the monitoring itself takes', unit: 's', shows: [[sum('holdfast_frame_seconds{}'), PER_SERVER]] },
      { title: 'Streams held in JS, and failed shards', help: 'both are normally 0 with the native core', unit: 'short', shows: [[sum('holdfast_streams_in_js{}'), `in JS ${PER_SERVER}`], [sum('holdfast_shard_failures_total{}'), `failed shards ${PER_SERVER}`]] },
    ],
  },
];
