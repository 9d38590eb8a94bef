/*
 * Presence (--subscriptions): who is subscribed to what, and an event whenever that changes. One object knows the streams of all
 * workers of a server, and those of other nodes (hub/nodes); it is where the broker is, so events, lists and cursors agree, and when a
 * worker or a node dies, its streams are not on the list any more and their end is announced.
 *
 *     enter, leave --> the streams --> announcements.js --> broker
 *     retire (a worker died) --^   ^          \------> lists.js
 *     other nodes (others.js) -----/
 *
 * A node announces its own streams; those that survive another one announce the end of its streams. A stream costs its text and a
 * place in a map, about 110 bytes in all; its id is computed (subscribers.js).
 */
import { Announcements } from './announcements.js';
import { Lists } from './lists.js';
import { Node } from './node.js';
import { Others } from './others.js';
import { bytesOf } from './table.js';
import { countIn } from './texts.js';

/** Texts that are shared by the streams that have the same. */
const MOST_TEXTS = 1024;
/** Changes that may wait to be announced; above it, no more streams are taken. */
const MOST_CHANGES = 100_000;
/** There is room again when this part of a limit is free. */
const SLACK = 0.05;
/** Tables of one worker, of times when this node was away. */
const MOST_TABLES = 8;

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('./announcements.js').Change} Change */
/** @typedef {import('./lists.js').Stream} Stream */
/** @typedef {import('./table.js').Owner} Owner */
/** @typedef {import('./table.js').Table} Table */

/**
 * What is told about our own streams.
 * @typedef {object} Watcher
 * @property {(owner: number, id: number, text: string) => void} entered
 * @property {(owner: number, id: number) => void} left
 * @property {(owner: number) => void} retired all streams of a worker have ended
 */

/** @type {Watcher} */
const NOBODY = { entered: () => {}, left: () => {}, retired: () => {} };

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
    /** @type {Watcher} */
    this.watcher = NOBODY;
    this.node = new Node();
    /** @type {Map<object, Owner>} by an object that stands for the worker */
    this.owners = new Map();
    this.lastOwner = 0;
    /** Whether others may not know the streams that enter. */
    this.isAway = false;
    /** Where those are. @type {Map<Owner, Table>} */
    this.since = new Map();
    /** Those that came last. @type {Map<string, string>} */
    this.texts = new Map();
    /** Of all streams. */
    this.bytes = 0;
    this.count = 0;
    this.isFull = false;
    const onProgress = () => this.checkRoom();
    this.announcements = new Announcements({ broker, path, onError, onProgress });
    this.others = new Others(this);
    this.lists = new Lists({ broker, path, streams: () => this.streams() });
  }

  /** A stream is open. @param {object} worker @param {number} id @param {string} text from `textOf` */
  enter(worker, id, text) {
    const owner = this.owners.get(worker) ?? this.seat(worker);
    const shared = this.shared(text);
    owner.table.add(id, shared);
    this.watcher.entered(owner.number, id, shared);
    this.changed(owner, owner.table, id, shared, true);
  }

  /** It has ended. @param {object} worker @param {number} id of any stream, also of one that never entered */
  leave(worker, id) {
    const owner = this.owners.get(worker);
    const table = owner?.tableOf(id);
    const text = table?.take(id);
    if (!owner || !table || text === undefined) return;
    this.watcher.left(owner.number, id);
    this.changed(owner, table, id, text, false);
  }

  /** @param {object} _from @param {object} _to @param {number[]} _ids */
  move(_from, _to, _ids) {}

  /** All streams of a worker have ended, because it died. @param {object} worker */
  retire(worker) {
    const owner = this.owners.get(worker);
    if (!owner) return;
    this.owners.delete(worker);
    this.since.delete(owner);
    this.node.owners.delete(owner.number);
    this.watcher.retired(owner.number);
    this.discount(owner.tables);
    this.announcements.addSeries(endsOf(owner));
    this.checkRoom();
  }

  /** @param {object} worker that has no streams yet @returns {Owner} */
  seat(worker) {
    const owner = this.node.owner(++this.lastOwner);
    this.owners.set(worker, owner);
    if (this.isAway) this.since.set(owner, owner.table);
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

  /** @param {Owner} owner @param {Table} table @param {number} id @param {string} text @param {boolean} isActive */
  changed(owner, table, id, text, isActive) {
    this.account(text, isActive ? 1 : -1);
    this.announcements.add({ owner, id, text, life: table.life, table, isActive });
    this.checkRoom();
  }

  /** @param {string} text of a stream @param {1 | -1} sign */
  account(text, sign) {
    this.bytes += sign * bytesOf(text);
    this.count += sign * countIn(text);
  }

  /** @param {readonly Table[]} tables that are not on the list any more */
  discount(tables) {
    for (const { bytes, count } of tables) {
      this.bytes -= bytes;
      this.count -= count;
    }
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
    yield* this.node.streams();
    for (const node of this.others.nodes.values()) yield* node.streams();
  }

  /** This node may have been away from now on: others don't know the streams that enter. */
  away() {
    this.back();
    this.isAway = true;
    for (const owner of this.node.owners.values()) {
      if (owner.tables.length >= MOST_TABLES) continue;
      if (owner.table.size > 0) owner.begin();
      this.since.set(owner, owner.table);
    }
  }

  /** Others know all streams again. */
  back() {
    this.isAway = false;
    this.since.clear();
  }

  /** Other nodes have announced the end of the streams that they knew, so they are announced again. */
  renew() {
    this.node.life++;
    for (const owner of this.node.owners.values()) {
      for (const table of owner.tables) table.isStale = table !== this.since.get(owner);
      owner.begin();
    }
    this.back();
    this.announcements.renew(withoutStale, this.begins());
  }

  /** @returns {Generator<Change>} the beginnings of streams in stale tables, which are in the newest one then */
  *begins() {
    for (const owner of this.node.owners.values())
      for (const table of owner.tables) {
        if (!table.isStale) continue;
        for (const [id, text] of table.streams()) {
          table.take(id);
          owner.table.add(id, text);
          yield { owner, id, text, life: owner.table.life, table: owner.table, isActive: true };
        }
      }
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
function* endsOf(owner) {
  for (const [id, text, table] of owner.streams())
    yield { owner, id, text, life: table.life, table, isActive: false };
}

/**
 * Streams in stale tables are announced again, so what was not announced yet is their beginning.
 * @param {Change[]} changes @returns {Change[]} without those of streams in stale tables that nobody has heard of
 */
function withoutStale(changes) {
  const nameOf = (/** @type {Change} */ { owner, id }) => `${owner.number} ${id}`;
  const begins = changes.filter(({ table, isActive }) => table.isStale && isActive);
  const unknown = new Set(begins.map(nameOf));
  return changes.filter((change) => !unknown.has(nameOf(change)));
}
