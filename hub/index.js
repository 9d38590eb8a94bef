/*
 * What `import { Hub } from 'holdfast'` imports: the hub with its grants and its protocol. Its types are in index.d.ts.
 */
import { RequestError } from '../lib/router.js';
import { draftOf } from './drafts.js';
import { labelOf, mayPublish } from './grants.js';
import { handle } from './handler.js';
import { HubCore } from './hub.js';
import { decide, HEADERS } from './policy.js';
import { notAllowed, resourceOf, streamHeaders, wantedBy } from './protocol.js';
import { pairsOf, queryOf } from './query.js';
import { settingsOf } from './settings.js';
import { answerSubscriptions } from './subscriptions.js';

const METHODS = 'GET, HEAD, POST, QUERY, OPTIONS';
/** How long a token that was checked is not checked again for an equal request. */
const KNOWN_MS = 60_000;

/** @typedef {import('./protocol.js').Request} Request */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./grants.js').Session} Session */
/** @typedef {import('./subscription.js').Dialect} Dialect */
/** @typedef {{ status: number, headers?: Record<string, string>, body?: string | Uint8Array }} Answer */

/**
 * What is known about a request for a stream.
 * @typedef {object} Subscriber
 * @property {Dialect} dialect
 * @property {string | undefined} cursor
 * @property {Place} place
 * @property {Record<string, string>} cors headers of the response for pages of other origins
 * @property {Record<string, string>} headers of the response to a stream without a cursor
 * @property {number} version of the access when its token was checked
 * @property {number} checkedMs
 */

export class Hub {
  /** @param {import('./settings.js').HubOptions} options @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION */
  constructor(options) {
    const { opened, cors, path, rules, onError, ...parts } = settingsOf(options);
    this.path = path;
    this.rules = rules;
    /** Once its keys are loaded. @type {import('./access.js').Access | null} */
    this.access = null;
    this.opened = opened.then((access) => {
      this.access = access;
      access.onRefused = () => this.core.counts.hubTokensRefused++;
      return access;
    });
    this.opened.catch(() => {}); // `start` and each request report it
    this.cors = cors;
    this.onError = onError;
    this.core = new HubCore({ ...parts, onError });
    /** @type {WeakMap<object, Subscriber>} by the headers of a request, which are the same object for equal heads */
    this.known = new WeakMap();
    this.handler = this.handler.bind(this);
  }

  /** @returns {Promise<void>} once its keys are loaded, and what was published before is known */
  async start() {
    await this.opened;
    await this.core.start();
  }

  /** Headers that a policy has to name, so that `decide` can read them. It also needs the address. */
  static headers = HEADERS;

  /**
   * @param {Request} head of a request whose path is the hub's (`owns`) @param {number} id of the stream that it may become
   * @returns {ReturnType<typeof decide>}
   */
  decide(head, id) {
    return decide(this, head, id);
  }

  /** @param {string} target of a request @returns {boolean} whether the hub answers it */
  owns(target) {
    return resourceOf(target, this.path) !== null;
  }

  /**
   * For node:http, Express and others: answers a request whose path is the hub's.
   * @param {import('node:http').IncomingMessage & { originalUrl?: string }} request
   * @param {import('node:http').ServerResponse} response
   */
  handler(request, response) {
    void handle(this, request, response, request.originalUrl ?? request.url ?? '/');
  }

  /**
   * @param {Request} request @param {string} [body] of a QUERY
   * @returns {Subscriber | Promise<Subscriber>}
   * @throws {RequestError}
   */
  subscriberOf(request, body) {
    const known = this.known.get(request.headers);
    if (known && body === undefined && this.isValid(known)) return known;
    const wanted = wantedBy(request, this.rules, body);
    const session = this.accessTo({ ...request, query: wanted.pairs, dialect: wanted.dialect });
    if (session instanceof Promise) return session.then((one) => this.subscriber(request, wanted, one));
    return this.subscriber(request, wanted, session);
  }

  /**
   * @param {import('./access.js').Request} request
   * @returns {Session | null | Promise<Session | null>} null for somebody without a token
   * @throws {RequestError}
   */
  accessTo(request) {
    if (this.access) return this.access.sessionOf(request);
    return this.opened.then((access) => access.sessionOf(request));
  }

