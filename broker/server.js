/*
 * The primary's side of the workers' brokers: it owns the real one, and feeds every publication to every worker, once and in
 * order. What a worker has not acknowledged counts as waiting, so a slow worker slows publishers down, and nothing is lost.
 *
 *     append of worker 1 --> broker --+--> feed of worker 1: publications, then the receipts
 *     append of worker 2 -->          +--> feed of worker 2: publications, then the receipts
 *
 * While it is frozen, everything goes on being stored, and whatever is for workers waits here, in order: so they are all at the same
 * place, and streams can move between them (primary/handover).
 */
import { codeOf, messageOf } from '../lib/errors.js';
import { blocksOf, draftOf } from './blocks.js';
import { MESSAGE_BYTES, slicesOf } from './limits.js';
import { endOfTurn } from './parts.js';

/** How often workers are told how far retention has moved, if nothing else is sent. */
const FIRST_MS = 1000;

/** @typedef {import('./blocks.js').Block} Block */
/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */
/** @typedef {import('./messages.js').Answer} Answer */
/** @typedef {import('./messages.js').Place} Place */
/** @typedef {import('./messages.js').Stored} Stored */
/** @typedef {import('./messages.js').ToRemote} ToRemote */

/**
 * @typedef {object} Seat a worker
 * @property {(message: ToRemote) => void} send
 * @property {number} fed sequence up to which it has delivered everything
 * @property {Stored[]} stored answers for its next feed
 *
 * @typedef {{ blocks: Block[], bytes: number } | Reset | { seat: Seat, stored: Stored } | { seat: Seat, answer: () => Answer }} Item in the
 *   order in which they have to be sent
 * @typedef {{ reset: Place, history: number }} Reset a new order; `history`: first sequence of the one before
 */

export class BrokerServer {
  /** @param {Broker} broker */
  constructor(broker) {
    this.broker = broker;
    /** @type {Map<object, Seat>} by an object that stands for the worker */
    this.seats = new Map();
    /** @type {Item[]} to be sent */
    this.items = [];
    this.isSending = false;
    /** The place of all workers while it is frozen. @type {Place | null} */
    this.frozen = null;
    this.first = broker.first;
    /** @type {{ last: number, resolve: () => void }[]} batches that some worker has not delivered yet */
    this.batches = [];
    broker.follow(
      (publications) => this.publish(publications),
      () => this.reset(),
    );
    this.timer = setInterval(() => this.tellFirst(), FIRST_MS).unref();
  }

  /**
   * @param {object} worker gets every publication above the returned `last`
   * @param {(message: ToRemote) => void} send
   * @returns {Place} for its RemoteBroker
   */
  add(worker, send) {
    this.sendAll(); // what is before it is not for this worker
    const place = this.frozen ?? this.placeNow();
    const { last } = this.nextPlace ?? place;
    this.seats.set(worker, { send, fed: last, stored: [] });
    return place;
  }

  /** @returns {Place} */
  placeNow() {
    const { epoch, key, first, last } = this.broker;
    return { epoch, key: Buffer.from(key).toString('base64'), first, last };
  }

  /** @param {object} worker died: what it has not delivered is lost with its streams */
  remove(worker) {
    if (this.seats.delete(worker)) this.settle();
  }

  /** From now on nothing is sent to workers. All have been sent everything that is stored by now. */
  freeze() {
    this.sendAll();
    this.frozen ??= this.placeNow();
  }

  /** Workers get what they have not been sent meanwhile. */
  thaw() {
    if (!this.frozen) return;
    this.frozen = null;
    this.settle();
    this.sendSoon();
  }

  /** Sends what waits for the end of the turn, unless it is frozen. */
  flush() {
    this.sendAll();
  }

  close() {
    clearInterval(this.timer);
    return this.broker.close();
  }

  /**
   * Another process continues the order: what is in progress is stored and answered, and everything else is refused. Workers can go
   * on asking a broker in memory.
   * @returns {Promise<Place>} once workers have been sent all of it, and a store on disk is free
   */
  async closeForHandover() {
    await this.close();
    await endOfTurn(); // the answers have been queued
    this.thaw();
    this.sendAll();
    return this.placeNow();
  }

  /** @param {object} worker @returns what to do with its messages */
  handlersOf(worker) {
    return {
      /** @param {import('./messages.js').Append} message */
      append: (message) => this.append(worker, message),
      /** @param {import('./messages.js').Read} message */
      read: (message) => this.read(worker, message),
      /** @param {import('./messages.js').Find} message */
      find: (message) => this.find(worker, message),
      /** @param {import('./messages.js').Latest} message */
      latest: (message) => this.latest(worker, message),
      /** @param {import('./messages.js').Fed} message */
      fed: (message) => this.fed(worker, message),
    };
  }

  /** @param {object} worker @param {import('./messages.js').Append} message */
  append(worker, { calls }) {
    const seat = this.seats.get(worker);
    if (!seat) return;
    for (const { id, rows } of calls) {
      this.broker.append(rows.map(draftOf)).then(
        (receipts) => this.queue({ seat, stored: storedOf(id, receipts) }),
        (error) => this.queue({ seat, stored: { id, problem: problemOf(error) } }),
      );
    }
  }

  /** @param {object} worker @param {import('./messages.js').Read} message */
  read(worker, { id, after, most }) {
    const read = this.broker.read(after, most);
    this.answer(worker, id, read, (found) => [() => ({ blocks: blocksOf(found) })]);
  }

  /** @param {object} worker @param {import('./messages.js').Find} message */
  find(worker, { id, name }) {
    this.answer(worker, id, this.broker.find(name), (sequence) => [() => ({ sequence })]);
  }

