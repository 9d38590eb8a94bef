/*
 * The server's policy: GET / opens a stream (of events if the client accepts them) that listens to the channels in its
 * query. Everything else is refused. Pure.
 */

/** After a server goes away, its clients reconnect spread over this time, not all at once. */
const RETRY_MIN_MS = 2000;
const RETRY_SPREAD_MS = 3000;
/** Variants of the welcome; streams that open together get different ones. */
const RETRIES = 16;
/** The most channels of a stream, and the longest name. */
const MOST_CHANNELS = 16;
const MOST_CHANNEL_BYTES = 256;

/** @typedef {import('./policy.js').Head} Head */
/** @typedef {import('./policy.js').HoldDecision} HoldDecision */

/** @type {HoldDecision} */
const TEXT = { hold: 'text', welcome: 'Welcome!', always: true };
/** @type {HoldDecision} */
const EVENTS = { hold: 'events', welcome: Array.from({ length: RETRIES }, eventsWelcome), always: true };

/** @param {unknown} _ @param {number} variant */
function eventsWelcome(_, variant) {
  const retryMs = RETRY_MIN_MS + Math.floor((RETRY_SPREAD_MS * (variant + Math.random())) / RETRIES);
  return Buffer.from(`retry: ${retryMs}\nevent: welcome\ndata: Welcome!\n\n`);
}

/**
 * `decide` answers at once.
 * @type {{ headers: readonly string[], decide: (head: Head) => Exclude<import('./policy.js').Decision, { pass: true }> }}
 */
export const policy = { headers: ['host', 'accept', 'content-length', 'transfer-encoding'], decide };

/** @param {Head} head @returns {Exclude<import('./policy.js').Decision, { pass: true }>} */
function decide({ method, target, version, headers }) {
  if (version !== '1.1' && version !== '1.0') return { refuse: 505 };
  if (version === '1.1' && headers.host === undefined) return { refuse: 400 };
  if (method === 'CONNECT') return { refuse: 405 }; // its target is not a path
  if (pathOf(target) !== '/') return { refuse: 404 };
  if (method !== 'GET' && method !== 'HEAD') return { refuse: 405 };
  if (hasBody(headers)) return { refuse: 400 };
  const stream = acceptsEvents(headers.accept) ? EVENTS : TEXT;
  const channels = channelsOf(target);
  if (!channels) return { refuse: 400 };
  return channels.length === 0 ? stream : { ...stream, channels };
}

/** @param {string} name @returns {boolean} whether it can be the name of a channel */
function isChannelName(name) {
  return name.length > 0 && Buffer.byteLength(name) <= MOST_CHANNEL_BYTES;
}

/**
 * @param {string} target such as '/?channel=news&channel=sports'
 * @returns {string[] | null} null if there are too many, or one has a bad name
 */
function channelsOf(target) {
  const query = target.indexOf('?');
  if (query < 0) return [];
  const names = new URLSearchParams(target.slice(query + 1)).getAll('channel');
  return names.length <= MOST_CHANNELS && names.every(isChannelName) ? names : null;
}

/** @param {string} target '/', '/?x', 'http://host/' → '/' */
export function pathOf(target) {
  if (target === '/') return target;
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
  return path === '' ? '/' : path;
}

/** @param {Head['headers']} headers */
function hasBody(headers) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}

/**
 * @param {string | undefined} accept
 * @returns {boolean} whether it contains text/event-stream, and not with q=0
 */
function acceptsEvents(accept) {
  if (accept === undefined) return false;
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()))
    .some(
      ([type, ...parameters]) =>
        type === 'text/event-stream' && !parameters.some((p) => /^q=0(\.0*)?$/.test(p)),
    );
}
