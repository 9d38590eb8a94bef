/*
 * What a client wants a stream as: negotiated in the same way at `/` and at the hub's path. Pure.
 */

/**
 * `poll` is one answer, not a stream.
 * @typedef {'text' | 'events' | 'ndjson' | 'poll' | 'websocket'} Wish
 */

/** The media types that ask for each; of two that are wanted equally, the first one. @type {Readonly<Partial<Record<Wish, string>>>} */
export const TYPES = Object.freeze({
  events: 'text/event-stream',
  ndjson: 'application/x-ndjson',
  poll: 'application/json',
});
/** How long a poll waits unless its query says otherwise, and at most, in seconds. */
const WAIT_S = 25;
const MOST_WAIT_S = 60;
const SECONDS = /^\d+(?:\.\d+)?$/;

/** The headers that `formatOf` reads. */
export const WISH_HEADERS = ['accept', 'upgrade'];

/**
 * A WebSocket comes first (`Upgrade: websocket`), then a poll with `wait` in the query; otherwise the most wanted type of Accept
 * decides.
 * @param {Readonly<Record<string, string | undefined>>} headers by name in lower case
 * @param {Iterable<readonly [name: string, value: string]>} query names and values
 * @param {Readonly<Partial<Record<Wish, string>>>} [types] that there are
 * @returns {{ format: Wish | '', waitMs?: number, problem?: string }} `format`: '' if the client names none of them, and does not
 *   rule out the default; `waitMs` of a poll; `problem`: one line for a 400
 */
export function formatOf({ accept, upgrade }, query, types = TYPES) {
  if (asksForWebSocket(upgrade)) return { format: 'websocket' };
  const wait = waitIn(query);
  if (wait !== undefined) return pollOf(wait);
  const format = accept === undefined ? '' : mostWanted(rangesOf(accept), types);
  return format === 'poll' ? { format, waitMs: WAIT_S * 1000 } : { format };
}

/** @param {string | undefined} upgrade such as 'websocket' or 'h2c, WebSocket' */
export function asksForWebSocket(upgrade) {
  if (upgrade === undefined) return false;
  return upgrade.split(',').some((protocol) => protocol.trim().toLowerCase() === 'websocket');
}

/** @param {Iterable<readonly [name: string, value: string]>} query @returns {string | undefined} the first `wait` */
function waitIn(query) {
  for (const [name, value] of query) if (name === 'wait') return value;
  return undefined;
}

/** @param {string} wait @returns {ReturnType<typeof formatOf>} */
function pollOf(wait) {
  if (SECONDS.test(wait) && Number(wait) <= MOST_WAIT_S)
    return { format: 'poll', waitMs: Math.round(Number(wait) * 1000) };
  return {
    format: 'poll',
    problem: `wait takes 0 to ${MOST_WAIT_S} seconds, as in ?wait=${WAIT_S} or ?wait=0.5, not ${JSON.stringify(wait.slice(0, 40))}`,
  };
}

/** @param {readonly Range[]} ranges @param {Readonly<Partial<Record<Wish, string>>>} types @returns {Wish | ''} */
function mostWanted(ranges, types) {
  /** @type {Wish | ''} */
  let best = '';
  let most = 0;
  for (const [format, type] of Object.entries(types)) {
    const quality = qualityOf(type, ranges);
    if (quality <= most) continue;
    best = /** @type {Wish} */ (format);
    most = quality;
  }
  return best;
}

/** @typedef {[type: string, quality: number]} Range of an Accept header */

/** @param {string} type @param {readonly Range[]} ranges @returns {number} 0 if it is not in them */
export function qualityOf(type, ranges) {
  return Math.max(0, ...ranges.filter(([name]) => name === type).map(([, quality]) => quality));
}

/** @param {string} accept @returns {Range[]} */
export function rangesOf(accept) {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [type, ...parameters] = range.split(';').map((part) => part.trim());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return [type, quality === undefined ? 1 : Number(quality.slice(2)) || 0];
    });
}
