/*
 * Who asks for a stream: what follows from a request (its place, the headers of its response), remembered for equal requests.
 */
import { BoundedMap } from '../lib/boundedmap.js';
import { RequestError } from '../lib/router.js';
import { formatOf } from '../lib/wishes.js';
import { commonHeaders } from './protocol/beginnings.js';
import { checkWanted, cursorOf } from './protocol/subscription.js';
import { Wishes } from './protocol/wishes.js';

/** How long a token that was checked is not checked again for an equal request. */
const KNOWN_MS = 60_000;
/** Heads whose outcome is kept; the Hold doesn't remember more either. */
const MOST_KNOWN = 256;

/** @typedef {import('./protocol/protocol.js').Request} Request */
/** @typedef {import('./protocol/wishes.js').Wish} Wish */
/** @typedef {import('./access/grants.js').Session} Session */

/**
 * What is known about a request for a stream.
 * @typedef {object} Subscriber
 * @property {import('./streams/formats.js').FormatName} format
 * @property {number} waitMs of a poll
 * @property {import('./protocol/subscription.js').Dialect} dialect
 * @property {string | undefined} cursor
 * @property {import('./streams/audience.js').Place} place
 * @property {Record<string, string>} cors headers of the response for pages of other origins
 * @property {Record<string, string>} headers that all responses of this format have
 * @property {boolean} mayPublish whether a WebSocket may, if its token does: a cookie alone is not enough for pages of every origin
 * @property {number} version of the access before its token was checked
 * @property {number} checkedMs
 */

/** @typedef {Pick<Subscriber, 'format' | 'waitMs'> & { wish: Wish }} Asked */

export class Subscribers {
  /** @param {import('./index.js').Hub} hub */
  constructor(hub) {
    this.hub = hub;
    this.wishes = new Wishes(hub.rules);
    /** By the headers of a request, which are the same object for equal heads. @type {BoundedMap<object, Subscriber>} */
    this.known = new BoundedMap(MOST_KNOWN);
    /** By format, and by the headers of `cors`, which are the same object for the same origin. @type {Map<string, WeakMap<object, Readonly<Record<string, string>>>>} */
    this.headers = new Map();
  }

  /**
   * @param {Request} request whose headers a Hold shares among equal heads
   * @returns {Subscriber | Promise<Subscriber>} usually the same object for an equal head
   * @throws {import('../lib/router.js').RequestError} or rejects with it
   */
  of(request) {
    const known = this.known.get(request.headers);
    if (known && this.isValid(known)) return known;
    const found = this.find(request);
    if (found instanceof Promise) return found.then((subscriber) => this.remember(request, subscriber));
    return this.remember(request, found);
  }

  /**
   * @param {Request} request @param {readonly import('./protocol/query.js').Pair[]} [more] in the body of a QUERY
   * @returns {Subscriber | Promise<Subscriber>}
   * @throws {import('../lib/router.js').RequestError} or rejects with it
   */
  find(request, more) {
    const wish = this.wishes.of(request, more);
    const { method, headers, address } = request;
    const { format, waitMs = 0, problem } = formatOf(headers, wish.pairs);
    if (problem !== undefined) throw new RequestError(400, problem);
    if (format !== 'websocket') checkWanted(wish);
    const asked = { format: /** @type {Subscriber['format']} */ (format || 'events'), waitMs, wish };
    const version = this.version; // of now: what is revoked while the token is verified is asked for again
    // A browser can't set headers of a WebSocket, so its token may be where 0.x has it.
    const places = format === 'websocket' ? {} : { dialect: wish.dialect };
    const session = this.hub.accessTo({ method, headers, address, query: wish.pairs, ...places });
    if (session instanceof Promise)
      return session.then((one) => this.subscriber(request, asked, one, version));
    return this.subscriber(request, asked, session, version);
  }

  /** Of the access; 0 as long as its keys are not loaded. */
  get version() {
    return this.hub.access?.version ?? 0;
  }

  /**
   * @param {Request} request @param {Asked} asked @param {Session | null} session
   * @param {number} version of the access before the token was checked
   * @returns {Subscriber}
   * @throws {RequestError} 403
   */
  subscriber(request, { format, waitMs, wish }, session, version) {
    const { dialect, selectors, pairs } = wish;
    const cors = this.hub.corsOf(request);
    const { mayPublish } =
      format === 'websocket' ? this.hub.checkPage({ ...request, query: pairs }) : { mayPublish: false };
    return {
      format,
      waitMs,
      dialect,
      cursor: cursorOf(pairs, request.headers['last-event-id']),
      place: this.hub.core.placeOf(selectors, session),
      cors,
      headers: this.headersWith(format, cors),
      mayPublish,
      version,
      checkedMs: Date.now(),
    };
  }

  /** @param {Request} request @param {Subscriber} subscriber @returns {Subscriber} it */
  remember({ headers }, subscriber) {
    // Somebody without a token may be let in because of the address, and equal heads come from other addresses too.
    if (subscriber.place.session || this.hub.access?.isAnonymousAllowed) this.known.set(headers, subscriber);
    return subscriber;
  }

  /** @param {Subscriber} subscriber @returns {boolean} whether its token is still good, as far as we know */
  isValid({ version, checkedMs, place: { session } }) {
    const nowMs = Date.now();
    return (
      version === this.version &&
      nowMs < checkedMs + KNOWN_MS &&
      (session === null || session.expiresAtMs > nowMs)
    );
  }

  /**
   * @param {Subscriber['format']} format @param {Readonly<Record<string, string>>} cors
   * @returns {Readonly<Record<string, string>>} always the same object
   */
  headersWith(format, cors) {
    const byCors = this.headers.get(format) ?? new WeakMap();
    this.headers.set(format, byCors);
    const known = byCors.get(cors);
    if (known) return known;
    const headers = Object.freeze(commonHeaders(format, cors));
    byCors.set(cors, headers);
    return headers;
  }
}