  /** @param {Subscriber} subscriber @returns {boolean} whether its token is still good, as far as we know */
  isValid({ version, checkedMs, place: { session } }) {
    const nowMs = Date.now();
    return (
      version === this.access?.version &&
      nowMs < checkedMs + KNOWN_MS &&
      (session === null || session.expiresAtMs > nowMs)
    );
  }

  /** @param {Request} request @param {ReturnType<typeof wantedBy>} wanted @param {Session | null} session */
  subscriber(request, { dialect, selectors, cursor }, session) {
    const cors = this.corsOf(request);
    const subscriber = {
      dialect,
      cursor,
      place: this.core.placeOf(selectors, session),
      cors,
      headers: Object.freeze({ ...streamHeaders(dialect, undefined), ...cors }),
      version: this.access?.version ?? 0,
      checkedMs: Date.now(),
    };
    this.known.set(request.headers, subscriber);
    return subscriber;
  }

  /**
   * @param {Request} request to publish
   * @returns {Promise<(drafts: readonly { topics: readonly string[] }[]) => void>} throws if it may not publish one of them
   * @throws {RequestError}
   */
  async publisherOf(request) {
    const access = await this.opened;
    const asked = { ...request, query: pairsOf(queryOf(request.target)) };
    const session = await access.publisherOf(asked);
    return (drafts) => {
      for (const { topics } of drafts)
        if (!mayPublish(session, topics)) throw access.insufficient(asked, session);
    };
  }

  /**
   * Whatever is neither a stream nor a publication.
   * @param {Request} request
   * @returns {Answer | Promise<Answer>}
   * @throws {RequestError}
   */
  answer(request) {
    const { method, target } = request;
    const resource = resourceOf(target, this.path);
    if (method === 'OPTIONS') return this.cors.preflight(request);
    if (resource === 'stream') throw notAllowed(METHODS);
    if (method !== 'GET' && method !== 'HEAD') throw notAllowed('GET, HEAD');
    if (resource === 'metadata') return this.metadata(request);
    return this.subscriptions(request);
  }

  /** Who is subscribed to what. @param {Request} request @returns {Promise<Answer>} */
  async subscriptions(request) {
    const { presence } = this.core;
    if (!presence) throw nothing();
    const answer = await answerSubscriptions(this, presence, request);
    const cors = this.corsOf(request);
    const vary = [answer.headers?.Vary, cors.Vary].filter(Boolean).join(', ');
    return { ...answer, headers: { ...answer.headers, ...cors, Vary: vary } };
  }

  /** @returns {import('../lib/hubcounters.js').HubCounters} since the start */
  counters() {
    return this.core.counters();
  }

  /** @param {Request} request @returns {Promise<Answer>} */
  async metadata(request) {
    const answer = (await this.opened).metadata(request);
    return { ...answer, headers: { ...answer.headers, ...this.corsOf(request) } };
  }

  /** @param {Request} request @returns {Record<string, string>} headers of its response for pages of other origins */
  corsOf(request) {
    return this.cors.headersFor(request);
  }

  /**
   * Ends streams: those whose token has this sub or this jti, and those that asked for a topic other than by `*`. Their tokens
   * are checked again when they come back.
   * @param {{ subject?: string, token?: string, topic?: string }} what
   */
  revoke({ subject = '', token = '', topic = '' }) {
    this.access?.forget({ ...(subject ? { subject } : {}), ...(token ? { tokenId: token } : {}) });
    const { hold, audience } = this.core;
    if (subject) hold.endLabelled('subject', labelOf(subject), 'revoked');
    if (token) hold.endLabelled('token', labelOf(token), 'revoked');
    if (topic) for (const channel of audience.channelsAbout(topic)) hold.endChannel(channel, 'revoked');
  }

  /**
   * @param {unknown} given a publication, or a list of them
   * @returns {Promise<string | string[]>} the ids, once they are stored
   */
  async publish(given) {
    const list = Array.isArray(given) ? given : [given];
    const drafts = list.map((one) => draftOf(one, this.rules));
    const ids = (await this.core.publish(drafts)).map(({ id }) => id);
    return Array.isArray(given) ? ids : ids[0];
  }
}

function nothing() {
  return new RequestError(404, 'there is nothing at this address');
}
