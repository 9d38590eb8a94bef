/*
 * A store: publications in an LMDB database. It blocks, and is used by the thread of the disk broker. Each `append` is a
 * transaction, which also drops what is beyond retention.
 *
 *     open --> ready --a transaction failed--> broken --next call: reopen--> ready
 */
import { randomBytes } from 'node:crypto';
import { HoldfastError } from '../../lib/errors.js';
import { newEpoch } from '../parts.js';
import { Contents } from './contents.js';
import { openEnvironment, storeError, Watch } from './environment.js';
import { takeOver } from './owner.js';

const FORMAT = 1;
/** Flags of LMDB transactions: abortable and committed at the end; flushed at the end as well, or not. */
const FLUSHED = 0x3;
const NOT_FLUSHED = 0x10003;
/** After an error, writing is not tried again for this long: LMDB also prints a line each time. */
const RETRY_MS = 1000;

/** @typedef {import('./environment.js').Environment} Environment */
/** @typedef {import('./log.js').Part} Part */

/**
 * @typedef {object} Options
 * @property {string} folder
 * @property {boolean} syncs
 * @property {import('../index.js').Retention} retention
 * @property {boolean} isCopy
 *
 * @typedef {object} Stored
 * @property {number} at of the new publications
 * @property {number} first of the history
 * @property {number} last
 * @property {number} oldestAt of the oldest one; Infinity if there is none
 * @property {import('./contents.js').Known[]} known
 * @property {boolean} isOver whether more is beyond retention
 *
 * @typedef {{ db: Environment, watch: Watch, contents: Contents }} Opened
 */

export class Store {
  /** @param {Options} options @returns {Promise<Store>} created if there is none @throws {HoldfastError} STORE */
  static async open(options) {
    const token = randomBytes(6).readUIntLE(0, 6);
    return new Store(options, token, await openAll(options, token));
  }

  /** @param {Options} options @param {number} token of the owner @param {Opened} opened */
  constructor(options, token, { db, watch, contents }) {
    this.options = options;
    this.token = token;
    this.db = db;
    this.watch = watch;
    this.contents = contents;
    this.last = contents.log.state.last;
    this.isOpen = true;
    this.isBroken = false;
    /** @type {{ error: HoldfastError, endMs: number } | null} the last error of a transaction */
    this.failure = null;
    this.isFlushed = true;
  }

  /** After an error, LMDB may refuse everything until it is opened again. */
  async recover() {
    if (!this.isBroken) return;
    this.watch.check();
    if (this.isOpen) await this.db.root.close();
    this.isOpen = false;
    Object.assign(this, await openAll(this.options, this.token), { isOpen: true });
    const { last } = this.contents.log.state;
    if (last !== this.last) {
      const line = `--store ${this.options.folder} ends with ${last} instead of ${this.last} after an error: restart the server`;
      throw new HoldfastError('STORE', line);
    }
    this.isBroken = false;
  }

  /**
   * @param {Uint8Array<ArrayBuffer>} frames of drafts; none only drops what is beyond retention
   * @param {Map<number, string[]>} cachedTopics of each draft that has some, by index
   * @returns {Promise<Stored>}
   */
  async append(frames, cachedTopics) {
    if (this.failure && performance.now() < this.failure.endMs) throw this.failure.error;
    await this.recover();
    const at = Date.now();
    const known =
      frames.length > 0 || this.contents.isOver()
        ? this.transact(() => this.contents.append(at, frames, cachedTopics))
        : [];
    const { oldestAt, log } = this.contents;
    const { first, last } = log.state;
    this.last = last;
    return { at, first, last, oldestAt, known, isOver: this.contents.isOver() };
  }

  /** @returns {import('../index.js').Order & { first: number }} */
  get order() {
    const { meta } = this.db;
    const { first, last } = this.contents.log.state;
    return { epoch: meta.get('epoch'), key: new Uint8Array(meta.get('key')), first, last };
  }

