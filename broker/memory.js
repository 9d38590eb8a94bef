/*
 * Publications in memory: they are lost when the process ends, and so the next one starts a new epoch.
 */
import { Appends } from './appends.js';
import { Cached } from './cached.js';
import { History } from './history.js';
import { sequenceAt, withoutSequence, withSequence } from './ids.js';
import { sizeOf } from './limits.js';
import { putInOrder } from './order.js';
import { newEpoch, SharedReads, TRIM_MS, TRIM_STEP } from './parts.js';

/** @typedef {import('./index.js').Copy} Copy */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Listener} Listener */

/** @implements {Copy} */
export class MemoryBroker {
  /** @param {import('./index.js').Limits} limits */
  constructor({ historyCount, historyAgeMs, historyBytes, isCached, maxQueueBytes, isCopy = false }) {
    this.retention = { historyCount, historyAgeMs, historyBytes };
    this.isCopy = isCopy;
    const { epoch, key } = newEpoch();
    this.epoch = epoch;
    this.key = key;
    this.history = new History(0);
    this.cached = new Cached(isCached);
    /** @type {Map<number, Publication>} those of cached topics that are beyond retention, by sequence */
    this.kept = new Map();
    /** @type {Map<string, import('./ids.js').Where>} by the publisher's id */
    this.ids = new Map();
    /** @type {Listener[]} */
    this.listeners = [];
    /** @type {(() => void)[]} */
    this.resetListeners = [];
    this.reads = new SharedReads();
    this.appends = new Appends(maxQueueBytes, 0, (calls) => this.store(calls));
    this.isTrimming = false;
    this.timer = setInterval(() => this.trim(), TRIM_MS).unref();
  }

  get first() {
    return this.history.first;
  }

  get last() {
    return this.history.last;
  }

  /** @param {readonly import('./index.js').Draft[]} drafts */
  append(drafts) {
    return this.appends.add(drafts);
  }

  /** What waits to be stored or delivered. */
  get waitingBytes() {
    return this.appends.bytes;
  }

  /** @param {Listener} listener @param {() => void} [onReset] */
  follow(listener, onReset) {
    this.listeners.push(listener);
    if (onReset) this.resetListeners.push(onReset);
  }

  /** @param {number} after @param {number} most @returns {Promise<readonly Publication[]>} */
  read(after, most) {
    return this.reads.share(`${after}:${most}`, async () => this.history.range(after, most));
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  async find(id) {
    return sequenceAt(this.ids.get(id));
  }

  /** @returns {Promise<readonly Publication[]>} */
  async latest() {
    const found = this.cached.sequences().map((sequence) => this.get(sequence));
    return found.filter((publication) => publication !== undefined);
  }

  /** @param {import('./index.js').Order} order */
  async restart(order) {
    await this.appends.running;
    this.begin(order);
    this.reads.restart();
    for (const onReset of this.resetListeners) onReset();
  }

  /** @param {import('./index.js').Order} order in which nothing is stored here yet */
  begin({ epoch, key, last }) {
    this.epoch = epoch;
    this.key = key;
    this.history = new History(last);
    this.cached = new Cached(this.cached.isCached);
    this.kept.clear();
    this.ids.clear();
  }

  /** @param {readonly Publication[]} publications the last ones of cached topics from before the order that has begun, in order */
  loadKept(publications) {
    for (const publication of publications) {
      const { id, sequence } = publication;
      const released = this.cached.note(publication, sizeOf(publication));
      if (!this.cached.has(sequence)) continue; // other topics are cached here
      this.kept.set(sequence, publication);
      if (id !== undefined) this.ids.set(id, withSequence(this.ids.get(id), sequence));
      for (const one of released) this.release(one);
    }
  }

  /** @param {readonly Publication[]} publications the next ones, as another broker has stored them; followers are not told */
  load(publications) {
    for (const publication of publications) this.keep(publication);
    this.trim(publications.length + TRIM_STEP);
  }

  async close() {
    clearInterval(this.timer);
    await this.appends.close();
  }

  /** @param {import('./appends.js').Call[]} calls */
  store(calls) {
    const place = {
      last: this.last,
      at: Date.now(),
      find: this.isCopy ? null : (/** @type {string} */ id) => sequenceAt(this.ids.get(id)),
    };
    const { publications, receipts } = putInOrder(
      calls.map(({ drafts }) => drafts),
      place,
    );
    let bytes = 0;
    for (const publication of publications) bytes += this.keep(publication);
    this.trim(publications.length + TRIM_STEP);
    if (publications.length > 0)
      for (const listener of this.listeners) this.appends.hold(bytes, listener(publications));
    for (const [index, { resolve }] of calls.entries()) resolve(receipts[index]);
  }

  /** @param {Publication} publication @returns {number} its bytes */
  keep(publication) {
    const bytes = sizeOf(publication);
    this.history.push(publication, bytes);
    const { id, sequence } = publication;
    if (id !== undefined) this.ids.set(id, withSequence(this.ids.get(id), sequence));
    for (const released of this.cached.note(publication, bytes)) this.release(released);
    return bytes;
  }

  /** @param {number} sequence of a publication that is not the last of a cached topic any more */
  release(sequence) {
    const publication = this.kept.get(sequence);
    if (!publication) return; // it is still in the history
    this.kept.delete(sequence);
    this.forget(publication);
  }

  /** @param {Publication} publication that is stored nowhere any more */
  forget({ id, sequence }) {
    if (id === undefined) return;
    const where = withoutSequence(this.ids.get(id), sequence);
    if (where === undefined) this.ids.delete(id);
    else this.ids.set(id, where);
  }

  /** Drops what is beyond retention, a step at a time, so that nothing waits for it long. @param {number} [most] */
  trim(most = TRIM_STEP) {
    for (let count = 0; count < most && this.isOver(); count++) this.drop();
    if (this.isTrimming || !this.isOver()) return;
    this.isTrimming = true;
    setImmediate(() => {
      this.isTrimming = false;
      this.trim();
    });
  }

  /** @returns {boolean} whether the oldest publication is beyond retention */
  isOver() {
    const { history, retention } = this;
    if (history.count === 0) return false;
    if (history.count > retention.historyCount || history.bytes > retention.historyBytes) return true;
    const oldest = history.get(history.first);
    return oldest !== undefined && oldest.publication.at <= Date.now() - retention.historyAgeMs;
  }

  /** Drops the oldest publication. */
  drop() {
    const publication = this.history.shift()?.publication;
    if (!publication) return;
    if (this.cached.has(publication.sequence)) this.kept.set(publication.sequence, publication);
    else this.forget(publication);
  }

  /** @param {number} sequence @returns {Publication | undefined} */
  get(sequence) {
    return this.history.get(sequence)?.publication ?? this.kept.get(sequence);
  }
}
