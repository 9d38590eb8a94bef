/*
 * The hub: topics, history, recovery and grants on top of a Hold. It knows streams only by their ids.
 *
 *     publish --> broker --> feed --> Hold: streams that are open
 *                              \----> window --> openings: streams that are opened
 *
 * What is about the order of the publications is in order.js. When it begins anew, or has a gap, all streams end:
 *
 *     broker: reset --> the streams that are open end --> another Order --> their clients come again, with the cursors they have
 */
import { setTimeout as after } from 'node:timers/promises';
import { codeOf } from '../../lib/errors.js';
import { noHubCounters } from '../../lib/hubcounters.js';
import { textOf } from '../presence/texts.js';
import { Audience, OURS } from './audience.js';
import { FORMATS } from './formats.js';
import { Joining } from './joining.js';
import { LimitError, NO_ROOM } from './limits.js';
import { labelsOf } from './openings.js';
import { Order } from './order.js';
import { Sockets } from './sockets.js';
import { notesOf, QUIET, TakenPlaces } from './taken.js';

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('../access/grants.js').Session} Session */
/** @typedef {import('./openings.js').Opening} Opening */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {{ subject?: number, token?: number, expiresAtMs?: number }} Labels */
/** @typedef {import('./limits.js').Taken | null} Admission what a stream has taken of the limits */
/** @typedef {import('./taken.js').Note | import('./sockets.js').Note} Note */

/**
 * How a stream is opened.
 * @typedef {object} Entrance
 * @property {import('./formats.js').FormatName} format
 * @property {import('../access/grants.js').Dialect} dialect
 * @property {string} address of the client
 * @property {boolean} mayPublish whether a WebSocket client may, if its token does
 * @property {Admission} admission null if the application has opened it
 */

/**
 * What the hub needs of a Hold.
 * @typedef {object} HoldLike
 * @property {(channels: readonly string[], message: { id?: string, type?: string, retry?: number, topic?: string, data: string } | null, options: { cursor: string, isCounted?: boolean, mayBeLarge?: boolean }) => unknown} publish
 * @property {(id: number, payload: string) => void} write
 * @property {(id: number, payload: string) => void} reply
 * @property {(id: number, channel: string) => void} subscribe
 * @property {(id: number, channel: string) => void} unsubscribe
 * @property {(id: number, labels: Labels) => void} label
 * @property {(id: number) => void} end
 * @property {(which: 'subject' | 'token', label: number, reason: 'revoked') => void} endLabelled
 * @property {(channel: string, reason: 'revoked') => void} endChannel
 * @property {(reason: 'restarted') => void} endUpdates
 * @property {(response: import('node:http').ServerResponse, options: { encoding: 'updates' | 'ndjsonUpdates' | 'pollUpdates', channels?: readonly string[], waitMs?: number }) => Promise<number>} adopt
 * @property {(request: import('node:http').IncomingMessage, socket: import('node:stream').Duplex, head: Uint8Array, options: { encoding: 'websocketUpdates', headers: Record<string, string>, tag: string }) => Promise<number>} upgrade
 * @property {(listener: (id: number) => void) => void} onStreamClose
 * @property {(listener: (id: number, data: string) => boolean) => void} onStreamMessage
 */

const RETRY_AFTER_S = '10';
/** Made once: its stack costs more than a refusal, and everybody is refused while there is no room. */
const FULL = new LimitError(503, NO_ROOM, 'hubLimitedPresence', { 'Retry-After': RETRY_AFTER_S });
/** How soon what was published before is asked for again. */
const LEARN_MS = 1000;
/** Why publications can't be read now: the client comes back for them. */
const PASSING = ['BUSY', 'CLOSED', 'STORE'];

/** @typedef {{ id: string, sequence: number, isNew: boolean }} Published `isNew` is false if the id was published before */

