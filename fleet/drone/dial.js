/*
 * The seam between a drone and what dials for it: native where the core is built, plain sockets elsewhere.
 */
import { native } from '../../native/index.js';

/** @typedef {import('./causes.js').Cause} Cause */
/** @typedef {import('../../lib/histogram.js').EncodedHistogram} EncodedHistogram */

/**
 * Where and how streams are dialled.
 * @typedef {object} Target
 * @property {string[]} addresses IP addresses of one server, which take turns
 * @property {number[]} ports they take turns
 * @property {string[]} sources local addresses, which take turns; none lets the kernel choose
 * @property {string} request the whole head
 * @property {number} pingIntervalMs 0 where it is not known: then no lateness is measured
 * @property {number} timeoutMs to connect and be welcomed
 * @property {boolean} isStrict whether what is said must be that of a Holdfast server
 * @property {boolean} allowsMessages whether anything but pings may come
 */

/**
 * Gauges, counts since the beginning, and histograms (µs) and samples since they were last taken.
 * @typedef {object} Counters
 * @property {number} inFlight
 * @property {number} open
 * @property {number} overdue open streams whose next ping is late by more than an interval
 * @property {number} opened
 * @property {number} closed by the drone itself
 * @property {number} pings
 * @property {number} messages
 * @property {number} bytes
 * @property {Record<Cause, number>} failed before they were open
 * @property {Record<Cause, number>} lost once they were
 * @property {{ cause: Cause, text: string }[]} samples of what was not understood
 * @property {EncodedHistogram} connect
 * @property {EncodedHistogram} firstByte
 * @property {EncodedHistogram} lateness
 * @property {EncodedHistogram} delivery
 */

/**
 * @typedef {object} Dialer
 * @property {'native' | 'plain'} name
 * @property {number} most streams that it can hold
 * @property {(target: Target) => void} aim at what is dialled from now on
 * @property {(count: number) => void} open
 * @property {(count: number) => void} close so many open streams
 * @property {() => Counters} take
 * @property {() => Promise<void>} stop ends all, at once
 */

/** @returns {Promise<Dialer>} */
export async function createDialer() {
  const { create } = await (native ? import('./dial.native.js') : import('./dial.plain.js'));
  return create();
}
