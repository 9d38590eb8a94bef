/*
 * Publications on disk, in LMDB. What blocks runs in a thread (disk/thread.js); here are the queue, the followers, and the order
 * in which they are told. One transaction runs at a time, and everything that comes in the meantime is in the next one.
 *
 *     append --> queue --> thread: one transaction, flushed --> followers --> the appends resolve
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../lib/errors.js';
import { Appends } from './appends.js';
import { Cached } from './cached.js';
import { Calls } from './disk/calls.js';
import { fileOf } from './disk/environment.js';
import { decodeFrame, encodeFrames, framesOf } from './disk/frames.js';
import { sizeOf } from './limits.js';
import { numbered } from './order.js';
import { SharedReads, TRIM_MS } from './parts.js';

const CHECK = fileURLToPath(new URL('./disk/check.js', import.meta.url));
const CHECK_MS = 30_000;
/** A transaction costs much CPU, because it is flushed. */
const GATHER_MS = 2;

/** @typedef {import('./disk/log.js').Part} Part */
/** @typedef {import('./disk/store.js').Stored} Stored */
/** @typedef {import('./disk/thread.js').Opened} Opened */
/** @typedef {import('./index.js').Copy} Copy */
/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Listener} Listener */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */

/**
 * @param {import('./index.js').Limits & { store: string, syncs: boolean }} options
 * @returns {Promise<Copy>}
 * @throws {HoldfastError} STORE
 */
export async function openDisk({ store, syncs, ...limits }) {
  await check(store);
  const { historyCount, historyAgeMs, historyBytes, isCopy = false } = limits;
  const retention = { historyCount, historyAgeMs, historyBytes };
  const thread = new Calls({ folder: store, syncs, retention, isCopy });
  try {
    /** @type {Opened} */
    const opened = await thread.call({ name: 'open' });
    const topics = opened.topics.filter((topic) => !limits.isCached(topic));
    await thread.call({ name: 'uncache', topics });
    return new DiskBroker(thread, opened, limits);
  } catch (error) {
    await thread.end();
    throw error;
  }
}

/** @param {string} folder @returns {Promise<void>} @throws {HoldfastError} STORE if what is stored is damaged */
function check(folder) {
  if (!existsSync(fileOf(folder))) return Promise.resolve();
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CHECK, folder], { timeout: CHECK_MS }, (error, stdout) => {
      const how = error?.signal ? `reading it ended with ${error.signal}` : stdout;
      if (!how) return resolve();
      const line = `--store ${folder} is damaged (${how}): move it away to start with an empty one, or use another folder`;
      reject(new HoldfastError('STORE', line));
    });
  });
}

/** @implements {Copy} */
class DiskBroker {
  /** @param {Calls} thread @param {Opened} opened @param {import('./index.js').Limits} limits */
  constructor(thread, { epoch, key, first, last }, { historyAgeMs, isCached, maxQueueBytes }) {
    this.thread = thread;
    this.epoch = epoch;
    this.key = key;
    this.first = first;
    this.last = last;
    this.historyAgeMs = historyAgeMs;
    this.isCached = isCached;
    this.oldestAt = 0;
    /** @type {Listener[]} */
    this.listeners = [];
    /** @type {(() => void)[]} */
    this.resetListeners = [];
    this.reads = new SharedReads();
    this.appends = new Appends(maxQueueBytes, GATHER_MS, (calls) => this.store(calls));
    this.timer = setInterval(() => this.trimOld(), TRIM_MS).unref();
  }

  /** @param {readonly Draft[]} drafts */
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
    return this.reads.share(`read ${after} ${most}`, async () => {
      /** @type {Part[]} */
      const parts = await this.thread.call({ name: 'read', after, most });
      return parts.flatMap(publicationsOf);
    });
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  find(id) {
    return this.reads.share(`find ${id}`, () => this.thread.call({ name: 'find', id }));
  }

  /** @returns {Promise<readonly Publication[]>} */
  latest() {
    return this.reads.share('latest', () => this.readLatest());
  }