export class HubCore {
  /**
   * @param {object} parts
   * @param {HoldLike} parts.hold
   * @param {Broker} parts.broker
   * @param {(topic: string) => boolean} parts.isCached whether new subscribers get the last publication of a topic
   * @param {number} parts.windowBytes of publications that are kept at hand
   * @param {number} parts.mostReplayBytes above it, a client gets a replay in parts
   * @param {import('../presence/local.js').HubPresence | null} parts.presence null if it is off
   * @param {import('./limits.js').Limits | null} parts.limits null if there are none
   * @param {string} parts.baseUrl of the hub
   * @param {(error: unknown) => void} parts.onError
   */
  constructor({ hold, broker, isCached, windowBytes, mostReplayBytes, presence, limits, baseUrl, onError }) {
    this.hold = hold;
    this.broker = broker;
    /** @type {import('../presence/local.js').HubPresence | null} */
    this.presence = null;
    this.limits = limits;
    this.counts = noHubCounters();
    this.audience = new Audience();
    this.taken = new TakenPlaces(baseUrl);
    this.sockets = new Sockets(baseUrl);
    const { audience, counts } = this;
    this.beginOrder = () =>
      new Order({ hold, broker, audience, isCached, windowBytes, mostReplayBytes, counts, onError });
    this.order = this.beginOrder();
    /** Where streams are that something is counted for. @type {Map<number, Place>} by id */
    this.places = new Map();
    this.joining = new Joining(this);
    this.failed = (/** @type {unknown} */ error) => {
      if (!PASSING.includes(codeOf(error))) onError(error);
      return false;
    };
    broker.follow(
      (publications) => this.order.feed.take(publications),
      () => this.reset(),
    );
    hold.onStreamClose((id) => this.leave(id));
    if (presence) this.attend(presence);
    if (limits) hold.onStreamClose((id) => limits.leave(id));
  }

  /** From now on streams are listed. @param {import('../presence/local.js').HubPresence} presence */
  attend(presence) {
    this.presence = presence;
    this.hold.onStreamClose((id) => presence.leave(id));
  }

  /** @returns {Promise<void>} once it has learned what was published before */
  async start() {
    const { order } = this;
    await order.learn().catch((error) => {
      if (!order.isOver) throw error; // otherwise `reset` does the rest
    });
  }

  /** The order of the publications has begun anew, or has a gap. Nothing of the new one reaches streams that are open now: they end. */
  reset() {
    this.order.end();
    this.hold.endUpdates('restarted');
    this.order = this.beginOrder();
    void this.relearn(this.order);
  }

  /** @param {import('./order.js').Order} order that has begun @returns {Promise<void>} once it knows what was published before, or is over */
  async relearn(order) {
    for (let isNoted = false; !order.isOver; await after(LEARN_MS, undefined, { ref: false })) {
      try {
        return await order.learn();
      } catch (error) {
        if (codeOf(error) === 'CLOSED') return;
        if (!isNoted) this.failed(error);
        isNoted = true;
      }
    }
  }

  /**
   * @param {readonly Draft[]} drafts checked
   * @returns {Promise<Published[]>} once they are stored
   * @throws {import('../../lib/errors.js').HoldfastError} BUSY, CLOSED, STORE
   */
  async publish(drafts) {
    const { cursors } = this.order; // if it ends meanwhile, the ids report that publications may be lost
    const receipts = await this.broker.append(drafts);
    return receipts.map(({ sequence, isNew }, i) => {
      this.counts[isNew ? 'hubPublished' : 'hubDuplicates']++;
      return { id: drafts[i].id ?? cursors.of(sequence), sequence, isNew };
    });
  }

  /** @param {readonly Selector[]} selectors @param {Session | null} session @returns {Place} */
  placeOf(selectors, session) {
    return this.audience.placeOf(selectors, session);
  }

  /**
   * @param {string | undefined} cursor @param {Place} place @param {import('./events.js').Script} [script] by default events
   * @param {number} [mostBytes] of what the stream gets first, about
   * @returns {Opening | Promise<Opening>} a promise if publications have to be collected first
   */
  prepare(cursor, place, script, mostBytes) {
    return this.order.openings.prepare(cursor, place, script, mostBytes);
  }

  /**
   * Somebody wants to open a stream now.
   * @param {Place} place @param {string} address @param {boolean} [isListed] whether presence has it
   * @returns {Admission} to be passed to `enter` or `dismiss`
   * @throws {LimitError}
   */
  admit({ session }, address, isListed = true) {
    if (isListed) this.checkPresence();
    return this.limits?.take(address, session?.subject ?? 0) ?? null;
  }

  /** @throws {LimitError} 503 if nothing more can be listed */
  checkPresence() {
    if (this.presence?.isFull) throw FULL;
  }

  /** There is no stream after all. @param {Admission} admission */
  dismiss(admission) {
    if (admission) this.limits?.release(admission);
  }

