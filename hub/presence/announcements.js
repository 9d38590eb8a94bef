/*
 * What presence publishes: a private publication for each subscription that begins or ends, in order. All of a turn of the event loop
 * are stored together, and while some are being stored, the others wait here. The ends of other nodes' streams don't wait for our own
 * changes: each has every other turn.
 */
import { setImmediate as endOfTurn, setTimeout as wait } from 'node:timers/promises';
import { codeOf } from '../../lib/errors.js';
import { dialectOf, jsonOf, subscriptionsIn, topicOf, withContext } from './texts.js';

/** Publications of one append. */
const MOST_AT_ONCE = 500;
/** The front of the list is given back when it is at least this long, and half of the list. */
const SLACK = 1024;
/** How soon an append that failed is tried again: for lack of room, and for other reasons. */
const BUSY_MS = 20;
const FAILED_MS = 1000;
/** @type {readonly Change[]} */
const NONE = [];

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {import('./table.js').Owner} Owner */

/**
 * A stream that came or went.
 * @typedef {object} Change
 * @property {Owner} owner
 * @property {number} id
 * @property {string} text
 * @property {boolean} isActive
 * @property {number} life of its node in which that is announced
 * @property {import('./table.js').Table} table that has it, or had it
 */

/**
 * The ends of all streams of another node.
 * @typedef {object} Burial
 * @property {Iterator<Change>} changes the rest of them
 * @property {boolean} isBegun whether some may have been announced
 * @property {boolean} isOver all have been, or are being announced
 * @property {boolean} isCancelled no more are announced
 */

/** @typedef {{ changes: Change[], drafts: Draft[], burial: Burial | null }} Batch what is stored together */

export class Announcements {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {string} options.path of the hub
   * @param {(error: unknown) => void} options.onError called when publications fail; they are tried again
   * @param {() => void} options.onProgress called when fewer wait
   */
  constructor({ broker, path, onError, onProgress }) {
    this.broker = broker;
    this.path = path;
    this.onError = onError;
    this.onProgress = onProgress;
    /** Those before `start` are announced. @type {Change[]} */
    this.changes = [];
    this.start = 0;
    /** Many at once, after all others. @type {Iterator<Change>[]} */
    this.series = [];
    /** @type {Burial[]} */
    this.burials = [];
    this.isBurialNext = false;
    /** Decides which changes are dropped before the next ones are announced. @type {((changes: Change[]) => Change[]) | null} */
    this.revision = null;
    /** Until everything is announced. @type {Promise<void> | null} */
    this.running = null;
    this.isClosed = false;
  }

  /** Changes that wait, but for those of a series. */
  get waiting() {
    return this.changes.length - this.start;
  }

  /** @param {Change} change */
  add(change) {
    this.changes.push(change);
    this.run();
  }

  /** @param {Iterator<Change>} changes */
  addSeries(changes) {
    this.series.push(changes);
    this.run();
  }

  /** @param {Iterator<Change>} changes the ends of a node's streams @returns {Burial} */
  bury(changes) {
    const burial = { changes, isBegun: false, isOver: false, isCancelled: false };
    this.burials.push(burial);
    this.run();
    return burial;
  }

  /**
   * Own streams are announced again.
   * @param {(changes: Change[]) => Change[]} revision which of the changes that wait are still right
   * @param {Iterator<Change>} begins
   */
  renew(revision, begins) {
    const before = this.revision;
    this.revision = before ? (changes) => revision(before(changes)) : revision;
    this.addSeries(begins);
  }

  /** @param {(change: Change) => boolean} isGone whether another process announces what begins */
  withdraw(isGone) {
    const waiting = this.changes.slice(this.start);
    this.changes = waiting.filter((change) => !change.isActive || !isGone(change));
    this.start = 0;
  }

  run() {
    this.running ??= this.publish();
  }

  /** Publishes whatever has changed until nothing is left. */
  async publish() {
    await endOfTurn();
    try {
      for (let batch = this.nextBatch(); batch; batch = this.nextBatch()) {
        await this.append(batch);
        this.onProgress();
      }
    } finally {
      this.running = null; // in one step with finding nothing: whatever comes from now on begins anew
    }
  }

  /** @returns {Batch | null} a few of those that are next */
  nextBatch() {
    this.revise([]);
    this.burials = this.burials.filter(({ isOver, isCancelled }) => !isOver && !isCancelled);
    this.isBurialNext = !this.isBurialNext;
    return this.isBurialNext
      ? (this.batchOfBurials() ?? this.batchOf(null))
      : (this.batchOf(null) ?? this.batchOfBurials());
  }

