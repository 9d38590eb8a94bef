/*
 * What goes over the wire, for every transport: the head of a stream, its formats, the refusals, and the one
 * decision about a request. Pure.
 */
import { STATUS_CODES } from 'node:http';

/** Clients of a server that went away come back spread over this time, not all at once. */
const RETRY_MIN_MS = 2000;
const RETRY_SPREAD_MS = 3000;
/** What one stream may listen to, and how long a name may be. */
const MOST_CHANNELS = 16;
const MOST_CHANNEL_BYTES = 256;
/** What a 503 asks for, in seconds. */
const RETRY_AFTER_S = 5;

/**
 * How messages look on a stream. `text` is the plain one; `events` is Server-Sent Events.
 * @typedef {object} Format
 * @property {string} contentType
 * @property {(random: number) => string} welcome what is written at once; random is 0 to 1
 * @property {string} ping
 * @property {(text: string) => string} message one that was published
 */

/** @type {Record<'text' | 'events', Format>} */
export const FORMATS = {
  text: {
    contentType: 'text/plain; charset=utf-8',
    welcome: () => 'Welcome!',
    ping: 'ping',
    message: (text) => text,
  },
  events: {
    contentType: 'text/event-stream',
    welcome: (random) => {
      const retryMs = RETRY_MIN_MS + Math.floor(random * RETRY_SPREAD_MS);
      return `retry: ${retryMs}\nevent: welcome\ndata: Welcome!\n\n`;
    },
    ping: ': ping\n\n',
    message: (text) => `data: ${text.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`,
  },
};

/**
 * The head of a stream: no cache may keep it, no proxy may buffer it, and the connection ends with it.
 * @param {Format} format
 * @returns {Record<string, string>}
 */
export function streamHeaders(format) {
  return {
    'Content-Type': format.contentType,
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    Connection: 'close',
  };
}

/**
 * The response head of a stream.
 * @param {Format} format
 * @param {boolean} isChunked not to HTTP/1.0
 * @returns {string} bytes, ASCII
 */
export function openingHead(format, isChunked) {
  return responseHead(200, {
    ...streamHeaders(format),
    ...(isChunked ? { 'Transfer-Encoding': 'chunked' } : {}),
  });
}

/** @param {string} payload ASCII @returns {string} one chunk */
export function chunked(payload) {
  return `${payload.length.toString(16)}\r\n${payload}\r\n`;
}

/**
 * Bytes that a payload takes on the wire.
 * @param {string} payload
 * @param {boolean} chunked the size line and two line ends come with each chunk
 */
export function wireBytes(payload, chunked) {
  const bytes = Buffer.byteLength(payload);
  return chunked ? bytes + bytes.toString(16).length + 4 : bytes;
}

/**
 * A whole response that refuses.
 * @param {import('../lib/reasons.js').RefusalStatus} status
 * @param {boolean} headOnly to a HEAD
 * @returns {string} bytes, ASCII
 */
export function refusal(status, headOnly) {
  const body = `${status} ${STATUS_CODES[status]}\n`;
  /** @type {Record<string, string>} */
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': String(body.length),
    Connection: 'close',
  };
  if (status === 405) headers.Allow = 'GET, HEAD';
  if (status === 503) headers['Retry-After'] = String(RETRY_AFTER_S);
  return responseHead(status, headers) + (headOnly ? '' : body);
}

/**
 * A whole response, after which the connection ends.
 * @param {number} status @param {string} type @param {string} body ASCII
 * @param {boolean} headOnly to a HEAD
 * @returns {string} bytes, ASCII
 */
export function response(status, type, body, headOnly) {
  const headers = { 'Content-Type': type, 'Content-Length': String(body.length), Connection: 'close' };
  return responseHead(status, headers) + (headOnly ? '' : body);
}

/** The whole response to a HEAD of a stream. @param {Format} format @returns {string} bytes, ASCII */
export function headAnswer(format) {
  return responseHead(200, streamHeaders(format));
}

/** @param {number} status @param {Record<string, string>} headers @returns {string} */
function responseHead(status, headers) {
  const all = Object.entries({ ...headers, Date: new Date().toUTCString() });
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
}

/**
 * The head of a request, as far as the decision needs it. Names of headers are in lower case.
 * @typedef {object} Head
 * @property {string} method
 * @property {string} target as sent
 * @property {string} version such as '1.1'
 * @property {Record<string, string | string[] | undefined>} headers
 */

/**
 * `hold` opens a stream, that listens to `channels` if there are any, `head` answers with its head alone, `refuse`
 * with an error, `answer` with a whole response (bytes, Latin-1), after which the connection ends.
 * @typedef {{ hold: Format, channels?: string[] } | { head: Format } | { refuse: 400 | 404 | 405 | 505 } | { answer: () => string }} Decision
 */

/**
 * What to do with a request.
 * @param {Head} head
 * @returns {Decision}
 */
export function decide({ method, target, version, headers }) {
  if (version !== '1.1' && version !== '1.0') return { refuse: 505 };
  if (version === '1.1' && headers.host === undefined) return { refuse: 400 };
  if (method === 'CONNECT') return { refuse: 405 }; // its target is no path
  if (pathOf(target) !== '/') return { refuse: 404 };
  if (method !== 'GET' && method !== 'HEAD') return { refuse: 405 };
  if (hasBody(headers)) return { refuse: 400 };
  const format = acceptsEvents(headers.accept) ? FORMATS.events : FORMATS.text;
  if (method === 'HEAD') return { head: format };
  const channels = channelsOf(target);
  if (!channels) return { refuse: 400 };
  return channels.length === 0 ? { hold: format } : { hold: format, channels };
}

/** @param {string} name @returns {boolean} whether a channel can have it */
function isChannelName(name) {
  return name.length > 0 && Buffer.byteLength(name) <= MOST_CHANNEL_BYTES;
}

/** @param {string} target such as '/?channel=news&channel=sports' @returns {string[] | null} null where it has too many, or a bad name */
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

/** @param {Head['headers']} headers a stream is opened by a request without a body */
function hasBody(headers) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}

/**
 * @param {string | string[] | undefined} accept
 * @returns {boolean} whether text/event-stream is named, and not with q=0
 */
function acceptsEvents(accept) {
  if (accept === undefined) return false;
  return String(accept)
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()))
    .some(
      ([type, ...parameters]) =>
        type === 'text/event-stream' && !parameters.some((p) => /^q=0(\.0*)?$/.test(p)),
    );
}