  /** In several messages, because it may be long. @param {object} worker @param {import('./messages.js').Latest} message */
  latest(worker, { id }) {
    this.answer(worker, id, this.broker.latest(), (found) => [
      ...slicesOf(found, MESSAGE_BYTES).map(({ slice }) => () => ({ blocks: blocksOf(slice), more: true })),
      () => ({ blocks: [] }),
    ]);
  }

  /**
   * An answer is never ahead of the feed: it is queued behind the publications that it may contain.
   * @template T
   * @param {object} worker @param {number} id @param {Promise<T>} found
   * @param {(found: T) => (() => Omit<Answer, 'type' | 'id'>)[]} partsOf what makes the parts of the answer, when they are sent
   */
  answer(worker, id, found, partsOf) {
    const seat = this.seats.get(worker);
    if (!seat) return;
    found.then(
      (value) => {
        for (const part of partsOf(value))
          this.queue({ seat, answer: () => ({ type: 'answer', id, ...part() }) });
      },
      (error) => this.queue({ seat, answer: () => ({ type: 'answer', id, problem: problemOf(error) }) }),
    );
  }

  /** @param {object} worker @param {import('./messages.js').Fed} message */
  fed(worker, { epoch, sequence }) {
    const seat = this.seats.get(worker);
    if (!seat || epoch !== this.broker.epoch) return;
    seat.fed = sequence;
    this.settle();
  }

  /** @param {readonly Publication[]} publications @returns {Promise<void> | undefined} until all workers have delivered them */
  publish(publications) {
    const last = publications.at(-1)?.sequence;
    if (last === undefined || (this.seats.size === 0 && !this.frozen)) return undefined;
    for (const { slice, bytes } of slicesOf(publications, MESSAGE_BYTES))
      this.queue({ blocks: blocksOf(slice), bytes });
    return new Promise((resolve) => {
      this.batches.push({ last, resolve });
    });
  }

  /** The order has begun anew: what was said of the one before goes first, and nothing of it is waited for any more. */
  reset() {
    const place = this.placeNow();
    this.items.push({ reset: place, history: this.nextPlace?.first ?? this.first });
    for (const seat of this.seats.values()) seat.fed = place.last;
    for (const { resolve } of this.batches.splice(0)) resolve();
    this.sendAll();
  }

  /** Batches that all workers have delivered do not wait any more. */
  settle() {
    let fed = Number.POSITIVE_INFINITY;
    for (const seat of this.seats.values()) fed = Math.min(fed, seat.fed);
    let count = 0;
    while (count < this.batches.length && this.batches[count].last <= fed) this.batches[count++].resolve();
    this.batches.splice(0, count);
  }

  /** @param {Item} item */
  queue(item) {
    this.items.push(item);
    this.sendSoon();
  }

  sendSoon() {
    if (this.isSending || this.frozen || this.items.length === 0) return;
    this.isSending = true;
    setImmediate(() => this.sendTurn());
  }

  /** Sends what has come in this turn; if it is much, only a part of it. */
  sendTurn() {
    this.isSending = false;
    if (this.frozen) return;
    this.sendSome();
    this.sendSoon();
  }

  sendAll() {
    while (!this.frozen && this.items.length > 0) this.sendSome();
  }

  /** Sends one answer, or a new order, or a feed to every worker that needs one. */
  sendSome() {
    const [first] = this.items;
    if (!first) return;
    if ('answer' in first || 'reset' in first) {
      this.items.shift();
      return 'reset' in first ? this.sendReset(first.reset) : first.seat.send(first.answer());
    }
    let count = 0;
    /** @type {Block[]} */
    const blocks = [];
    for (let bytes = 0; count < this.items.length; count++) {
      const item = this.items[count];
      if ('answer' in item || 'reset' in item) break;
      if ('bytes' in item && bytes > 0 && bytes + item.bytes > MESSAGE_BYTES) break;
      if ('stored' in item) item.seat.stored.push(item.stored);
      else {
        blocks.push(...item.blocks);
        bytes += item.bytes;
      }
    }
    this.items = this.items.slice(count);
    this.sendFeeds(blocks, this.history());
  }

  /** In an order that has begun while it was frozen. @returns {Place | undefined} */
  get nextPlace() {
    const item = this.items.findLast((one) => 'reset' in one);
    return item && 'reset' in item ? item.reset : undefined;
  }

  /** @returns {number} first sequence of the history that the next items are about */
  history() {
    for (const item of this.items) if ('reset' in item) return item.history;
    return this.broker.first;
  }

  /** @param {Place} place */
  sendReset(place) {
    this.first = place.first;
    for (const seat of this.seats.values()) seat.send({ type: 'reset', place });
  }

  /** @param {Block[]} blocks @param {number} first of the history */
  sendFeeds(blocks, first) {
    const isNews = blocks.length > 0 || first !== this.first;
    this.first = first;
    for (const seat of this.seats.values()) {
      const { stored } = seat;
      if (!isNews && stored.length === 0) continue;
      seat.stored = [];
      seat.send({ type: 'feed', first, blocks, stored });
    }
  }

  tellFirst() {
    if (!this.frozen && this.items.length === 0) this.sendFeeds([], this.broker.first);
  }
}

/** @param {number} id @param {Receipt[]} receipts @returns {Stored} */
function storedOf(id, receipts) {
  const sequences = receipts.map(({ sequence }) => sequence);
  const known = receipts.flatMap(({ isNew }, index) => (isNew ? [] : [index]));
  return known.length > 0 ? { id, sequences, known } : { id, sequences };
}

/** @param {unknown} error */
function problemOf(error) {
  return { code: codeOf(error) || 'STORE', message: messageOf(error) };
}
