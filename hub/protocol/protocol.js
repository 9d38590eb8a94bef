/*
 * The Mercure protocol, without I/O: what a request wants, and what it gets. policy.js (requests that the Hold asks about) and
 * handler.js (requests of node:http) carry it out.
 *
 *     GET     /.well-known/mercure                    subscribe
 *     QUERY   /.well-known/mercure                    subscribe, with parameters in the body
 *     POST    /.well-known/mercure                    publish
 *     OPTIONS /.well-known/mercure                    the preflight of a browser
 *     GET     /.well-known/mercure/subscriptions…     who is subscribed to what
 *     GET     /.well-known/oauth-protected-resource…  what a client has to know to get a token
 */
import { codeOf, messageOf } from '../../lib/errors.js';
import { RequestError } from '../../lib/router.js';
import { pairsOf, queryOf } from './query.js';
import { subscriptionOf } from './subscription.js';

/** Of every response: what publishers send is never taken for something else. */
export const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' };
/** The hub's own headers of a stream; the rest are the defaults of the Hold. */
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'private, no-cache, no-store, must-revalidate, max-age=0',
  ...NOSNIFF,
};
/** Of a target in absolute form. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;
const BEYOND_ASCII = /[^ -~]/;
const CONTROLS = /\p{Cc}/gu;
/** Statuses of errors that are not the client's fault, or not in what it asked for. @type {Record<string, number>} */
const STATUSES = {
  BUSY: 503,
  CLOSED: 503,
  STORE: 503,
  OVER_CAPACITY: 503,
  NOT_ADOPTABLE: 400,
  TOO_LARGE: 413,
};

/** @typedef {import('./subscription.js').Subscription} Subscription */
/** @typedef {import('../access/grants.js').Session} Session */
/** @typedef {import('./query.js').Pair} Pair */
/** @typedef {Readonly<Record<string, string | undefined>>} Headers in lower case */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} target each character is a byte
 * @property {Headers} headers
 * @property {string} [address] the client's
 */

/** @typedef {'stream' | 'subscriptions' | 'metadata'} Resource */

/**
 * @param {string} target @param {string} path of the hub
 * @returns {Resource | null} null if it is not the hub's
 */
export function resourceOf(target, path) {
  if (target.startsWith(path) && (target.length === path.length || target[path.length] === '?'))
    return 'stream';
  const local = target.startsWith('/') ? target : target.replace(ORIGIN, '');
  const mark = local.search(/[?#]/);
  const found = mark < 0 ? local : local.slice(0, mark);
  if (found === path) return 'stream';
  if (found === `${path}/subscriptions` || found.startsWith(`${path}/subscriptions/`)) return 'subscriptions';
  return found === `/.well-known/oauth-protected-resource${path}` ? 'metadata' : null;
}

/**
 * @param {Request} request
 * @param {import('./subscription.js').Rules} rules
 * @param {readonly Pair[]} [more] in the body of a QUERY
 * @returns {Subscription}
 * @throws {RequestError} 400
 */
export function wantedBy({ target }, rules, more = []) {
  return subscriptionOf([...more, ...pairsOf(queryOf(target))], rules);
}

/**
 * @param {Subscription['dialect']} dialect
 * @param {string | undefined} reported
 * @returns {Record<string, string>} headers of a stream
 */
export function streamHeaders(dialect, reported) {
  if (reported === undefined) return STREAM_HEADERS;
  const value = headerValue(reported);
  const headers = { ...STREAM_HEADERS, 'Mercure-Last-Event-ID': value };
  return dialect === 'legacy' ? { ...headers, 'Last-Event-ID': value } : headers;
}

/** @param {string} text @returns {string} its bytes, one character each */
export function headerValue(text) {
  if (!BEYOND_ASCII.test(text)) return text;
  return Buffer.from(text.replace(CONTROLS, ' ')).toString('latin1');
}

/** @param {string} allowed methods @returns {RequestError} */
export function notAllowed(allowed) {
  return new RequestError(405, `this takes ${allowed}`, { Allow: allowed });
}

/** @returns {RequestError} */
export function nothingThere() {
  return new RequestError(404, 'there is nothing at this address');
}

/** @param {unknown} error @returns {RequestError | null} what it means for the client; null if the hub itself has failed */
export function requestErrorOf(error) {
  if (error instanceof RequestError) return error;
  const status = STATUSES[codeOf(error)];
  if (status === undefined) return null;
  return new RequestError(status, messageOf(error), status === 503 ? { 'Retry-After': '1' } : {});
}
