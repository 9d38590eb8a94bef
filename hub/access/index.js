/*
 * Who may do what: finds the token of a request, and turns it into a session or into the answer that refuses the request.
 */
import { isLocal, PROXY_HEADERS } from '../../lib/local.js';
import { inOrigins } from '../../lib/origins.js';
import { MALFORMED, originOf, presentedIn } from './credentials.js';
import { openKeys } from './keys.js';
import { AccessError, BusyError, refusal, TokenError, unavailable } from './refusals.js';
import { Resource } from './resource.js';
import { Tokens } from './tokens.js';

/** The name that draft-08 recommends. */
export const COOKIE = '__Secure-mercure_access_token';
/** Headers of a request that `sessionOf` reads. */
export const HEADERS = /** @type {const} */ ([
  'host',
  'authorization',
  'cookie',
  'origin',
  'referer',
  ...PROXY_HEADERS,
]);
/** Methods that change nothing, so that no page can do harm with the cookie of its visitor. */
const SAFE_METHODS = ['GET', 'HEAD', 'QUERY', 'OPTIONS'];

/** @typedef {import('./grants.js').Session} Session */
/** @typedef {import('./grants.js').Dialect} Dialect */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {Readonly<Record<string, string | undefined>>} headers at least HEADERS, with repeated ones joined by ', '
 * @property {readonly (readonly [name: string, value: string])[]} [query]
 * @property {Dialect} [dialect] unknown if the request could be of both, as a POST
 * @property {string} [address] the client's
 */

/**
 * The part of the options about tokens; also what a library user gives. See lib/config.js.
 * @typedef {import('./keys.js').KeySettings & { issuer?: string, audience?: string, cookie?: string }} JwtSettings
 */

/**
 * @typedef {object} Options
 * @property {JwtSettings} jwt
 * @property {string} hubPath '/.well-known/mercure'
 * @property {string} baseUrl of the hub: relative patterns and topics resolve against it
 * @property {boolean} [isAnonymousAllowed] whether everybody may read what is public; otherwise only this machine
 * @property {boolean} [isLegacyAllowed] whether 0.x is accepted
 * @property {boolean} [hasSubscriptions] whether the subscription API is on
 * @property {readonly string[]} [publishOrigins] pages that may publish with a cookie (lib/origins.js)
 * @property {(line: string) => void} [onNote] for the log
 * @property {(reason: string) => void} [onRefused] why a token was refused, which the client isn't told; called as often as that happens
 */

export class Access {
  /**
   * @param {Options} options
   * @returns {Promise<Access>}
   * @throws {import('../../lib/errors.js').HoldfastError} BAD_OPTION if a key can't be used
   */
  static async open(options) {
    const keys = await openKeys(options.jwt, options.onNote ? { onNote: options.onNote } : {});
    return new Access(keys, options);
  }

  /** @param {import('./keys.js').Keys} keys @param {Options} options */
  constructor(keys, { jwt, hubPath, baseUrl, onRefused = () => {}, ...options }) {
    const { issuer = '', audience = '', cookie = COOKIE, jwksUrl = '' } = jwt;
    const { isAnonymousAllowed = false, isLegacyAllowed = true, publishOrigins = [] } = options;
    this.hasSubscriptions = options.hasSubscriptions ?? false;
    this.keys = keys;
    this.tokens = new Tokens({ keys, rules: { issuer, audience, isLegacyAllowed }, baseUrl });
    this.resource = new Resource({ audience, hubPath });
    /** Whom clients can ask for a token: only tokens of others come with a JWKS URL. */
    this.authorizationServer = jwksUrl && issuer;
    this.cookie = cookie;
    this.isAnonymousAllowed = isAnonymousAllowed;
    this.isLegacyAllowed = isLegacyAllowed;
    const isListed = inOrigins(publishOrigins);
    const isOpen = publishOrigins.includes('*');
    this.isPublishOrigin = (/** @type {string} */ origin) => origin !== '' && (isOpen || isListed(origin));
    this.onRefused = onRefused;
  }

  /** Whether anybody can publish with a token. */
  get canPublish() {
    return this.keys.canPublish;
  }

  /** Whether there are keys for tokens. */
  get hasKeys() {
    return this.keys.exist;
  }

