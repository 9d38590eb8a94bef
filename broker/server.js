/*
 * The primary's side of the workers' brokers: it owns the real one, and feeds every publication to every worker, once and in
 * order. What a worker has not acknowledged counts as waiting, so a slow worker slows publishers down, and nothing is lost.
 *
 *     append of worker 1 --> broker --+--> feed of worker 1: publications, then the receipts
 *     append of worker 2 -->          +--> feed of worker 2: publications, then the receipts
 *
 * While it is frozen, everything goes on being stored, and whatever is for workers waits, in order (outbox.js): so they are all at the same
 * place, and streams can move between them (primary/handover).
 */
import { codeOf, messageOf } from '../lib/errors.js';
import { blocksOf, draftOf } from './blocks.js';
import { MESSAGE_BYTES, slicesOf } from './limits.js';
import { Outbox } from './outbox.js';
import { endOfTurn } from './parts.js';

/** @typedef {import('./blocks.js').Block} Block */
/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */
/** @typedef {import('./messages.js').Answer} Answer */
/** @typedef {import('./messages.js').Place} Place */
/** @typedef {import('./messages.js').Stored} Stored */
/** @typedef {import('./messages.js').ToRemote} ToRemote */
/** @typedef {import('./outbox.js').Seat} Seat */

export class BrokerServer {
  /** @param {Broker} broker */
  constructor(broker) {
    this.broker = broker;
    /** @type {Map<object, Seat>} by an object that stands for the worker */
    this.seats = new Map();
    this.outbox = new Outbox(broker, this.seats);
    /** @type {{ last: number, resolve: () => void }[]} batches that some worker has not delivered yet */
    this.batches = [];
    broker.follow(
      (publications) => this.publish(publications),
      () => this.reset(),
    );
  }

  /**
   * @param {object} worker gets every publication above the returned `last`
   * @param {(message: ToRemote) => void} send
   * @returns {Place} for its RemoteBroker
   */
  add(worker, send) {
    const { outbox } = this;
    outbox.sendAll(); // what is before it is not for this worker
    const place = outbox.frozen ?? outbox.placeNow();
    const { last } = outbox.nextPlace ?? place;
    this.seats.set(worker, { send, fed: last, stored: [] });
    return place;
  }

  /** @param {object} worker died: what it has not delivered is lost with its streams */
  remove(worker) {
    if (this.seats.delete(worker)) this.settle();
  }

  /** From now on nothing is sent to workers. All have been sent everything that is stored by now. */
  freeze() {
    this.outbox.freeze();
  }

  /** Workers get what they have not been sent meanwhile. */
  thaw() {
    this.outbox.thaw();
    this.settle();
  }

  /** Sends what waits for the end of the turn, unless it is frozen. */
  flush() {
    this.outbox.sendAll();
  }

  close() {
    this.outbox.close();
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
    this.outbox.sendAll();
    return this.outbox.placeNow();
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
        (receipts) => this.outbox.queue({ seat, stored: storedOf(id, receipts) }),
        (error) => this.outbox.queue({ seat, stored: { id, problem: problemOf(error) } }),
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
          this.outbox.queue({ seat, answer: () => ({ type: 'answer', id, ...part() }) });
      },
      (error) =>
        this.outbox.queue({ seat, answer: () => ({ type: 'answer', id, problem: problemOf(error) }) }),
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
    if (last === undefined || (this.seats.size === 0 && !this.outbox.frozen)) return undefined;
    for (const { slice, bytes } of slicesOf(publications, MESSAGE_BYTES))
      this.outbox.queue({ blocks: blocksOf(slice), bytes });
    return new Promise((resolve) => {
      this.batches.push({ last, resolve });
    });
  }

  /** The order has begun anew: what was said of the one before goes first, and nothing of it is waited for any more. */
  reset() {
    const place = this.outbox.reset();
    for (const seat of this.seats.values()) seat.fed = place.last;
    for (const { resolve } of this.batches.splice(0)) resolve();
    this.outbox.sendAll();
  }

  /** Batches that all workers have delivered do not wait any more. */
  settle() {
    let fed = Number.POSITIVE_INFINITY;
    for (const seat of this.seats.values()) fed = Math.min(fed, seat.fed);
    let count = 0;
    while (count < this.batches.length && this.batches[count].last <= fed) this.batches[count++].resolve();
    this.batches.splice(0, count);
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
