/*
 * The hub: topics, history, recovery and grants on top of a Hold. It knows streams only by their ids.
 *
 *     publish --> broker --> feed --> Hold: streams that are open
 *                              \----> window --> openings: streams that are opened
 */
import { Audience } from './audience.js';
import { Cursors } from './cursor.js';
import { Feed } from './feed.js';
import { Latest } from './latest.js';
import { labelsOf, Openings } from './openings.js';
import { Recovery } from './recovery.js';
import { Window } from './window.js';

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('../broker/index.js').Publication} Publication */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./grants.js').Session} Session */
/** @typedef {import('./openings.js').Opening} Opening */
/** @typedef {import('./selectors.js').Selector} Selector */
/** @typedef {{ subject?: number, token?: number, expiresAtMs?: number }} Labels */

/**
 * What the hub needs of a Hold.
 * @typedef {object} HoldLike
 * @property {(channels: readonly string[], message: { id?: string, type?: string, retry?: number, data: string } | null, options: { cursor: string }) => Promise<number>} publish
 * @property {(id: number, payload: string) => void} write
 * @property {(id: number, channel: string) => void} subscribe
 * @property {(id: number, labels: Labels) => void} label
 * @property {(id: number) => void} end
 * @property {(which: 'subject' | 'token', label: number, reason: 'revoked') => void} endLabelled
 * @property {(channel: string, reason: 'revoked') => void} endChannel
 * @property {(response: import('node:http').ServerResponse, options: { encoding: 'updates' }) => Promise<number>} adopt
 * @property {(listener: (id: number) => void) => void} onStreamClose
 */

/** Publications from before the start that are kept at hand. */
const MOST_RECENT = 10_000;

/** @typedef {{ id: string, sequence: number, isNew: boolean }} Published `isNew` is false if the id was published before */

export class HubCore {
  /**
   * @param {object} parts
   * @param {HoldLike} parts.hold
   * @param {Broker} parts.broker
   * @param {(topic: string) => boolean} parts.isCached whether new subscribers get the last publication of a topic
   * @param {number} parts.windowBytes of publications that are kept at hand
   * @param {number} parts.mostReplayBytes above it, a client gets a replay in parts
   * @param {(error: unknown) => void} parts.onError
   */
  constructor({ hold, broker, isCached, windowBytes, mostReplayBytes, onError }) {
    this.hold = hold;
    this.broker = broker;
    this.cursors = new Cursors(broker);
    this.audience = new Audience();
    this.latest = new Latest(isCached);
    const idOf = (/** @type {Publication} */ { id, sequence }) => id ?? this.cursors.of(sequence);
    this.window = new Window({ mostBytes: windowBytes, last: broker.last, idOf });
    const { audience, window, latest, cursors } = this;
    this.recovery = new Recovery({ broker, window, latest, cursors, mostBytes: mostReplayBytes });
    this.openings = new Openings(this.recovery);
    this.feed = new Feed({ hold, audience, window, latest, cursors, onError });
    /** Where streams are that something is counted for. @type {Map<number, Place>} by id */
    this.places = new Map();
    broker.follow((publications) => this.feed.take(publications));
    void hold.publish([], null, { cursor: cursors.of(broker.last) });
    hold.onStreamClose((id) => this.leave(id));
  }

  /** Learns what was published before: recent publications, for clients that reconnect, and the last ones of cached topics. */
  async start() {
    for (const publication of await this.broker.latest()) this.latest.add(publication);
    const older = [];
    const { first } = this.window;
    for (let after = Math.max(this.broker.first - 1, first - 1 - MOST_RECENT); after < first - 1; ) {
      const page = await this.broker.read(after, first - 1 - after);
      if (page.length === 0 || (older.length > 0 && page[0].sequence !== after + 1)) return;
      for (const publication of page) if (publication.sequence < first) older.push(publication);
      after = page[page.length - 1].sequence;
    }
    // Those in between may have left the window again.
    if (older.length > 0 && this.window.first === first) this.window.prepend(older);
  }

  /**
   * @param {readonly Draft[]} drafts checked
   * @returns {Promise<Published[]>} once they are stored
   * @throws {import('../lib/errors.js').HoldfastError} BUSY, CLOSED, STORE
   */
  async publish(drafts) {
    const receipts = await this.broker.append(drafts);
    return receipts.map(({ sequence, isNew }, i) => ({
      id: drafts[i].id ?? this.cursors.of(sequence),
      sequence,
      isNew,
    }));
  }

  /** @param {readonly Selector[]} selectors @param {Session | null} session @returns {Place} */
  placeOf(selectors, session) {
    return this.audience.placeOf(selectors, session);
  }

  /**
   * @param {string | undefined} cursor @param {Place} place
   * @returns {Opening | Promise<Opening>} a promise if publications have to be collected first
   */
  prepare(cursor, place) {
    return this.openings.prepare(cursor, place);
  }

  /** A stream is held at this place from now on. @param {number} id @param {Place} place */
  enter(id, place) {
    if (place.uses.length === 0) return;
    this.audience.enter(place);
    this.places.set(id, place);
  }

  /** It has ended. @param {number} id */
  leave(id) {
    const place = this.places.get(id);
    if (!place) return;
    this.places.delete(id);
    this.audience.leave(place);
  }

  /**
   * Makes a stream of a response that is open for writing and whose head was not sent yet.
   * @param {import('node:http').ServerResponse} response
   * @param {Place} place
   * @param {Opening} opening
   * @returns {Promise<number>} its id
   */
  async adopt(response, place, opening) {
    const { hold } = this;
    const id = await hold.adopt(response, { encoding: 'updates' });
    const { text, isWhole } = opening.begin();
    hold.write(id, text);
    if (!isWhole) {
      hold.end(id);
      return id;
    }
    for (const channel of place.channels) hold.subscribe(id, channel);
    const labels = labelsOf(place.session, Date.now());
    if (labels) hold.label(id, labels);
    this.enter(id, place);
    return id;
  }

  /** @returns {string} the cursor of now */
  get cursor() {
    return this.cursors.of(this.window.last);
  }
}
