/*
 * What is for workers, in the order in which it has to be sent. While it is frozen, all of it waits here.
 */
import { MESSAGE_BYTES } from './limits.js';

/** How often workers are told how far retention has moved, if nothing else is sent. */
const FIRST_MS = 1000;

/** @typedef {import('./blocks.js').Block} Block */
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

export class Outbox {
  /** @param {import('./index.js').Broker} broker @param {Map<object, Seat>} seats all workers */
  constructor(broker, seats) {
    this.broker = broker;
    this.seats = seats;
    /** @type {Item[]} to be sent */
    this.items = [];
    this.isSending = false;
    /** The place of all workers while it is frozen. @type {Place | null} */
    this.frozen = null;
    this.first = broker.first;
    this.timer = setInterval(() => this.tellFirst(), FIRST_MS).unref();
  }

  close() {
    clearInterval(this.timer);
  }

  /** @returns {Place} */
  placeNow() {
    const { epoch, key, first, last } = this.broker;
    return { epoch, key: Buffer.from(key).toString('base64'), first, last };
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
    this.sendSoon();
  }

  /** The order has begun anew: what was said of the one before goes first. @returns {Place} in the next one */
  reset() {
    const place = this.placeNow();
    this.items.push({ reset: place, history: this.nextPlace?.first ?? this.first });
    return place;
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
