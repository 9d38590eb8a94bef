/*
 * Which pages of other origins may use the hub. Pure. https://fetch.spec.whatwg.org/#http-cors-protocol
 *
 * An origin is never repeated unless it is on the list, and '*' comes without credentials.
 */
import { inOrigins } from '../lib/origins.js';

const METHODS = 'GET, HEAD, POST, QUERY';
/** Headers that pages may send. */
const ALLOWED = 'Authorization, Cache-Control, Content-Type, If-None-Match, Last-Event-ID';
/** Headers of answers that pages may read. */
const EXPOSED = 'ETag, Last-Event-ID, Link, Mercure-Last-Event-ID, Retry-After, WWW-Authenticate';
/** How long a browser may remember the answer to a preflight request; it has a limit of its own. */
const MAX_AGE_S = '7200';

/** Headers of requests that this reads. */
export const CORS_HEADERS = /** @type {const} */ (['origin', 'access-control-request-method']);

/** @typedef {Readonly<Record<string, string | undefined>>} Headers of a request, with lower-case names */

export class Cors {
  /** @param {readonly string[]} rules from `readOrigin` of lib/origins.js; empty for none */
  constructor(rules) {
    this.isOn = rules.length > 0;
    this.isListed = inOrigins(rules);
    this.isOpen = rules.includes('*');
  }

  /**
   * @param {string | undefined} origin of the request
   * @returns {Record<string, string>} for every answer, whatever its status
   */
  headersFor(origin) {
    if (!this.isOn) return {};
    const allowed = this.allowanceOf(origin);
    return { Vary: 'Origin', ...allowed, ...(allowed ? { 'Access-Control-Expose-Headers': EXPOSED } : {}) };
  }

  /**
   * @param {string} method @param {Headers} headers
   * @returns {{ status: number, headers: Record<string, string> } | null} the answer to a preflight request; null if it is none
   */
  preflight(method, headers) {
    if (method !== 'OPTIONS' || !headers.origin || !headers['access-control-request-method']) return null;
    if (!this.isOn) return null;
    const allowed = this.allowanceOf(headers.origin);
    const answer = allowed && {
      ...allowed,
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': ALLOWED,
      'Access-Control-Max-Age': MAX_AGE_S,
    };
    return { status: 204, headers: { Vary: 'Origin', ...answer } };
  }

  /** @param {string | undefined} origin @returns {Record<string, string> | undefined} */
  allowanceOf(origin) {
    if (origin !== undefined && this.isListed(origin))
      return { 'Access-Control-Allow-Origin': origin, 'Access-Control-Allow-Credentials': 'true' };
    return this.isOpen ? { 'Access-Control-Allow-Origin': '*' } : undefined;
  }
}