  /**
   * A stream is held at this place from now on.
   * @param {number} id @param {Place} place @param {Entrance} how
   */
  enter(id, place, { format, dialect, address, mayPublish, admission }) {
    this.counts.hubOpened++;
    if (admission) this.limits?.keep(id, admission);
    if (format === 'websocket' && !this.sockets.byId.has(id))
      this.sockets.enter(id, { place, dialect, address, mayPublish });
    if (FORMATS[format].isListed && place.selectors.length > 0) this.list(id, place, dialect);
    this.settle(id, place);
  }

  /** What is counted for a stream. @param {number} id @param {Place} place */
  settle(id, place) {
    if (place.uses.length === 0) return;
    this.audience.enter(place);
    this.places.set(id, place);
  }

  /** @param {number} id @param {Place} place @param {import('../access/grants.js').Dialect} dialect of all streams at this place */
  list(id, place, dialect) {
    if (!this.presence) return;
    place.listing ||= textOf(dialect, place.selectors, place.session);
    this.presence.enter(id, place.listing);
  }

  /**
   * A WebSocket asks for something else from now on.
   * @param {number} id @param {import('./sockets.js').Socket} socket @param {readonly Selector[]} selectors
   */
  move(id, socket, selectors) {
    const { place: before, dialect } = socket;
    const place = this.placeOf(selectors, before.session);
    this.leavePlace(id, () => this.settle(id, place));
    const [old, now] = [before, place].map(({ channels }) => new Set(channels));
    for (const channel of now) if (!old.has(channel)) this.hold.subscribe(id, channel);
    for (const channel of old) if (!now.has(channel)) this.hold.unsubscribe(id, channel);
    socket.place = place;
    if (before.selectors.length + selectors.length > 0) this.list(id, place, dialect);
  }

  /** @param {number} id of a stream that is about to be held @param {Place} place @returns {{ labels?: Labels | undefined, tag?: string | undefined }} what the Hold has to know about it */
  marksOf(id, place) {
    return { labels: labelsOf(place.session, Date.now()), tag: this.sockets.tagOf(id) };
  }

  /** A stream that is about to be held ends after what it gets first: its client comes again for the rest. @param {number} id */
  endSoon(id) {
    setImmediate(() => this.hold.end(id)); // without the native core, a WebSocket is opened a little later
  }

  /**
   * A stream has come from another process, where it was opened. What is kept for it is undone when it ends.
   * @param {import('./taken.js').Stream} stream also one that is not the hub's
   */
  takeIn(stream) {
    const { id, channels, subject, address } = stream;
    const socket = this.sockets.taken(stream, this.audience);
    if (socket === undefined && !channels.some((one) => one.startsWith(OURS))) return;
    const place = socket === undefined ? this.taken.of(channels) : socket?.place;
    if (!place) return this.hold.end(id); // its client comes back with its cursor
    this.limits?.takeIn(id, address, subject);
    if (socket) this.sockets.enter(id, socket);
    this.settle(id, place);
  }

  /** @returns {Note[]} */
  notes() {
    return [...notesOf(this.audience), ...this.sockets.notes()];
  }

  /** @param {readonly Note[]} notes of all hubs whose streams come next */
  learn(notes) {
    const isOfPlaces = (/** @type {Note} */ note) => Array.isArray(note[1]);
    this.taken.learn(/** @type {import('./taken.js').Note[]} */ (notes.filter(isOfPlaces)));
    this.sockets.learn(
      /** @type {import('./sockets.js').Note[]} */ (notes.filter((note) => !isOfPlaces(note))),
    );
  }

  /** Prefixes of channels: streams that are only on such ones need not be taken in. */
  get quiet() {
    return this.limits?.countsStreams ? [] : QUIET;
  }

  /** @returns {Promise<void>} once the Hold has been given everything that was fed so far */
  async settled() {
    await this.order.feed.emptied;
  }

  /** It has ended. @param {number} id */
  leave(id) {
    this.joining.ids.delete(id);
    this.sockets.leave(id);
    this.leavePlace(id);
  }

  /** @param {number} id @param {() => void} [enter] called before, so that what both need is not given up */
  leavePlace(id, enter) {
    const place = this.places.get(id);
    this.places.delete(id);
    enter?.();
    if (place) this.audience.leave(place);
  }

  /** @returns {import('../../lib/hubcounters.js').HubCounters} */
  counters() {
    return { ...this.counts, hubWaiting: this.order.feed.pending.length };
  }

  /** @returns {string} the cursor of now */
  get cursor() {
    return this.order.cursor;
  }
}
