/*
 * Presence (--subscriptions): who is subscribed to what, and an event whenever that changes. One object knows the streams of all
 * workers of a server; it is where the broker is, so events, lists and cursors agree, and when a worker dies, its streams
 * are not on the list any more and their end is announced.
 *
 *     enter --> list --> changes --> broker: a publication for each subscription, all of a turn together
 *     leave --> list --> changes --> broker
 *     retire (a worker died) ------> broker, little by little
 *
 * A stream costs its text and a place in a map, about 110 bytes in all; its id is computed (subscribers.js).
 */
import { setImmediate as endOfTurn, setTimeout as wait } from 'node:timers/promises';
import { codeOf } from '../../lib/errors.js';
import { Slices } from '../slices.js';
import { Subscribers } from './subscribers.js';
import { countIn, dialectOf, jsonOf, subscriptionsIn, topicOf, withContext } from './texts.js';

/** What a stream takes besides the characters of its text, at most: 52 for its place in a map, 24 for the text, and what a map has spare. */
const STREAM_BYTES = 96;
/** Texts that are shared by the streams that have the same. */
const MOST_TEXTS = 1024;
/** The streams of a worker are in this many maps, because a map that grows is copied. */
const MAPS = 61;
/** Publications of one append. */
const MOST_AT_ONCE = 500;
/** Changes that may wait for the broker; above it, no more streams are taken. */
const MOST_CHANGES = 100_000;
/** When there is room again, there is room for this part of the limit. */
const SLACK = 0.05;
/** How soon an append that failed is tried again: for lack of room, and for other reasons. */
const BUSY_MS = 20;
const FAILED_MS = 1000;
/** Lists that are made at the same time; streams that are looked at between two looks at the clock. */
const MOST_LISTS = 4;
const STEP = 200;
/** About how much of a list is passed on at once, and the longest list. */
const PART_LENGTH = 65_536;
const MOST_LIST_LENGTH = 67_108_864;

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {import('./messages.js').Query} Query */
/** @typedef {import('./messages.js').Found} Found */
/** @typedef {{ number: number, maps: Map<number, string>[], bytes: number, count: number }} Owner a worker: texts of streams by id, what they
 *   take, and how many subscriptions they are */
/** @typedef {{ owner: Owner, id: number, text: string, isActive: boolean }} Change */

export class Presence {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {string} options.path of the hub
   * @param {number} options.mostBytes that the list may take
   * @param {(error: unknown) => void} options.onError called when publications fail; they are tried again
   * @param {(isFull: boolean) => void} [options.onFull] called when that changes
   */
  constructor({ broker, path, mostBytes, onError, onFull = () => {} }) {
    this.broker = broker;
    this.path = path;
    this.mostBytes = mostBytes;
    this.onError = onError;
    this.onFull = onFull;
    this.subscribers = new Subscribers();
    this.slices = new Slices(MOST_LISTS);
    /** @type {Map<object, Owner>} by an object that stands for the worker */
    this.owners = new Map();
    this.lastOwner = 0;
    /** Those that came last. @type {Map<string, string>} */
    this.texts = new Map();
    /** Of all streams on the list. */
    this.bytes = 0;
    this.count = 0;
    this.isFull = false;
    /** That are not announced yet; those before `start` are. @type {Change[]} */
    this.changes = [];
    this.start = 0;
    /** Streams of workers that died. @type {Generator<Change>[]} */
    this.retired = [];
    /** Until everything is announced. @type {Promise<void> | null} */
    this.running = null;
    this.isClosed = false;
  }

  /** A stream is open. @param {object} worker @param {number} id @param {string} text from `textOf` */
  enter(worker, id, text) {
    const owner = this.owners.get(worker) ?? this.seat(worker);
    const shared = this.shared(text);
    owner.maps[id % MAPS].set(id, shared);
    this.note(owner, text, 1);
    this.announce({ owner, id, text: shared, isActive: true });
  }

  /** It has ended. @param {object} worker @param {number} id of any stream, also of one that never entered */
  leave(worker, id) {
    const owner = this.owners.get(worker);
    const text = owner?.maps[id % MAPS].get(id);
    if (!owner || text === undefined) return;
    owner.maps[id % MAPS].delete(id);
    this.note(owner, text, -1);
    this.announce({ owner, id, text, isActive: false });
  }

  /** All streams of a worker have ended, because it died. @param {object} worker */
  retire(worker) {
    const owner = this.owners.get(worker);
    if (!owner) return;
    this.owners.delete(worker);
    this.add(-owner.bytes, -owner.count);
    this.retired.push(endsOf(owner));
    this.checkRoom();
    this.run();
  }

  /** @param {string} text @returns {string} an equal one that others have, if it was seen lately */
  shared(text) {
    const known = this.texts.get(text);
    if (known !== undefined) return known;
    if (this.texts.size >= MOST_TEXTS) this.texts.clear();
    this.texts.set(text, text);
    return text;
  }

  /** @param {object} worker that has no streams yet @returns {Owner} */
  seat(worker) {
    const maps = Array.from({ length: MAPS }, () => new Map());
    const owner = { number: ++this.lastOwner, maps, bytes: 0, count: 0 };
    this.owners.set(worker, owner);
    return owner;
  }

  /** @param {Owner} owner @param {string} text of a stream that comes or goes @param {1 | -1} sign */
  note(owner, text, sign) {
    const [bytes, count] = [sign * (STREAM_BYTES + 2 * text.length), sign * countIn(text)];
    owner.bytes += bytes;
    owner.count += count;
    this.add(bytes, count);
  }

