/*
 * Everything of a broker from some place on, in order and once: first what is stored, then what comes.
 *
 *     reading --nothing newer is stored--> following
 *        \--what comes next is gone, or can't be read: skip says where to go on
 */
import { setTimeout as after } from 'node:timers/promises';
import { codeOf } from '../lib/errors.js';

/** Publications of one read. */
const PAGE = 1000;
/** How long a broker may be behind the place, or not be able to read; and how often it is tried. */
const PATIENCE_MS = 4000;
const STEP_MS = 10;

/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Publication} Publication */

/**
 * Where the publications go.
 * @typedef {object} Place
 * @property {number} last sequence of the last one that it has
 * @property {(publications: readonly Publication[]) => void | Promise<void>} take gets the next ones; `last` moves
 * @property {() => void | Promise<void>} skip what comes after `last` is gone: it moves `last` to where it goes on
 * @property {() => void} reset the order has begun anew, or has a gap: it moves `last` too, or ends the pursuit
 */

export class Pursuit {
  /** @param {Broker} broker @param {Place} place */
  constructor(broker, place) {
    this.broker = broker;
    this.place = place;
    this.isFollowing = false;
    this.isOver = false;
    /** Counts how often the order has begun anew: what was read before is not about it. */
    this.orders = 0;
    broker.follow(
      (publications) => (this.isFollowing ? place.take(publications) : undefined),
      () => this.begin(),
    );
  }

  /** @returns {Promise<void>} once everything that is stored has been passed on, and the rest is followed; or if it is over */
  async run() {
    const { broker, place } = this;
    let endMs = performance.now() + PATIENCE_MS;
    while (!this.isOver && place.last !== broker.last) {
      const { orders } = this;
      const page = await this.next();
      if (this.isOver || orders !== this.orders) continue;
      if (page?.[0]?.sequence === place.last + 1) {
        void place.take(page); // a slow place is still behind with what came before
        endMs = performance.now() + PATIENCE_MS;
      } else if (page?.length || this.isGone() || performance.now() > endMs) await place.skip();
      else if (place.last !== broker.last) await after(STEP_MS);
    }
    this.isFollowing = !this.isOver; // in one step with the last look
  }

  /** @returns {boolean} whether what comes next is not stored any more */
  isGone() {
    const { broker, place } = this;
    return place.last < broker.last && place.last + 1 < broker.first;
  }

  /** @returns {Promise<readonly Publication[] | null>} what comes next; null if it can't be read now */
  async next() {
    const { broker, place } = this;
    if (place.last > broker.last) return null; // a node may not have all publications of the others yet
    try {
      return await broker.read(place.last, PAGE);
    } catch (error) {
      if (codeOf(error) !== 'BUSY') throw error;
      return null;
    }
  }

  begin() {
    this.orders++;
    if (!this.isOver) this.place.reset();
  }

  /** Nothing more is passed on. */
  end() {
    this.isOver = true;
    this.isFollowing = false;
  }
}
