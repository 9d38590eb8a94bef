/*
 * Presence (--subscriptions): who is subscribed to what, and an event whenever that changes. One object knows the streams of all
 * workers of a server; it is where the broker is, so events, lists and cursors agree, and when a worker dies, its streams
 * are not on the list any more and their end is announced.
 *
 *     enter, leave --> the streams --> announcements.js --> broker
 *     retire (a worker died) ---------------^      \------> lists.js
 *
 * A stream costs its text and a place in a map, about 110 bytes in all; its id is computed (subscribers.js).
 */
import { Announcements } from './announcements.js';
import { Lists } from './lists.js';
import { Subscribers } from './subscribers.js';
import { countIn } from './texts.js';

/** What a stream takes besides the characters of its text, at most: 52 for its place in a map, 24 for the text, and what a map has spare. */
const STREAM_BYTES = 96;
/** Texts that are shared by the streams that have the same. */
const MOST_TEXTS = 1024;
/** The streams of a worker are in this many maps, because a map that grows is copied. */
const MAPS = 61;
/** Changes that may wait to be announced; above it, no more streams are taken. */
const MOST_CHANGES = 100_000;
/** There is room again when this part of a limit is free. */
const SLACK = 0.05;

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('./announcements.js').Change} Change */
/** @typedef {import('./lists.js').Stream} Stream */
/** @typedef {{ number: number, maps: Map<number, string>[], bytes: number, count: number }} Owner a worker: texts of streams by id, what they
 *   take, and how many subscriptions they are */

export class Presence {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {string} options.path of the hub
   * @param {number} options.mostBytes that the streams may take
   * @param {(error: unknown) => void} options.onError called when publications fail; they are tried again
   */
  constructor({ broker, path, mostBytes, onError }) {
    this.mostBytes = mostBytes;
    /** Called when `isFull` changes. */
    this.onFull = () => {};
    /** @type {Map<object, Owner>} by an object that stands for the worker */
    this.owners = new Map();
    this.lastOwner = 0;
    /** Those that came last. @type {Map<string, string>} */
    this.texts = new Map();
    /** Of all streams. */
    this.bytes = 0;
    this.count = 0;
    this.isFull = false;
    const subscribers = new Subscribers();
    const onProgress = () => this.checkRoom();
    this.announcements = new Announcements({ broker, path, subscribers, onError, onProgress });
    this.lists = new Lists({ broker, path, subscribers, streams: () => this.streams() });
  }

  /** A stream is open. @param {object} worker @param {number} id @param {string} text from `textOf` */
  enter(worker, id, text) {
    const owner = this.owners.get(worker) ?? this.seat(worker);
    const shared = this.shared(text);
    owner.maps[id % MAPS].set(id, shared);
    this.changed(owner, id, shared, true);
  }

  /** It has ended. @param {object} worker @param {number} id of any stream, also of one that never entered */
  leave(worker, id) {
    const owner = this.owners.get(worker);
    const text = owner?.maps[id % MAPS].get(id);
    if (!owner || text === undefined) return;
    owner.maps[id % MAPS].delete(id);
    this.changed(owner, id, text, false);
  }

  /** All streams of a worker have ended, because it died. @param {object} worker */
  retire(worker) {
    const owner = this.owners.get(worker);
    if (!owner) return;
    this.owners.delete(worker);
    this.bytes -= owner.bytes;
    this.count -= owner.count;
    this.announcements.addSeries(endsOf(owner));
    this.checkRoom();
  }

  /** @param {object} worker that has no streams yet @returns {Owner} */
  seat(worker) {
    const maps = Array.from({ length: MAPS }, () => new Map());
    const owner = { number: ++this.lastOwner, maps, bytes: 0, count: 0 };
    this.owners.set(worker, owner);
    return owner;
  }

  /** @param {string} text @returns {string} an equal one that others have, if it was seen lately */
  shared(text) {
    const known = this.texts.get(text);
    if (known !== undefined) return known;
    if (this.texts.size >= MOST_TEXTS) this.texts.clear();
    this.texts.set(text, text);
    return text;
  }

  /** @param {Owner} owner @param {number} id @param {string} text @param {boolean} isActive */
  changed(owner, id, text, isActive) {
    const sign = isActive ? 1 : -1;
    const [bytes, count] = [sign * (STREAM_BYTES + 2 * text.length), sign * countIn(text)];
    owner.bytes += bytes;
    owner.count += count;
    this.bytes += bytes;
    this.count += count;
    this.announcements.add({ owner: owner.number, id, text, isActive });
    this.checkRoom();
  }

  checkRoom() {
    const part = Math.max(this.bytes / this.mostBytes, this.announcements.waiting / MOST_CHANGES);
    const isFull = this.isFull ? part > 1 - SLACK : part >= 1;
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    this.onFull();
  }

  /** @returns {Generator<Stream>} all streams */
  *streams() {
    for (const { number: owner, maps } of this.owners.values())
      for (const map of maps) for (const [id, text] of map) yield { owner, id, text };
  }

  /** See `Lists`. @param {import('./messages.js').Query} query @param {(part: string) => void | Promise<void>} send */
  list(query, send) {
    return this.lists.list(query, send);
  }

  /** @returns {Promise<void>} once everything is announced; the caller knows how long to wait */
  async flush() {
    await this.announcements.running;
  }

  close() {
    this.announcements.close();
  }
}

/** @param {Owner} owner @returns {Generator<Change>} */
function* endsOf({ number: owner, maps }) {
  for (const map of maps) for (const [id, text] of map) yield { owner, id, text, isActive: false };
}
