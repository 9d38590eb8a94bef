/*
 * The server's policy: GET / opens a stream, as what the client asks for (lib/wishes.js), that listens to the channels in its
 * query; a browser that opens the address gets a page instead. Channels are open to clients on this machine, and to everyone
 * only if the server is told so (--anonymous). Everything else is refused. Pure.
 */
import { channelNameProblem } from '../lib/channelnames.js';
import { isLocal, PROXY_HEADERS } from '../lib/local.js';
import { formatOf, qualityOf, rangesOf, TYPES, WISH_HEADERS } from '../lib/wishes.js';
import { refusalBody } from './responses.js';

/** After a server goes away, its clients reconnect spread over this time, not all at once. */
const RETRY_MIN_MS = 2000;
const RETRY_SPREAD_MS = 3000;
/** Variants of the welcome; streams that open together get different ones. */
const RETRIES = 16;
/** The most channels of a stream. */
const MOST_CHANNELS = 16;

const NO_HOST = 'a request of HTTP/1.1 needs a Host header';
const BODY = 'a request for a stream has no body';
const NOT_ANONYMOUS =
  'channels are open to this machine only; node server.js --anonymous opens them to everyone';

/** @typedef {import('./policy.js').Head} Head */
/** @typedef {import('./policy.js').HoldDecision} HoldDecision */
/** @typedef {import('../lib/wishes.js').Wish} Wish */

/** What there is at `/`. */
const ALL_TYPES = { ...TYPES, text: 'text/plain' };
const TYPE_NAMES = Object.values(ALL_TYPES);

/** @type {Record<Wish, HoldDecision>} */
const STREAMS = {
  text: { hold: 'text', welcome: 'Welcome!', always: true },
  events: { hold: 'events', welcome: Array.from({ length: RETRIES }, eventsWelcome), always: true },
  ndjson: { hold: 'ndjson', welcome: '{"type":"welcome","data":"Welcome!"}\n', always: true },
  poll: { hold: 'poll', always: true },
  websocket: { hold: 'websocket', welcome: 'Welcome!', always: true },
};

/** @param {unknown} _ @param {number} variant */
function eventsWelcome(_, variant) {
  const retryMs = RETRY_MIN_MS + Math.floor((RETRY_SPREAD_MS * (variant + Math.random())) / RETRIES);
  return Buffer.from(`retry: ${retryMs}\nevent: welcome\ndata: Welcome!\n\n`);
}

/** @typedef {Exclude<import('./policy.js').Decision, { pass: true }>} OwnDecision */
/** @typedef {{ headers: readonly string[], address: boolean, decide: (head: Head) => OwnDecision }} ServerPolicy `decide` answers at once */

const HEADERS = ['host', ...WISH_HEADERS, 'content-length', 'transfer-encoding'];

/**
 * @param {object} rules
 * @param {boolean} rules.isAnonymous whether everyone may listen to channels
 * @param {import('./policy.js').Answer} [rules.page] for browsers
 * @returns {ServerPolicy}
 */
export function serverPolicy({ isAnonymous, page }) {
  const decide = (/** @type {Head} */ head) => decisionOn(head, page);
  if (isAnonymous) return { headers: HEADERS, address: false, decide };
  return {
    headers: [...HEADERS, ...PROXY_HEADERS],
    address: true,
    decide: (head) => {
      const decision = decide(head);
      if (!('channels' in decision)) return decision;
      return isLocal(head) ? { ...decision, always: false } : refused(403, NOT_ANONYMOUS);
    },
  };
}

/**
 * What holds for every request, whatever it is for.
 * @param {Head} head
 * @returns {OwnDecision | null} its refusal; null if there is nothing wrong
 */
export function refusalOf({ method, version, headers }) {
  if (version !== '1.1' && version !== '1.0') return { refuse: 505 };
  if (version === '1.1' && headers.host === undefined) return refused(400, NO_HOST);
  return method === 'CONNECT' ? { refuse: 405 } : null; // its target is not a path
}

/** @param {Head} head @param {import('./policy.js').Answer} [page] @returns {OwnDecision} */
function decisionOn(head, page) {
  const { method, target, headers } = head;
  const refusal = refusalOf(head);
  if (refusal) return refusal;
  if (pathOf(target) !== '/')
    return refused(404, 'streams are at /, and those of the hub at /.well-known/mercure');
  if (method !== 'GET' && method !== 'HEAD') return { refuse: 405 };
  if (hasBody(headers)) return refused(400, BODY);
  const query = queryOf(target);
  const { format, waitMs, problem } = formatOf(headers, query, ALL_TYPES);
  if (page && format !== 'websocket' && !query.has('wait') && prefersPage(headers.accept))
    return { answer: page };
  const channels = query.getAll('channel');
  const mistake = problem ?? channelProblem(channels);
  if (mistake) return refused(400, mistake);
  const stream = STREAMS[format || 'text'];
  return {
    ...stream,
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(channels.length === 0 ? {} : { channels }),
  };
}

/** @param {number} status @param {string} why shown to the client */
function refused(status, why) {
  return { refuse: status, body: refusalBody(status, why) };
}

/** @param {string[]} names of channels @returns {string} what is wrong with them; '' if nothing */
function channelProblem(names) {
  if (names.length > MOST_CHANNELS)
    return `a stream can have at most ${MOST_CHANNELS} channels, not ${names.length}`;
  return channelNameProblem(names);
}

/** @param {string} target such as '/?channel=news&channel=sports' */
function queryOf(target) {
  const query = target.indexOf('?');
  return new URLSearchParams(query < 0 ? '' : target.slice(query + 1));
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

/** @param {string | undefined} accept @returns {boolean} whether it contains text/html, as a browser does, and nothing that we have is better */
function prefersPage(accept) {
  if (accept === undefined || !/text\/html/i.test(accept)) return false;
  const ranges = rangesOf(accept);
  const quality = qualityOf('text/html', ranges);
  const best = Math.max(0, ...TYPE_NAMES.map((type) => qualityOf(type, ranges)));
  return quality > best && quality >= qualityOf('*/*', ranges);
}
