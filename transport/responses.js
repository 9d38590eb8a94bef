/*
 * The responses that we write without node:http: heads of streams, refusals and answers. Pure, except for the Date.
 */
import { STATUS_CODES } from 'node:http';
import { types } from 'node:util';
import { FORMATS, formatByte, isPoll } from '../native/protocol.js';
import { ENCODERS } from './encodings.js';

/** How long a poll waits unless the application says otherwise. */
export const WAIT_MS = 25_000;
const NO_BODY = Buffer.alloc(0);
const CHUNKED = lineOf('Transfer-Encoding', 'chunked');
/** The Content-Type of the answer of a poll. */
export const POLL_TYPE = 'application/json';
/** The Retry-After of a 503, in seconds. */
const RETRY_AFTER_S = 5;

/**
 * What the body of a refusal says unless the application gives it another one. The native core has the same texts
 * (native/core/src/response.rs).
 * @type {Record<import('../lib/reasons.js').RefusalStatus, string>}
 */
const EXPLANATIONS = {
  400: 'the request is invalid',
  404: 'there is nothing at this address',
  405: 'the Allow header lists the methods',
  408: 'the request took too long to arrive',
  426: 'this address expects a WebSocket: Upgrade: websocket, Sec-WebSocket-Version: 13',
  431: 'the request head is too large',
  503: 'no stream can be opened now, try again later',
  505: 'use HTTP/1.1 or HTTP/1.0',
};

/** @typedef {import('../native/protocol.js').Format} Encoding */
/** @typedef {Record<string, string>} Headers */

/**
 * Caches must not store a stream, proxies must not buffer it, and the connection ends with it. Without nosniff, a browser
 * shows nothing of a text until it has enough to guess its type.
 * @type {Record<string, Headers>}
 */
const STREAM_HEADERS = Object.fromEntries(
  /** @type {Encoding[]} */ (Object.keys(FORMATS)).map((format) => [format, streamDefaults(format)]),
);

/** The same, as lines by their names in lower case. @type {Record<string, readonly (readonly [name: string, line: string])[]>} */
const STREAM_LINES = Object.fromEntries(
  Object.entries(STREAM_HEADERS).map(([format, headers]) => [
    format,
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), lineOf(name, value)]),
  ]),
);

/** @param {Encoding} format @returns {Headers} */
function streamDefaults(format) {
  const { encoding, framing } = FORMATS[format];
  if (framing === 'websocket') return { Upgrade: 'websocket', Connection: 'Upgrade' };
  // Whoever answers a poll adds the rest.
  if (framing === 'poll') return { 'Cache-Control': 'no-store' };
  return {
    'Content-Type': ENCODERS[encoding].contentType,
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    ...(encoding === 'text' ? { 'X-Content-Type-Options': 'nosniff' } : {}),
    Connection: 'close',
  };
}

/**
 * @param {Encoding} encoding
 * @param {Headers} [own] of this stream: they replace defaults with the same name, in any case
 * @returns {Headers} without Date and Transfer-Encoding
 */
export function streamHeaders(encoding, own) {
  return own ? replaced(STREAM_HEADERS[encoding], own) : STREAM_HEADERS[encoding];
}

/** @param {Headers} defaults @param {Headers} own @returns {Headers} */
function replaced(defaults, own) {
  const names = Object.keys(own).map((name) => name.toLowerCase());
  /** @type {Headers} */
  const headers = {};
  for (const name in defaults) if (!names.includes(name.toLowerCase())) headers[name] = defaults[name];
  return { ...headers, ...own };
}

/** @type {Headers} */
const NO_HEADERS = Object.freeze({});
/** Lines by headers that can't change, because many streams may share them, and by format. @type {WeakMap<Headers, Map<number, string>>} */
const known = new WeakMap();

/**
 * @param {Encoding} encoding @param {boolean} isChunked
 * @param {Headers} [own]
 * @returns {string} Latin-1: the head lines of a stream, to which the native core adds Date; of a poll only the header lines of the
 *   application, because its status and its length are not known yet
 */
export function streamLines(encoding, isChunked, own = NO_HEADERS) {
  const format = formatByte(encoding, isChunked);
  const kept = Object.isFrozen(own) ? linesWith(own) : undefined;
  const before = kept?.get(format);
  if (before !== undefined) return before;
  const lines = linesOf(encoding, isChunked, own);
  kept?.set(format, lines);
  return lines;
}