  /**
   * @param {Request} request
   * @returns {Session | null | Promise<Session | null>} null for somebody without a token, who may read what is public
   * @throws {AccessError} or rejects with it
   */
  sessionOf(request) {
    const presented = this.presentedIn(request);
    const isSafe = SAFE_METHODS.includes(request.method);
    if (presented === null) return this.anonymous(request, isSafe);
    if (presented === MALFORMED) throw this.refusal('malformed', request);
    if (presented.isAmbient && !isSafe) this.checkOrigin(request);
    return this.verified(request, presented.token);
  }

  /** @param {Request} request */
  presentedIn(request) {
    const isLegacy = this.isLegacyAllowed && request.dialect !== 'draft';
    return presentedIn(request, { cookie: this.cookie, isLegacy });
  }

  /** @param {Request} request @returns {boolean} whether a browser would send its token for whatever page */
  isAmbient(request) {
    const presented = this.presentedIn(request);
    return presented !== null && presented !== MALFORMED && presented.isAmbient;
  }

  /** @throws {AccessError} 405 if there is no key that allows publishing */
  checkPublishing() {
    if (!this.canPublish)
      throw new AccessError(405, 'nobody can publish here: the hub has no key for it', {
        Allow: 'GET, HEAD, QUERY, OPTIONS',
      });
  }

  /**
   * @param {Request} request that publishes
   * @returns {Session | Promise<Session>}
   * @throws {AccessError} or rejects with it
   */
  publisherOf(request) {
    this.checkPublishing();
    return /** @type {Session | Promise<Session>} */ (this.sessionOf(request)); // never null: publishing is not safe
  }

  /** Grows when sessions that are in use somewhere else must be asked for again. */
  get version() {
    return this.tokens.generation;
  }

  /** @param {Request} request @param {boolean} isSafe @returns {null} */
  anonymous(request, isSafe) {
    if (isSafe && (this.isAnonymousAllowed || isLocal(request))) return null;
    throw this.refusal('missing', request);
  }

  /** @param {Request} request */
  checkOrigin(request) {
    const origin = originOf(request.headers);
    if (!this.isPublishOrigin(origin)) throw this.refusal('origin', request);
  }

  /** @param {Request} request @param {string} token @returns {Session | Promise<Session>} */
  verified(request, token) {
    try {
      const session = this.tokens.verify(token);
      if (!(session instanceof Promise)) return this.admitted(session, request);
      return session
        .then((later) => this.admitted(later, request))
        .catch((error) => this.fail(error, request));
    } catch (error) {
      return this.fail(error, request);
    }
  }

  /** @param {Session} session @param {Request} request @returns {Session} */
  admitted(session, request) {
    if (session.audiences === null || this.resource.isOneOf(session.audiences, request.headers.host))
      return session;
    throw OTHER_HUB;
  }

  /** @param {unknown} error @param {Request} request @returns {never} */
  fail(error, request) {
    if (error instanceof BusyError) throw unavailable();
    if (!(error instanceof TokenError)) throw error;
    this.onRefused(error.message);
    throw this.refusal('invalid', request);
  }

  /**
   * @param {Request} request that its token does not allow
   * @param {Session | null} session
   * @returns {AccessError} 403; 401 in 0.x, where the dialect of a POST is that of its token; for
   *   somebody without a token the same as if one were required
   */
  insufficient(request, session) {
    if (session === null) return this.refusal('missing', request);
    const isLegacy = (request.dialect ?? session.dialect) === 'legacy';
    return this.refusal('insufficient', request, isLegacy ? 401 : undefined);
  }

  /** @param {import('./refusals.js').Refusal} why @param {Request} request @param {number} [status] */
  refusal(why, { headers }, status) {
    return refusal(why, this.resource.metadataUrlFor(headers.host), status);
  }

  /**
   * The protected resource metadata, at `resource.metadataPath`.
   * @param {Pick<Request, 'headers'>} request
   * @returns {{ status: number, headers: Record<string, string>, body: string }}
   * @throws {AccessError} 404 if there are no tokens here
   */
  metadata({ headers: { host } }) {
    const { authorizationServer: issuer, cookie, hasSubscriptions } = this;
    const document = this.hasKeys ? this.resource.metadata({ host, issuer, cookie, hasSubscriptions }) : null;
    if (!document) throw new AccessError(404, 'this hub has no keys for tokens');
    return { status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(document) };
  }

  /** Forgets what it knows about tokens. @param {{ subject?: string, tokenId?: string }} whose sub, jti */
  forget(whose) {
    this.tokens.forget(whose);
  }

  close() {
    this.keys.close();
  }
}

const OTHER_HUB = new TokenError('it is for another audience');
