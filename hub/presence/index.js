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
import { Ends } from './ends.js';
import { Lists } from './lists.js';
import { Moves } from './moves.js';
import { Node } from './node.js';
import { Others } from './others.js';
import { Seats } from './seats.js';
import { bytesOf } from './table.js';
import { changeOf, countIn } from './texts.js';

/** Texts that are shared by the streams that have the same. */
const MOST_TEXTS = 1024;
/** Changes that may wait to be announced; above it, no more streams are taken. */
const MOST_CHANGES = 100_000;
/** There is room again when this part of a limit is free. */
const SLACK = 0.05;
/** Numbers of workers that the process before may still give. */
const OWNERS_APART = 65_536;
/** Tables of one worker, of times when this node was away. */
const MOST_TABLES = 8;

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('./announcements.js').Change} Change */
/** @typedef {import('./lists.js').Stream} Stream */

/** @typedef {import('./table.js').Owner} Owner */
/** @typedef {import('./table.js').Table} Table */

/**
 * A node that goes on in another process.
 * @typedef {object} Identity
 * @property {string} id
 * @property {number} life
 * @property {string} key of its subscribers, in base64
 * @property {number} lastOwner number of its last worker
 */

/**
 * What is told about our own streams.
 * @typedef {object} Watcher
 * @property {(owner: number, id: number, text: string) => void} entered
 * @property {(owner: number, id: number) => void} left
 * @property {(owner: number) => void} retired all streams of a worker have ended
 */

/** @type {Watcher} */
export const NOBODY = { entered: () => {}, left: () => {}, retired: () => {} };

export class Presence {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {string} options.path of the hub
   * @param {number} options.mostBytes that the streams may take
   * @param {(error: unknown) => void} options.onError called when publications fail; they are tried again
   * @param {Identity | null} [options.identity] of the process before
   */
  constructor({ broker, path, mostBytes, onError, identity = null }) {
    this.mostBytes = mostBytes;
    /** Called when `isFull` changes. */
    this.onFull = () => {};
    /** @type {Watcher} */
    this.watcher = NOBODY;
    this.node = new Node(identity ? { ...identity, key: Buffer.from(identity.key, 'base64') } : {});
    this.seats = new Seats();
    this.lastOwner = identity ? identity.lastOwner + OWNERS_APART : 0;
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
    this.moves = new Moves(this);
    this.ends = new Ends(this);
    this.lists = new Lists({ broker, path, streams: () => this.streams() });
  }

  /** For the process that takes over. @returns {Identity} */
  get identity() {
    const { id, life, subscribers } = this.node;
    return { id, life, key: Buffer.from(subscribers.key).toString('base64'), lastOwner: this.lastOwner };
  }

  /** A stream is open, or has other subscriptions from now on. @param {object} worker @param {number} id @param {string} text from `textOf` */
  enter(worker, id, text) {
    const seat = this.seats.of(worker);
    const listed = seat.find(id);
    if (listed) return this.change(listed, text);
    if (countIn(text) === 0) return;
    seat.owner ??= this.newOwner();
    const { owner } = seat;
    const shared = this.shared(text);
    owner.table.add(id, shared);
    this.watcher.entered(owner.number, id, shared);
    this.changed(owner, owner.table, id, shared, true);
  }

  /** @param {import('./seats.js').Origin} listed @param {string} now its text */
  change({ owner, id }, now) {
    const table = owner.tableOf(id);
    const before = table?.take(id);
    if (!table || before === undefined) return;
    const { text, begun, ended } = changeOf(before, now);
    table.add(id, text);
    this.account(before, -1);
    this.account(text, 1);
    this.watcher.entered(owner.number, id, text);
    const { life } = table;
    if (countIn(ended) > 0) this.announcements.add({ owner, id, text: ended, life, table, isActive: false });
    if (countIn(begun) > 0) this.announcements.add({ owner, id, text: begun, life, table, isActive: true });
    this.checkRoom();
  }

  /** It has ended. @param {object} worker @param {number} id of any stream, also of one that never entered */
  leave(worker, id) {
    const origin = this.seats.byWorker.get(worker)?.give(id);
    if (!origin) return;
    const { owner, id: listed } = origin;
    const table = owner.tableOf(listed);
    const text = table?.take(listed);
    if (!table || text === undefined) return;
    this.watcher.left(owner.number, listed);
    this.changed(owner, table, listed, text, false);
    this.ends.checkOwner(owner);
  }

  /**
   * Streams have moved from one worker to another one: nobody notices.
   * @param {object} from @param {object} to @param {readonly number[]} ids old and new in turn, also of streams that never entered
   */
  move(from, to, ids) {
    this.moves.move(from, to, ids);
  }

  /**
   * Streams have moved to another process, which has this node's identity. They stay on the list; if that process dies, `retire` the heir.
   * @param {object} from a worker @param {readonly number[]} ids as for `move` @param {object} heir stands for the other process
   * @returns {import('./moves.js').Entry[]} for `import` there
   */
  export(from, ids, heir) {
    return this.moves.export(from, ids, heir);
  }

  /** Streams have come from another process. @param {object} to a worker @param {readonly import('./moves.js').Entry[]} entries */
  import(to, entries) {
    this.moves.import(to, entries);
  }

  /** All streams of a worker have ended, because it died. @param {object} worker */
  retire(worker) {
    this.ends.retire(worker);
  }

  /** @returns {Owner} for a worker that has no streams yet */
  newOwner() {
    const owner = this.node.owner(++this.lastOwner);
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
    if (countIn(text) > 0) this.announcements.add({ owner, id, text, life: table.life, table, isActive });
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

/**
 * Streams in stale tables are announced again, so what was not announced yet is their beginning.
 * @param {Change[]} changes @returns {Change[]} without those of streams in stale tables that nobody has heard of
 */
function withoutStale(changes) {
  const begins = changes.filter(({ table, isActive }) => table.isStale && isActive);
  const nameOf = (/** @type {Change} */ { owner, id }) => `${owner.number} ${id}`;
  const unknown = new Set(begins.map(nameOf));
  return changes.filter((change) => !unknown.has(nameOf(change)));
}
