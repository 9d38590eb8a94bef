/*
 * What presence publishes: a private publication for each subscription that begins or ends, in order. All of a turn of the event loop
 * are stored together, and while some are being stored, the others wait here.
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

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {{ owner: number, id: number, text: string, isActive: boolean }} Change a stream that came or went */

export class Announcements {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {string} options.path of the hub
   * @param {import('./subscribers.js').Subscribers} options.subscribers
   * @param {(error: unknown) => void} options.onError called when publications fail; they are tried again
   * @param {() => void} options.onProgress called when fewer wait
   */
  constructor({ broker, path, subscribers, onError, onProgress }) {
    this.broker = broker;
    this.path = path;
    this.subscribers = subscribers;
    this.onError = onError;
    this.onProgress = onProgress;
    /** Those before `start` are announced. @type {Change[]} */
    this.changes = [];
    this.start = 0;
    /** Many at once, after all others. @type {Generator<Change>[]} */
    this.series = [];
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

  /** @param {Generator<Change>} changes */
  addSeries(changes) {
    this.series.push(changes);
    this.run();
  }

  run() {
    this.running ??= this.publish();
  }

  /** Publishes whatever has changed until nothing is left. */
  async publish() {
    await endOfTurn();
    try {
      for (let drafts = this.nextDrafts(); drafts.length > 0; drafts = this.nextDrafts()) {
        await this.append(drafts);
        this.onProgress();
      }
    } finally {
      this.running = null; // in one step with finding nothing: whatever comes from now on begins anew
    }
  }

  /** @returns {Draft[]} a few of those that are next */
  nextDrafts() {
    /** @type {Draft[]} */
    const drafts = [];
    for (let change = this.next(); change; change = this.next()) {
      drafts.push(...this.draftsOf(change));
      if (drafts.length >= MOST_AT_ONCE) break;
    }
    return drafts;
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
  draftsOf({ owner, id, text, isActive }) {
    const subscriber = this.subscribers.of(owner, id);
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

  /** Nothing is announced any more. */
  close() {
    this.isClosed = true;
    this.changes = [];
    this.start = 0;
    this.series = [];
  }
}