  /** In several calls, because it may be long. @returns {Promise<readonly Publication[]>} */
  async readLatest() {
    /** @type {Publication[]} */
    const found = [];
    for (let after = 0; ; after = /** @type {Publication} */ (found.at(-1)).sequence) {
      /** @type {Part[]} */
      const parts = await this.thread.call({ name: 'latest', after });
      if (parts.length === 0) break;
      for (const part of parts) found.push(...publicationsOf(part));
    }
    const cached = new Cached(this.isCached); // some may have been replaced in the meantime
    for (const publication of found) cached.note(publication, 0);
    return found.filter(({ sequence }) => cached.has(sequence));
  }

  /** @param {import('./index.js').Order} order */
  async restart(order) {
    await this.appends.running;
    await this.thread.call({ name: 'restart', order });
    this.epoch = order.epoch;
    this.key = order.key;
    this.first = order.last + 1;
    this.last = order.last;
    this.reads.restart();
    for (const onReset of this.resetListeners) onReset();
  }

  async close() {
    clearInterval(this.timer);
    await this.appends.close();
    await this.thread.call({ name: 'close' }).catch(() => {}); // what is answered is stored
    await this.thread.end();
  }

  /** @param {import('./appends.js').Call[]} calls */
  async store(calls) {
    const drafts = calls.flatMap(({ drafts }) => drafts);
    const frames = encodeFrames(drafts);
    try {
      /** @type {Stored} */
      const stored = await this.thread.call(
        { name: 'append', frames, cachedTopics: this.cachedTopicsOf(drafts) },
        [frames.buffer],
      );
      const { publications, receipts } = this.ordered(drafts, stored);
      this.update(stored);
      this.tell(publications);
      let start = 0;
      for (const { drafts, resolve } of calls) {
        const end = start + drafts.length;
        resolve(receipts.slice(start, end));
        start = end;
      }
    } catch (error) {
      for (const { reject } of calls) reject(/** @type {Error} */ (error));
    }
  }

  /** @param {readonly Draft[]} drafts @returns {Map<number, string[]>} those of each draft that has some, by index */
  cachedTopicsOf(drafts) {
    /** @type {Map<number, string[]>} */
    const found = new Map();
    for (const [index, { topics }] of drafts.entries()) {
      const cached = topics.filter(this.isCached);
      if (cached.length > 0) found.set(index, cached);
    }
    return found;
  }

  /** @param {readonly Draft[]} drafts @param {Stored} stored @returns {{ publications: Publication[], receipts: Receipt[] }} */
  ordered(drafts, { at, known }) {
    const sequences = new Map(known);
    /** @type {Publication[]} */
    const publications = [];
    const receipts = drafts.map((draft, index) => {
      const before = sequences.get(index);
      if (before !== undefined) return { sequence: before, isNew: false };
      const sequence = this.last + publications.length + 1;
      publications.push(numbered(draft, sequence, at));
      return { sequence, isNew: true };
    });
    return { publications, receipts };
  }

  /** @param {Stored} stored */
  update({ first, last, oldestAt, isOver }) {
    this.first = first;
    this.last = last;
    this.oldestAt = oldestAt;
    if (isOver) this.trim();
  }

  /** @param {readonly Publication[]} publications */
  tell(publications) {
    if (publications.length === 0) return;
    let bytes = 0;
    for (const publication of publications) bytes += sizeOf(publication);
    for (const listener of this.listeners) this.appends.hold(bytes, listener(publications));
  }

  /** Drops what is too old, even if nothing is published. */
  trimOld() {
    if (this.first <= this.last && this.oldestAt <= Date.now() - this.historyAgeMs) this.trim();
  }

  trim() {
    this.appends.add([]).catch(() => {}); // the next publisher is told what is wrong
  }
}

/** @param {Part} part @returns {Publication[]} */
function publicationsOf({ sequence, at, frames }) {
  /** @type {Publication[]} */
  const publications = [];
  for (const frame of framesOf(frames))
    publications.push(decodeFrame(frames, frame, sequence + publications.length, at));
  return publications;
}
