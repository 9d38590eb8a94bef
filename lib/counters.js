/*
 * The one table of what a transport counts. The snapshots of workers, their sums and the types follow from it; the same
 * rows in the same order are in native/core/src/telemetry.rs, and test/native.parity.test.js compares the two.
 */

/** Numbers. A gauge is the value now, a counter the total since the start. */
// biome-ignore format: a table reads best with one row per line
export const COUNTS = /** @type {const} */ ([
  { name: 'streams', kind: 'gauge', help: 'open streams' },
  { name: 'connections', kind: 'gauge', help: 'open connections, streams included' },
  { name: 'opened', kind: 'counter', help: 'streams opened' },
  { name: 'pings', kind: 'counter', help: 'pings written' },
  { name: 'deliveries', kind: 'counter', help: 'messages written to streams, once per stream' },
  { name: 'bytesWritten', kind: 'counter', help: 'bytes written to streams' },
  { name: 'backlogBytes', kind: 'gauge', help: 'bytes the kernel refused, waiting to be written' },
  { name: 'queuedBytes', kind: 'gauge', help: 'bytes waiting in the shards to be delivered or written' },
  { name: 'inJs', kind: 'gauge', help: 'streams held in JS, not in the native core' },
  { name: 'cut', kind: 'counter', help: 'connections closed without an answer, for lack of room' },
  { name: 'shardFailures', kind: 'counter', help: 'shards that failed and were restarted' },
  { name: 'updates', kind: 'gauge', help: 'open streams of the hub' },
  { name: 'handshakes', kind: 'counter', help: 'TLS handshakes completed' },
  { name: 'resumed', kind: 'counter', help: 'TLS handshakes that resumed a session, with a ticket' },
  { name: 'handshakeFailures', kind: 'counter', help: 'TLS handshakes that failed' },
]);

/** Distributions of durations, each since it was last read. Those of CPU are empty if the transport can't measure it. */
// biome-ignore format: a table reads best with one row per line
export const HISTOGRAMS = /** @type {const} */ ([
  { name: 'lateness', unit: 'µs', help: 'lateness of pings' },
  { name: 'openCpu', unit: 'ns', help: 'CPU to open a stream' },
  { name: 'pingCpu', unit: 'ns', help: 'CPU per ping' },
  { name: 'deliveryCpu', unit: 'ns', help: 'CPU per delivery' },
]);

/** @typedef {(typeof COUNTS)[number]} CountRow */
/** @typedef {CountRow['name']} CountName */
/** @typedef {Extract<CountRow, { kind: 'counter' }>['name']} CounterName those that only grow */
/** @typedef {(typeof HISTOGRAMS)[number]['name']} HistogramName */

/**
 * What a transport says about its streams: a value for every row of the tables, a counter per reason, and one per status
 * (those of an application's own refusals appear when they are first used).
 * @typedef {Record<CountName, number>
 *   & Record<HistogramName, import('./histogram.js').EncodedHistogram>
 *   & { closed: Record<import('./reasons.js').CloseReason, number>,
 *       refused: Record<import('./reasons.js').RefusalStatus, number> & { [status: number]: number | undefined } }} TransportCounters
 */

/**
 * What a worker reports each second.
 * @typedef {import('./sampler.js').ProcessSample & TransportCounters & import('./hubcounters.js').HubCounters} Snapshot
 */

/** @returns {Record<CountName, number>} all at 0 */
export function noCounters() {
  const pairs = COUNTS.map(({ name }) => [name, 0]);
  return /** @type {Record<CountName, number>} */ (Object.fromEntries(pairs));
}
