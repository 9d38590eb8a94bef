/*
 * How streams begin, in each format: the headers of the response, and what comes first. Pure.
 *
 *     events       Mercure-Last-Event-ID if there was a cursor     what was missed, between positions
 *     ndjson       Last-Event-ID: where it begins                  what was missed, a line each
 *     websocket    the same as events                              {"cursor":"…"}, and then what was missed
 *     poll         Last-Event-ID: where the next one goes on       {"messages":[…],"cursor":"…"}, or it is held
 */
import { RequestError } from '../../lib/router.js';
import { itemsOf } from '../streams/lines.js';
import { headerValue, NOSNIFF, streamHeaders } from './protocol.js';

/** Clients that can't be served now come again after about this. */
const RETRY_MIN_S = 2;
const RETRY_SPREAD_S = 4;
const EARLIEST = 'earliest';

/** @typedef {Record<string, string>} Headers */
/** @typedef {import('../streams/openings.js').Beginning} Beginning */
/** @typedef {Beginning & { cursor: string, end: string }} Placed one that has a cursor */

const NDJSON_HEADERS = {
  'Content-Type': 'application/x-ndjson',
  'Cache-Control': streamHeaders('draft', undefined)['Cache-Control'],
  ...NOSNIFF,
};
/** Those of a poll, whatever its answer is. */
const POLL_HEADERS = { 'Cache-Control': 'no-store', ...NOSNIFF };

/**
 * Headers that streams without a cursor have in common.
 * @param {import('../streams/formats.js').FormatName} format @param {Headers} cors
 * @returns {Headers}
 */
export function commonHeaders(format, cors) {
  if (format === 'websocket') return {};
  if (format === 'poll') return { ...POLL_HEADERS, ...cors };
  if (format === 'ndjson') return { ...NDJSON_HEADERS, ...cors };
  return { ...streamHeaders('draft', undefined), ...cors };
}

/**
 * Headers of a stream, not of a poll.
 * @param {import('../index.js').Subscriber} subscriber
 * @param {string | undefined} reported
 * @param {string | undefined} cursor where it begins, if that is known
 * @returns {Headers} usually the same object for a stream of events without a cursor
 */
export function headersOf({ format, dialect, headers, cors }, reported, cursor) {
  if (format === 'events')
    return reported === undefined ? headers : { ...streamHeaders(dialect, reported), ...cors };
  /** @type {Headers} */
  const position = reported === undefined ? {} : { 'Mercure-Last-Event-ID': headerValue(reported) };
  if (format === 'websocket' || cursor === undefined) return { ...headers, ...position };
  return { ...headers, 'Last-Event-ID': cursor, ...position };
}

/**
 * @param {import('../index.js').Subscriber} subscriber
 * @param {string | undefined} reported @param {Beginning} beginning
 * @returns {string} what its stream gets first
 */
export function textOf({ format, cursor }, reported, beginning) {
  if (format !== 'websocket') return beginning.text;
  return `${JSON.stringify({ cursor: beginning.cursor, ...missing(cursor, reported) })}\n${beginning.text}`;
}

/**
 * The answer to a poll, if it need not wait.
 * @param {import('../index.js').Subscriber} subscriber
 * @param {string | undefined} reported @param {Placed} beginning
 * @returns {import('../index.js').Answer | null}
 */
export function pollAnswer({ cursor, waitMs, headers: common }, reported, { text, end }) {
  const lost = missing(cursor, reported);
  const headers = { ...common, 'Last-Event-ID': end };
  if (text === '' && !lost) return waitMs === 0 ? { status: 204, headers } : null;
  const rest = JSON.stringify({ cursor: end, ...lost }).slice(1);
  const body = `{"messages":[${itemsOf(text)}],${rest}\n`;
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body };
}

/**
 * @param {string | undefined} cursor of the client @param {string | undefined} reported
 * @returns {{ missing: true } | undefined} for those whose cursor is of no use: what followed it may be lost
 */
export function missing(cursor, reported) {
  return reported === EARLIEST && cursor !== EARLIEST ? { missing: true } : undefined;
}

/**
 * @param {Beginning} beginning
 * @returns {Placed} it
 * @throws {RequestError} 503 if the client has to come again with the cursor that it has
 */
export function placed(beginning) {
  if (beginning.cursor !== undefined) return /** @type {Placed} */ (beginning);
  const seconds = RETRY_MIN_S + Math.floor(RETRY_SPREAD_S * Math.random());
  throw new RequestError(503, 'the hub is not ready: try again with the same cursor', {
    'Retry-After': String(seconds),
  });
}