  /** Forgets everything, and begins another order, in one transaction. @param {import('../index.js').Order} order */
  async restart({ epoch, key, last }) {
    await this.recover();
    const { retention, isCopy } = this.options;
    this.contents = this.transact(() => {
      const { meta, log, kept, pins, ids } = this.db;
      for (const database of [log, kept, pins, ids]) database.clearSync();
      putEpoch(meta, { epoch, key });
      meta.put('state', { first: last + 1, last, bytes: 0 });
      return new Contents(this.db, retention, isCopy);
    });
    this.last = last;
  }

  /** @param {readonly string[]} topics that are not cached any more */
  uncache(topics) {
    if (topics.length > 0) this.transact(() => this.contents.uncache(topics));
  }

  /** @param {number} after @param {number} most @returns {Promise<Part[]>} */
  async read(after, most) {
    await this.recover();
    return this.contents.log.range(after, most);
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  async find(id) {
    await this.recover();
    return this.contents.find(id);
  }

  /** @param {number} after @returns {Promise<Part[]>} */
  async latest(after) {
    await this.recover();
    return this.contents.latest(after);
  }

  /** Makes what is not flushed yet safe from a power failure. */
  flush() {
    if (this.isFlushed || this.isBroken) return;
    this.transact(() => void this.db.meta.put('flushed', Date.now()), FLUSHED);
    this.isFlushed = true;
  }

  async close() {
    try {
      if (!this.isBroken) this.transact(() => void this.db.meta.remove('owner'), FLUSHED);
    } finally {
      if (this.isOpen) await this.db.root.close();
      this.isOpen = false;
    }
  }

  /**
   * All of it is stored, or nothing.
   * @template T
   * @param {() => T} work
   * @param {number} [flags]
   * @returns {T}
   * @throws {HoldfastError} STORE
   */
  transact(work, flags = this.options.syncs ? FLUSHED : NOT_FLUSHED) {
    this.watch.check();
    this.isBroken = true;
    try {
      const result = this.db.root.transactionSync(
        () => {
          this.checkOwner();
          return work();
        },
        /** @type {any} */ (flags),
      );
      this.isBroken = false;
      this.failure = null;
      this.isFlushed = flags === FLUSHED;
      return result;
    } catch (error) {
      const problem = storeError(error, this.options.folder, 'write');
      this.failure = { error: problem, endMs: performance.now() + RETRY_MS };
      throw problem;
    }
  }

  /** Another server can only have taken over if it could not see this process, for example from another container. */
  checkOwner() {
    if (this.db.meta.get('owner')?.token === this.token) return;
    const line = `another server has taken over --store ${this.options.folder}: stop one of the two`;
    throw new HoldfastError('STORE', line);
  }
}

/** @param {Options} options @param {number} token @returns {Promise<Opened>} */
async function openAll({ folder, syncs, retention, isCopy }, token) {
  const db = await openEnvironment(folder);
  try {
    return db.root.transactionSync(
      () => {
        checkFormat(db, folder);
        const { isLossy } = takeOver(db.meta, { token, syncs, folder });
        if (isLossy || db.meta.get('epoch') === undefined) putEpoch(db.meta, newEpoch());
        return { db, watch: new Watch(folder), contents: new Contents(db, retention, isCopy) };
      },
      /** @type {any} */ (FLUSHED),
    );
  } catch (error) {
    await db.root.close();
    throw storeError(error, folder, 'open');
  }
}

/** @param {Environment} db @param {string} folder */
function checkFormat({ meta }, folder) {
  const format = meta.get('format');
  if (format === undefined) {
    meta.put('format', FORMAT);
    meta.put('state', { first: 1, last: 0, bytes: 0 });
  } else if (format !== FORMAT) {
    const line = `--store ${folder} has format ${format}, and this version of Holdfast knows only ${FORMAT}: use a newer version, or another folder`;
    throw new HoldfastError('STORE', line);
  }
}

/** Cursors of earlier epochs are not valid any more. @param {Environment['meta']} meta @param {{ epoch: number, key: Uint8Array }} order */
function putEpoch(meta, { epoch, key }) {
  meta.put('epoch', epoch);
  meta.put('key', Buffer.from(key));
}
