/*
 * Which pages of other origins may use the hub. Pure. https://fetch.spec.whatwg.org/#http-cors-protocol
 *
 * An origin is never repeated unless it is on the list, and '*' comes without credentials.
 */
import { inOrigins } from '../../lib/origins.js';
import { Recent } from '../matching/recent.js';

const METHODS = 'GET, HEAD, POST, QUERY';
/** Headers that pages may send. */
const ALLOWED = 'Authorization, Cache-Control, Content-Type, If-None-Match, Last-Event-ID';
/** Headers of answers that pages may read. */
const EXPOSED = 'ETag, Last-Event-ID, Link, Mercure-Last-Event-ID, Retry-After, WWW-Authenticate';
/** How long a browser may remember the answer to a preflight request; it has a limit of its own. */
const MAX_AGE_S = '7200';

/** @type {Readonly<Record<string, string>>} */
const NONE = Object.freeze({});
/** Origins whose headers are kept. */
const MOST_KEPT = 256;

/** What the hub answers to, and where it only has something to read. */
export const ALLOW = `${METHODS}, OPTIONS`;
export const ALLOW_READING = 'GET, HEAD, OPTIONS';

/**
 * @typedef {object} Request
 * @property {Readonly<Record<string, string | undefined>>} headers at least origin, with lower-case names
 */

export class Cors {
  /** @param {readonly string[]} rules from `readOrigin` of lib/origins.js; empty for none */
  constructor(rules) {
    this.isOn = rules.length > 0;
    this.isListed = inOrigins(rules);
    this.isOpen = rules.includes('*');
    /** By origin, '' for none. @type {Recent<Readonly<Record<string, string>>>} */
    this.kept = new Recent(MOST_KEPT);
  }

  /**
   * @param {Request} request
   * @returns {Readonly<Record<string, string>>} for every answer to it, whatever its status; usually the same object for the same origin
   */
  headersFor({ headers: { origin } }) {
    if (!this.isOn) return NONE;
    const kept = this.kept.get(origin ?? '');
    if (kept) return kept;
    const headers = Object.freeze(this.headersOf(origin));
    this.kept.set(origin ?? '', headers);
    return headers;
  }

  /** @param {string | undefined} origin @returns {Record<string, string>} */
  headersOf(origin) {
    const allowed = this.allowanceOf(origin);
    return { Vary: 'Origin', ...allowed, ...(allowed && { 'Access-Control-Expose-Headers': EXPOSED }) };
  }

  /**
   * @param {Request} request @param {string} [allow] the methods of its address
   * @returns {{ status: number, headers: Record<string, string> }} the answer to an OPTIONS request
   */
  preflight({ headers: { origin } }, allow = ALLOW) {
    if (!this.isOn) return { status: 204, headers: { Allow: allow } };
    const allowed = this.allowanceOf(origin);
    const answer = allowed && {
      ...allowed,
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': ALLOWED,
      'Access-Control-Max-Age': MAX_AGE_S,
    };
    return { status: 204, headers: { Allow: allow, Vary: 'Origin', ...answer } };
  }

  /** @param {string | undefined} origin @returns {Record<string, string> | undefined} undefined if it is not allowed */
  allowanceOf(origin) {
    if (origin === undefined) return undefined;
    if (this.isListed(origin))
      return { 'Access-Control-Allow-Origin': origin, 'Access-Control-Allow-Credentials': 'true' };
    return this.isOpen ? { 'Access-Control-Allow-Origin': '*' } : undefined;
  }
}