  /** @param {number} bytes @param {number} count */
  add(bytes, count) {
    this.bytes += bytes;
    this.count += count;
  }

  checkRoom() {
    const part = Math.max(this.bytes / this.mostBytes, (this.changes.length - this.start) / MOST_CHANGES);
    const isFull = this.isFull ? part > 1 - SLACK : part >= 1;
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    this.onFull(isFull);
  }

  /** @param {Change} change */
  announce(change) {
    this.changes.push(change);
    this.checkRoom();
    this.run();
  }

  run() {
    this.running ??= this.publish().finally(() => {
      this.running = null;
    });
  }

  /** Publishes whatever has changed, in order, until nothing is left. */
  async publish() {
    await endOfTurn();
    for (let drafts = this.nextDrafts(); drafts.length > 0; drafts = this.nextDrafts()) {
      await this.append(drafts);
      this.checkRoom();
    }
  }

  /** @returns {Draft[]} a few of those that are next */
  nextDrafts() {
    /** @type {Draft[]} */
    const drafts = [];
    for (let change = this.next(); change; change = this.next()) {
      const { owner, id, text, isActive } = change;
      drafts.push(...this.draftsOf(text, this.subscribers.of(owner.number, id), isActive));
      if (drafts.length >= MOST_AT_ONCE) break;
    }
    return drafts;
  }

  /** @returns {Change | undefined} */
  next() {
    if (this.start < this.changes.length) return this.changes[this.start++];
    this.changes = [];
    this.start = 0;
    for (;;) {
      const change = this.retired[0]?.next().value;
      if (change || this.retired.length === 0) return change;
      this.retired.shift();
    }
  }

  /** @param {string} text @param {string} subscriber @param {boolean} isActive @returns {Draft[]} one for each subscription */
  draftsOf(text, subscriber, isActive) {
    const dialect = dialectOf(text);
    return subscriptionsIn(text).map((subscription) => {
      const topic = topicOf(dialect, this.path, subscription, subscriber);
      const data = jsonOf(dialect, topic, subscription, subscriber, isActive);
      // Those of 0.x have no type: its clients expect them as plain messages.
      return dialect === 'legacy'
        ? { topics: [topic], data: withContext(data), private: true }
        : { topics: [topic], data, private: true, type: 'mercure' };
    });
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<void>} once they are stored, or the broker is closed */
  async append(drafts) {
    for (let failures = 0; !this.isClosed; failures++) {
      try {
        return void (await this.broker.append(drafts));
      } catch (error) {
        const code = codeOf(error);
        if (code === 'CLOSED') return;
        if (failures === 0 && code !== 'BUSY') this.onError(error);
        await wait(code === 'BUSY' ? BUSY_MS : FAILED_MS, undefined, { ref: false });
      }
    }
  }

  /**
   * What is on the list, in parts: JSON objects, separated by commas. Changes after the sequence that it returns may be on it
   * already, and changes before are.
   * @param {Query} query
   * @param {(part: string) => void | Promise<void>} send
   * @returns {Promise<Found>}
   */
  list(query, send) {
    return this.slices.run(() => this.collect(query, send));
  }

  /** @param {Query} query @param {(part: string) => void | Promise<void>} send @returns {Promise<Found>} */
  async collect({ dialect, keys, subscriber, unless }, send) {
    const sequence = this.broker.last;
    const isKnown = unless === '*' || unless.includes(sequence);
    if (isKnown && subscriber === '') return { sequence, count: 0, state: 'same' };
    let [looked, count, length, part] = [0, 0, 0, ''];
    for (const { number, id, text } of this.streams()) {
      if (++looked % STEP === 0) await this.slices.pause();
      for (const item of this.itemsOf(dialect, keys, subscriber, number, id, text))
        part += count++ === 0 ? item : `,${item}`;
      if (part.length < PART_LENGTH) continue;
      length += part.length;
      if (length > MOST_LIST_LENGTH) return { sequence, count, state: 'long' };
      await send(part);
      part = '';
    }
    if (part !== '') await send(part);
    return { sequence, count, state: isKnown && count > 0 ? 'same' : 'whole' };
  }

  /** @returns {Generator<{ number: number, id: number, text: string }>} all streams */
  *streams() {
    for (const { number, maps } of this.owners.values())
      for (const map of maps) for (const [id, text] of map) yield { number, id, text };
  }

  /**
   * @param {Query['dialect']} dialect @param {Query['keys']} keys @param {string} subscriber
   * @param {number} owner @param {number} id @param {string} text
   * @returns {string[]} JSON of the subscriptions of a stream that belong on a list
   */
  itemsOf(dialect, keys, subscriber, owner, id, text) {
    // Most streams are not about it, and comparing is faster than reading.
    if (keys && !keys.some((key) => text.includes(key))) return [];
    const wanted = subscriptionsIn(text).filter(({ key }) => !keys || keys.includes(key));
    if (wanted.length === 0) return [];
    const own = this.subscribers.of(owner, id);
    if (subscriber !== '' && subscriber !== own) return [];
    return wanted.map((one) => jsonOf(dialect, topicOf(dialect, this.path, one, own), one, own, true));
  }

  /** @returns {Promise<void>} once everything is announced; the caller knows how long to wait */
  async flush() {
    await this.running;
  }

  /** Announces nothing any more. */
  close() {
    this.isClosed = true;
    this.changes = [];
    this.start = 0;
    this.retired = [];
  }
}

/** @param {Owner} owner @returns {Generator<Change>} */
function* endsOf(owner) {
  for (const map of owner.maps) for (const [id, text] of map) yield { owner, id, text, isActive: false };
}
