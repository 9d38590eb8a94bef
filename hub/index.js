/*
 * What `import { Hub } from 'holdfast'` imports: the hub with its grants and its protocol. Its types are in index.d.ts.
 */
import { RequestError } from '../lib/router.js';
import { draftOf } from './drafts.js';
import { mayPublish } from './grants.js';
import { handle } from './handler.js';
import { HubCore } from './hub.js';
import { decide, HEADERS } from './policy.js';
import { notAllowed, resourceOf, streamHeaders, wantedBy } from './protocol.js';

const METHODS = 'GET, HEAD, POST, QUERY, OPTIONS';

/** @typedef {import('./protocol.js').Request} Request */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./grants.js').Session} Session */
/** @typedef {import('./subscription.js').Dialect} Dialect */
/** @typedef {{ status: number, headers?: Record<string, string>, body?: string }} Answer */

/**
 * What is known about a request for a stream.
 * @typedef {object} Subscriber
 * @property {Dialect} dialect
 * @property {string | undefined} cursor
 * @property {Place} place
 * @property {Record<string, string>} cors headers of the response for pages of other origins
 * @property {Record<string, string>} headers of the response to a stream without a cursor
 * @property {number} version of the keys and revocations that its token was checked with
 */

export class Hub {
  /** @param {import('./settings.js').Settings} settings */
  constructor({ hold, broker, access, cors, path, rules, isCached, windowBytes, mostReplayBytes, onFed, onError }) {
    this.path = path;
    this.rules = rules;
    this.access = access;
    this.cors = cors;
    this.onError = onError;
    this.core = new HubCore({ hold, broker, isCached, windowBytes, mostReplayBytes, onFed, onError });
    /** @type {WeakMap<object, Subscriber>} by the headers of a request, which are the same object for equal heads */
    this.known = new WeakMap();
    this.handler = this.handler.bind(this);
  }

  /** The policy of a Hold whose streams are all the hub's. Others are refused with 404. */
  get policy() {
    return { headers: HEADERS, address: true, decide: this.decide.bind(this) };
  }

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
    const session = this.access.sessionOf({ ...request, query: wanted.pairs, dialect: wanted.dialect });
    if (session instanceof Promise) return session.then((one) => this.subscriber(request, wanted, one));
    return this.subscriber(request, wanted, session);
  }

  /** @param {Subscriber} subscriber @returns {boolean} whether its token is still good */
  isValid({ version, place: { session } }) {
    return version === this.access.version && (session === null || session.expiresAtMs > Date.now());
  }

  /** @param {Request} request @param {ReturnType<typeof wantedBy>} wanted @param {Session | null} session */
  subscriber(request, { dialect, selectors, cursor }, session) {
    const cors = this.corsOf(request);
    const subscriber = {
      dialect,
      cursor,
      place: this.core.placeOf(selectors, session),
      cors,
      headers: { ...streamHeaders(dialect, undefined), ...cors },
      version: this.access.version,
    };
    this.known.set(request.headers, subscriber);
    return subscriber;
  }

  /**
   * @param {Request} request to publish
   * @returns {Promise<{ check: (drafts: readonly { topics: readonly string[] }[]) => void }>}
   * @throws {RequestError}
   */
  async publisherOf(request) {
    const session = await this.access.publisherOf(request);
    return {
      check: (drafts) => {
        if (session === null) return; // nobody needs a token here
        for (const { topics } of drafts)
          if (!mayPublish(session, topics)) throw this.access.insufficient(request, session);
      },
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
    if (resource === 'metadata') return this.access.metadata(request);
    throw new RequestError(404, 'there is nothing at this address');
  }

  /** @param {Request} request @returns {Record<string, string>} headers of its response for pages of other origins */
  corsOf(request) {
    return this.cors.headersFor(request);
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
