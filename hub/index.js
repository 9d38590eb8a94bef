/*
 * What `import { Hub } from 'holdfast'` imports: the hub with its grants and its protocol. Its types are in index.d.ts.
 */
import { labelOf, mayPublish } from './access/grants.js';
import { linkOf, publishTo, revocationsFor, subscribeTo } from './applications.js';
import { Nodes } from './nodes/index.js';
import { Conversations } from './protocol/conversations.js';
import { ALLOW, ALLOW_READING } from './protocol/cors.js';
import { handle, upgrade } from './protocol/handler.js';
import { checkPage } from './protocol/origin.js';
import { decide, HEADERS } from './protocol/policy.js';
import { notAllowed, nothingThere, resourceOf } from './protocol/protocol.js';
import { pairsOf, queryOf } from './protocol/query.js';
import { answerSubscriptions } from './protocol/subscriptions.js';
import { checkedRevocations } from './revocations.js';
import { settingsOf } from './settings.js';
import { HubCore } from './streams/core.js';
import { Subscribers } from './subscribers.js';

/** How long the same reason to refuse a token is not noted again. */
const QUIET_MS = 60_000;

/** @typedef {import('../lib/router.js').RequestError} RequestError */
/** @typedef {import('./protocol/protocol.js').Request} Request */
/** @typedef {import('./access/grants.js').Session} Session */
/** @typedef {import('./subscribers.js').Subscriber} Subscriber */
/** @typedef {{ status: number, headers?: Record<string, string>, body?: string | Uint8Array }} Answer */

export class Hub {
  /** @param {import('./settings.js').HubOptions} options @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION */
  constructor(options) {
    const { opened, cors, path, url, rules, onError, onNote, ...parts } = settingsOf(options);
    this.path = path;
    /** How pages find it. */
    this.url = url || path;
    this.rules = rules;
    /** Once its keys are loaded. @type {import('./access/index.js').Access | null} */
    this.access = null;
    this.opened = opened.then((access) => {
      this.access = access;
      access.onRefused = (reason) => this.tokenRefused(reason);
      return access;
    });
    this.opened.catch(() => {}); // `start` and each request report it
    this.cors = cors;
    this.onError = onError;
    this.onNote = onNote;
    /** When each reason to refuse a token may be noted again. @type {Map<string, number>} */
    this.quietUntilMs = new Map();
    this.core = new HubCore({ ...parts, baseUrl: rules.baseUrl, onError });
    /** Where its own presence is; null without it, and if it is in another process. */
    this.presence = parts.presence?.presence ?? null;
    /** Other hubs on the same stream of NATS. @type {Nodes | null} */
    this.nodes = null;
    this.subscribers = new Subscribers(this);
    this.handler = this.handler.bind(this);
    this.upgrade = this.upgrade.bind(this);
    const conversations = new Conversations(this);
    this.core.hold.onStreamMessage((id, data) => conversations.hear(id, data));
  }

  /** @returns {Promise<void>} once its keys are loaded, and what was published before is known */
  async start() {
    await this.opened;
    await this.core.start();
    const { bus } = this.core.broker;
    if (!bus || this.nodes) return;
    const end = async (/** @type {import('./revocations.js').Revocation[]} */ list) => this.endAll(list);
    this.nodes = new Nodes({ bus, presence: this.presence, end, onNote: this.onNote });
    this.nodes.start();
  }