  /** @returns {Batch | null} of the first that has any */
  batchOfBurials() {
    for (const burial of this.burials) {
      const batch = this.batchOf(burial);
      if (batch) return batch;
    }
    return null;
  }

  /** @param {Burial | null} burial null for our own changes @returns {Batch | null} null if there are none */
  batchOf(burial) {
    /** @type {Batch} */
    const batch = { changes: [], drafts: [], burial };
    /** @type {Set<number>} */
    const begun = new Set();
    while (batch.drafts.length < MOST_AT_ONCE) {
      // Not together with its beginning: some brokers try them again one by one.
      const isLater = !burial && this.waiting > 0 && begun.has(this.endsNext());
      const change = isLater ? undefined : burial ? endOf(burial) : this.next();
      if (!change) break;
      if (change.isActive) begun.add(change.id);
      batch.changes.push(change);
      batch.drafts.push(...this.draftsOf(change));
    }
    return batch.changes.length > 0 ? batch : null;
  }

  /** @returns {number} the id of the stream that ends next; -1 if the next change is another one */
  endsNext() {
    const { isActive, id } = this.changes[this.start];
    return isActive ? -1 : id;
  }

  /** @returns {Change | undefined} */
  next() {
    if (this.waiting > 0) return this.shift();
    this.changes = [];
    this.start = 0;
    for (;;) {
      const change = this.series[0]?.next().value;
      if (change || this.series.length === 0) return change;
      this.series.shift();
    }
  }

  /** @returns {Change} the first that waits */
  shift() {
    const change = this.changes[this.start++];
    if (this.start >= SLACK && this.start * 2 >= this.changes.length) {
      this.changes.splice(0, this.start);
      this.start = 0;
    }
    return change;
  }

  /** @param {Change} change @returns {Draft[]} one for each subscription */
  draftsOf({ owner, id, text, life, isActive }) {
    const { node, number } = owner;
    const subscriber = node.subscribers.of(number, id);
    const dialect = dialectOf(text);
    return subscriptionsIn(text).map((subscription) => {
      const topic = topicOf(dialect, this.path, subscription, subscriber);
      const data = jsonOf(dialect, topic, subscription, subscriber, isActive);
      // Several nodes may announce the same.
      const key = `presence ${node.id} ${life} ${number} ${id} ${subscription.number} ${isActive}`;
      // Those of 0.x have no type: its clients expect them as plain messages.
      return dialect === 'legacy'
        ? { topics: [topic], data: withContext(data), private: true, key }
        : { topics: [topic], data, private: true, type: 'mercure', key };
    });
  }

  /** @param {Batch} batch @returns {Promise<void>} once it is stored, or need not be any more */
  async append({ changes, drafts, burial }) {
    for (let failures = 0; !this.isClosed; failures++) {
      try {
        if (burial) burial.isBegun = true;
        return void (await this.broker.append(drafts));
      } catch (error) {
        const code = codeOf(error);
        if (code === 'CLOSED') return;
        if (code === 'TOO_LARGE') return this.appendEach(drafts, error);
        if (failures === 0 && code !== 'BUSY') this.onError(error);
        await wait(code === 'BUSY' ? BUSY_MS : FAILED_MS, undefined, { ref: false });
      }
      if (burial?.isCancelled) return;
      if (!burial && this.revision) return this.revise(changes);
    }
  }

  /** One of them is too large: the others are announced without it. @param {readonly Draft[]} drafts @param {unknown} error */
  async appendEach(drafts, error) {
    if (drafts.length === 1) return this.onError(error);
    for (const draft of drafts) await this.append({ changes: [], drafts: [draft], burial: null });
  }

  /** @param {Change[]} unsent changes that come before those that wait */
  revise(unsent) {
    if (!this.revision) return;
    this.changes = this.revision([...unsent, ...this.changes.slice(this.start)]);
    this.start = 0;
    this.revision = null;
  }

  /** Nothing is announced any more. */
  close() {
    this.isClosed = true;
    this.changes = [];
    this.start = 0;
    this.series = [];
    this.burials = [];
  }
}

/** @param {Burial} burial @returns {Change | undefined} the next one */
function endOf(burial) {
  const { done, value } = burial.changes.next();
  if (!done) return value;
  burial.isOver = true;
  burial.changes = NONE.values(); // one that has ended still holds the streams of the node
  return undefined;
}
