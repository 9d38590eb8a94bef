/*
 * The contract between a drone and what dials for it: the native core where it is available, else plain sockets.
 */

/** @typedef {import('./causes.js').Cause} Cause */

/**
 * Where and how streams are dialled.
 * @typedef {object} Target
 * @property {Server[]} servers that share the streams, at least one; a stream that comes back takes the next one
 * @property {string[]} sources local addresses, used in turn; if empty, the kernel chooses
 * @property {import('./params.js').Format} format
 * @property {string} request the whole request head, if there is no subscription; that of a WebSocket has no key yet
 * @property {Subscription | null} subscription the topics that streams subscribe to, and the request for it
 * @property {number} pingIntervalMs 0 if unknown: then no lateness is measured
 * @property {boolean} idlePings whether a message takes the place of the next ping
 * @property {number} timeoutMs to connect and receive the welcome
 * @property {boolean} isStrict whether everything must be what a Holdfast server sends
 * @property {boolean} allowsMessages whether anything other than pings may come; always if there is a subscription
 * @property {Security | null} security null for plain HTTP
 */

/**
 * @typedef {object} Server
 * @property {string} name what it is recognized by in the next target
 * @property {string} host the name, or the first address, which is what its certificate must be for
 * @property {string[]} addresses IP addresses, used in turn; none if it is left out for now
 * @property {number[]} ports used in turn
 *
 * @typedef {{ name: string, open: number, opened: number, failed: number, lost: number }} ServerCounts of its streams
 */

/**
 * How TLS is spoken.
 * @typedef {object} Security
 * @property {string | null} roots certificates that may have signed that of the server, in PEM; null: every certificate is accepted
 * @property {boolean} resumes whether streams come back with a ticket of an earlier one
 */

/**
 * What all streams of a target subscribe to. The number of a stream in the whole fleet is first + step * place, and its place,
 * from 0, is the same for as long as it exists, also while it is not connected.
 * @typedef {object} Subscription
 * @property {import('./topics/template.js').Piece[]} request the whole request head
 * @property {import('./topics/template.js').Piece[][]} topics
 * @property {number} first
 * @property {number} step
 * @property {boolean} isTokenShared whether all use the token of place 0
 */

/**
 * What a dialer counts: a value for each row of counters.js, failures by cause, and samples of what was unexpected.
 * @typedef {Record<import('./counters.js').CountName, number>
 *   & Record<import('./counters.js').Measure, import('../../lib/histogram.js').EncodedHistogram>
 *   & { failed: Record<Cause, number>, lost: Record<Cause, number>, samples: { cause: Cause, text: string }[],
 *   servers: ServerCounts[] }} Counters failed: before they were open; lost: once they were; servers: none if there is only one.
 *   Histograms and samples are since they were last taken
 */

/**
 * @typedef {object} Dialer
 * @property {'native' | 'plain'} name
 * @property {number} most streams it can hold
 * @property {(target: Target) => void} aim sets what is dialled from now on. Streams that come back keep their cursors if the
 *   subscription is the same as before
 * @property {(count: number) => void} open
 * @property {(count: number, isCut?: boolean) => void} close so many open streams, those in the last places. `isCut`: with a reset, as if
 *   their clients had died; they keep their places and cursors, and are the first to be opened again
 * @property {(count: number) => void} churn closes so many open streams at random, and opens them again with their cursors
 * @property {(from: number, tokens: string[]) => void} setTokens of streams, from this place on
 * @property {() => Counters} take
 * @property {() => Promise<void>} stop closes everything, at once
 */

/** @returns {Promise<Dialer>} */
export async function createDialer() {
  const native = await import('../../native/index.js').catch(() => null); // not sent to EC2
  const { create } = await (native?.native ? import('./dial.native.js') : import('./dial.plain.js'));
  return create();
}