  /**
   * For a server of several processes: presence is in the primary.
   * @param {import('./presence/local.js').HubPresence} presence
   */
  attend(presence) {
    this.core.attend(presence);
    void this.opened.then((access) => {
      access.hasSubscriptions = true;
    }, noop);
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

  /** @param {string | undefined} target of a request @returns {boolean} whether the hub answers it */
  owns(target = '') {
    return resourceOf(target, this.path) !== null;
  }

  /**
   * For node:http, Express and others: answers a request whose path is the hub's. Others go to `next`, or get 404.
   * @param {import('node:http').IncomingMessage & { originalUrl?: string }} request
   * @param {import('node:http').ServerResponse} response
   * @param {() => void} [next]
   */
  handler(request, response, next) {
    const target = request.originalUrl ?? request.url ?? '/'; // frameworks cut off the path under which they mount something
    if (next && !this.owns(target)) return next();
    void handle(this, request, response, target);
  }

  /**
   * For the 'upgrade' event of a server of node:http or node:https: makes a WebSocket of a request whose path is the hub's, or refuses it. Others
   * go to `next`, or get 404.
   * @param {import('node:http').IncomingMessage} request @param {import('node:stream').Duplex} socket @param {Uint8Array} head
   * @param {() => void} [next]
   */
  upgrade(request, socket, head, next) {
    const { url = '/' } = request;
    if (next && !this.owns(url)) return next();
    void upgrade(this, [request, socket, head], url);
  }

  /**
   * Makes a stream of a response of an application that knows its users itself.
   * @param {import('node:http').ServerResponse | import('node:http2').Http2ServerResponse} response
   * @param {import('./applications.js').SubscribeOptions} options
   * @returns {Promise<number>} its id in the Hold
   * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT, and what `adopt` throws
   */
  subscribe(response, options) {
    return subscribeTo(this, /** @type {import('node:http').ServerResponse} */ (response), options);
  }

  /** The cursor of what was published last. */
  get cursor() {
    return this.core.cursor;
  }

  /**
   * @param {string} [topic] that a page is about
   * @returns {string} the value of its Link header
   * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT
   */
  link(topic) {
    return linkOf(this.url, this.cursor, topic, this.rules.baseUrl);
  }

  /**
   * The client isn't told why, so the log is; but clients must not fill it.
   * @param {string} reason one of a few
   */
  tokenRefused(reason) {
    this.core.counts.hubTokensRefused++;
    const nowMs = performance.now();
    if (nowMs < (this.quietUntilMs.get(reason) ?? 0)) return;
    this.quietUntilMs.set(reason, nowMs + QUIET_MS);
    this.onNote(`a token was refused: ${reason} (noted once a minute)`);
  }

  /**
   * @param {import('./access/index.js').Request} request
   * @returns {Session | null | Promise<Session | null>} null for somebody without a token
   * @throws {RequestError}
   */
  accessTo(request) {
    if (this.access) return this.access.sessionOf(request);
    return this.opened.then((access) => access.sessionOf(request));
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
   * @param {import('./access/index.js').Request} request for a WebSocket, whose token was found
   * @returns {ReturnType<typeof checkPage>}
   * @throws {RequestError} 403
   */
  checkPage(request) {
    const { cors, url } = this;
    return checkPage(request, {
      cors,
      url,
      access: /** @type {import('./access/index.js').Access} */ (this.access),
    });
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
    const isRead = resource === 'metadata' || resource === 'subscriptions';
    if (method === 'OPTIONS') return this.cors.preflight(request, isRead ? ALLOW_READING : ALLOW);
    if (resource === null) throw nothingThere();
    if (resource === 'stream') throw notAllowed(ALLOW);
    if (method !== 'GET' && method !== 'HEAD') throw notAllowed(ALLOW_READING);
    if (resource === 'metadata') return this.metadata(request);
    return answerSubscriptions(this, request);
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
   * Ends streams: those whose token has this sub or this jti, and those that asked for a topic other than by `*`, also on other nodes. Their
   * tokens are checked again when they come back. Those of this hub are being ended when it returns.
   * @param {{ subject?: string, token?: string, topic?: string }} what
   * @returns {Promise<{ nodes: number, unanswered: number, isConnected: boolean }>} never rejects; `unanswered`: nodes that were not heard of,
   *   and are told when they are back; `isConnected`: false if other nodes can't be reached now, and may be more than are known
   * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT
   */
  revoke(what) {
    const list = revocationsFor(what);
    if (this.nodes)
      return this.nodes
        .revoke(list)
        .then(({ nodes, silent, isConnected }) => ({ nodes, unanswered: silent, isConnected }));
    this.endAll(list);
    return Promise.resolve({ nodes: 1, unanswered: 0, isConnected: true });
  }

  /** A stream was handed over by another process. @param {import('./streams/taken.js').Stream} stream also one that is not the hub's */
  takeIn(stream) {
    this.core.takeIn(stream);
  }

  /** @returns {import('./streams/core.js').Note[]} what the hub that takes its streams has to `learn` before */
  notes() {
    return this.core.notes();
  }

  /** @param {import('./streams/core.js').Note[]} notes of all hubs whose streams come next */
  learn(notes) {
    this.core.learn(notes);
  }

  /** Streams whose channels all begin with one of these need not be taken in. */
  get quiet() {
    return this.core.quiet;
  }

  /** @returns {Promise<void>} once its Hold has been given everything that was fed so far */
  settled() {
    return this.core.settled();
  }

  /** @param {import('./revocations.js').Revocation[]} list */
  endAll(list) {
    for (const one of checkedRevocations(list)) this.end(one);
    return { workers: 1, unanswered: 0 };
  }

  /** @param {import('./revocations.js').Revocation} which */
  end({ subject = '', token = '', topic = '' }) {
    this.access?.forget({ ...(subject ? { subject } : {}), ...(token ? { tokenId: token } : {}) });
    const { hold, audience } = this.core;
    if (subject) hold.endLabelled('subject', labelOf(subject), 'revoked');
    if (token) hold.endLabelled('token', labelOf(token), 'revoked');
    if (topic) for (const channel of audience.channelsAbout(topic)) hold.endChannel(channel, 'revoked');
  }

  /**
   * @template {import('./protocol/drafts.js').Given | readonly import('./protocol/drafts.js').Given[]} T
   * @param {T} given a publication, or a list of them
   * @returns {Promise<T extends readonly unknown[] ? string[] : string>} the ids, once they are stored
   * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT, BUSY, STORE, CLOSED
   */
  async publish(given) {
    const ids = await publishTo(this, given);
    return /** @type {any} */ (Array.isArray(given) ? ids : ids[0]);
  }
}

function noop() {}
