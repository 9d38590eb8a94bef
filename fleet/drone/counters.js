/*
 * The one table of what a dialer counts. A drone's counts, their sums over several drones and the types follow from it;
 * the same rows in the same order are in native/core/src/dial, and test/native.parity.test.js compares the two.
 */

/** Numbers. A gauge is the value now, a counter the total since the start. */
// biome-ignore format: a table reads best with one row per line
export const COUNTS = /** @type {const} */ ([
  { name: 'inFlight', kind: 'gauge', help: 'streams being opened' },
  { name: 'open', kind: 'gauge', help: 'open streams' },
  { name: 'overdue', kind: 'gauge', help: 'open streams whose next ping is late by more than an interval' },
  { name: 'opened', kind: 'counter', help: 'streams opened' },
  { name: 'closed', kind: 'counter', help: 'streams closed by the drone itself' },
  { name: 'churned', kind: 'counter', help: 'streams closed by the drone itself, to open them again' },
  { name: 'moved', kind: 'counter', help: 'streams opened at another server than before' },
  { name: 'resumed', kind: 'counter', help: 'streams opened again with their cursor' },
  { name: 'restarted', kind: 'counter', help: 'streams opened again without a cursor, since they had none' },
  { name: 'gaps', kind: 'counter', help: 'answers that say that publications may be missing' },
  { name: 'pings', kind: 'counter', help: 'pings read' },
  { name: 'messages', kind: 'counter', help: 'messages read' },
  { name: 'bytes', kind: 'counter', help: 'bytes read' },
  { name: 'delivered', kind: 'counter', help: 'publications of the fleet, each once per stream' },
  { name: 'missed', kind: 'counter', help: 'publications skipped: a later one to the same topic has arrived' },
  { name: 'discarded', kind: 'counter', help: 'publications skipped after the server had reported a gap' },
  { name: 'duplicated', kind: 'counter', help: 'publications that arrived again' },
  { name: 'outOfOrder', kind: 'counter', help: 'publications that arrived after a later one' },
  { name: 'recovered', kind: 'counter', help: 'delivered ones that were sent while the stream was not open' },
  { name: 'strayed', kind: 'counter', help: 'publications to topics that the stream does not subscribe to' },
  { name: 'handshakes', kind: 'counter', help: 'TLS handshakes completed' },
  { name: 'resumptions', kind: 'counter', help: 'TLS handshakes that used a ticket of an earlier stream' },
]);

/** Distributions of durations, each since it was last taken. */
// biome-ignore format: a table reads best with one row per line
export const HISTOGRAMS = /** @type {const} */ ([
  { name: 'connect', unit: 'µs', help: 'time to connect' },
  { name: 'handshake', unit: 'µs', help: 'time of the TLS handshake, from connected on' },
  { name: 'firstByte', unit: 'µs', help: 'time to the first byte of the response, from dialling' },
  { name: 'lateness', unit: 'µs', help: 'how late pings were' },
  { name: 'delivery', unit: 'µs', help: 'from publishing a message to reading it' },
]);

/** @typedef {(typeof COUNTS)[number]} CountRow */
/** @typedef {CountRow['name']} CountName */
/** @typedef {Extract<CountRow, { kind: 'counter' }>['name']} CounterName those that only grow */
/** @typedef {(typeof HISTOGRAMS)[number]['name']} Measure */