/** As `streamHeaders` has them, without an object for each stream. @param {Encoding} format @param {boolean} isChunked @param {Headers} own */
function linesOf(format, isChunked, own) {
  const { framing } = FORMATS[format];
  const names = Object.keys(own).map((name) => name.toLowerCase());
  let lines = '';
  for (const [name, line] of STREAM_LINES[format]) if (!names.includes(name)) lines += line;
  lines += headerLines(own);
  if (framing === 'poll') return lines;
  if (framing === 'websocket') return statusLine(101) + lines;
  return statusLine(200) + lines + (isChunked ? CHUNKED : '');
}

/** @param {Headers} own frozen @returns {Map<number, string>} */
function linesWith(own) {
  const lines = known.get(own) ?? new Map();
  known.set(own, lines);
  return lines;
}

/**
 * What a HEAD gets: the head that a GET would get, without what is said of the connection. That of a poll is the one of an answer.
 * @param {Encoding} format @param {Headers} [own]
 * @returns {Response}
 */
export function headOfStream(format, own) {
  const { Connection, ...others } = streamHeaders(format, own);
  const headers = isPoll(format) ? { 'Content-Type': POLL_TYPE, ...others } : others;
  return { status: 200, headers, body: NO_BODY };
}

/**
 * @param {number} status @param {Headers} headers
 * @returns {string} Latin-1: the status line and the header lines, without Date and the empty line
 */
export function headLines(status, headers) {
  return statusLine(status) + headerLines(headers);
}

/** @param {number} status */
function statusLine(status) {
  return `HTTP/1.1 ${status} ${nameOf(status)}\r\n`;
}

/** @param {Headers} headers @returns {string} */
function headerLines(headers) {
  let lines = '';
  for (const name of Object.keys(headers)) lines += lineOf(name, headers[name]);
  return lines;
}

/** @param {string} name @param {string} value */
function lineOf(name, value) {
  return `${name}: ${value}\r\n`;
}

/** @param {number} status */
export function nameOf(status) {
  return STATUS_CODES[status] ?? 'Unknown';
}

/** A complete response, without Connection and Date. @typedef {{ status: number, headers: Headers, body: Buffer }} Response */

/**
 * @param {import('./policy.js').Answer} answer of a decision
 * @param {boolean} isHead whether to leave out the body, because the request was a HEAD
 * @returns {Response}
 */
export function responseOf({ status = 200, headers = {}, body = '' }, isHead) {
  const bytes = Buffer.from(/** @type {Uint8Array} */ (body));
  /** @type {Headers} */
  const length = status === 204 || status === 304 ? {} : { 'Content-Length': String(bytes.length) };
  return { status, headers: { ...headers, ...length }, body: isHead ? NO_BODY : bytes };
}

/**
 * The same with its head as lines. Whoever writes it adds Connection and Date.
 * @param {import('./policy.js').Answer} answer @param {boolean} isHead
 * @returns {{ head: string, body: Buffer }}
 */
export function answerOf(answer, isHead) {
  const { status, headers, body } = responseOf(answer, isHead);
  return { head: headLines(status, headers), body };
}

/** What a client is to ask for (RFC 9110, section 15.5.22). */
const UPGRADE = { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Version': '13' };

/**
 * The answer that refuses a request. The native core writes the same bytes itself, for the statuses that it knows.
 * @param {import('./policy.js').Refusal} decision
 * @returns {import('./policy.js').Answer}
 */
export function refusal({ refuse: status, headers = {}, body = refusalBody(status) }) {
  const defaults = {
    'Content-Type': 'text/plain; charset=utf-8',
    ...(status === 405 ? { Allow: 'GET, HEAD' } : {}),
    ...(status === 426 ? UPGRADE : {}),
    ...(status === 503 ? { 'Retry-After': String(RETRY_AFTER_S) } : {}),
  };
  return { status, headers: replaced(defaults, headers), body };
}

/**
 * @param {number} status
 * @param {string} [why] by default what the status usually means
 * @returns {string} the body of a refusal
 */
export function refusalBody(status, why = /** @type {Record<number, string>} */ (EXPLANATIONS)[status]) {
  return `${status} ${nameOf(status)}${why === undefined ? '' : `: ${why}`}\n`;
}

/** @param {string} head lines @param {Uint8Array} body @returns {Buffer} the complete response */
export function withDate(head, body) {
  return Buffer.concat([Buffer.from(`${head}Date: ${new Date().toUTCString()}\r\n\r\n`, 'latin1'), body]);
}

/**
 * @param {import('./policy.js').HoldDecision['welcome']} welcome
 * @returns {readonly import('./policy.js').Bytes[]} its variants
 */
export function welcomesOf(welcome) {
  if (welcome === undefined) return [];
  return typeof welcome === 'string' || types.isUint8Array(welcome) ? [welcome] : welcome;
}
