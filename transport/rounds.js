/*
 * Hands the streams of a Hold over to another process, in rounds. Each is all or nothing:
 *
 *     keep what the application says -> sync -> move -> release -> go -> what was kept goes to both
 *                                                 \-- anything fails: take back, and what was kept takes effect here
 *
 * Until `release` the streams are here, and nothing was written to them elsewhere; after it, they are there.
 */
import { pairsOf } from '../lib/pairing.js';
import { failed } from './link.js';
import { Relay } from './relay.js';

/** How long streams move in a round, and therefore about how long publications pause. */
const ROUND_MS = 300;
/** Between rounds, for connections that can't move yet: their decision or their adoption is in progress. */
const REST_MS = 100;
/** When the last round begins at the latest. What can't move by then stays. */
const ROUNDS_MS = 10_000;
const ANSWER_MS = 5000;
/** While publications wait. */
const SYNC_MS = 2000;

/** @typedef {import('./holder.js').StreamHolder} StreamHolder */
/** @typedef {import('./link.js').Link} Link */

export class Rounds {
  /** @param {StreamHolder} holder with the native core @param {Link} link */
  constructor(holder, link) {
    this.holder = holder;
    this.link = link;
    this.handover = /** @type {import('./handover.js').Handover} */ (holder.handover);
    this.shards = /** @type {import('./shards.js').Shards} */ (holder.shards);
    this.relay = new Relay(link, holder.maxQueueBytes);
    /** Streams that are in the other process now. */
    this.streams = 0;
    /** Whether a round was released: then the listening sockets are in the other process, too. */
    this.isCommitted = false;
    this.isStopping = false;
    /** Settles with `run`. @type {Promise<void>} */
    this.ended = Promise.resolve();
  }

  /**
   * @param {number} count shards of the other process
   * @returns {Promise<void>} when nothing is left that can move
   * @throws {import('../lib/errors.js').HoldfastError} HANDOVER: a round has failed. Those before it stand (`isCommitted`)
   */
  run(count) {
    this.ended = this.runAll(count);
    return this.ended;
  }

  /** @param {number} count */
  async runAll(count) {
    try {
      await this.connect(count);
      const endMs = performance.now() + ROUNDS_MS;
      while ((await this.round()) && !this.isStopping && performance.now() < endMs)
        await new Promise((resolve) => setTimeout(resolve, REST_MS));
    } catch (error) {
      // Without a connection, nothing that is said can get there any more.
      if (!this.isCommitted || !this.link.isOpen) this.forgetRelay();
      throw error;
    } finally {
      this.handover.withdraw();
    }
  }

  /** Ends at once if nothing has moved yet, or else after the round that is in progress. */
  stop() {
    this.isStopping = true;
    if (!this.isCommitted) this.link.close();
  }

  /** @param {number} count */
  async connect(count) {
    const names = this.handover.offer();
    const pairs = pairsOf(names.length, count);
    const sources = pairs.map(({ from, to, weight }) => ({ shard: to, name: names[from], weight }));
    const { place, tls } = this.holder;
    const ticketKeys = place?.isTls ? Buffer.from(tls?.ticketKeys ?? []).toString('base64') : undefined;
    await this.link.ask('connect', { sources, listens: place, ticketKeys }, ANSWER_MS);
  }

  /** @returns {Promise<boolean>} whether there is, or may be, more to move */
  async round() {
    await this.shards.adoptions.pause();
    this.pause();
    try {
      await this.link.ask('sync', {}, SYNC_MS);
      const moved = await this.move();
      this.isCommitted = true;
      // Only a shard that fails rejects, and its streams are lost anyway.
      await this.handover.release().catch((error) => this.holder.report(error));
      const going = this.link.ask('go', {}, ANSWER_MS);
      this.resume();
      this.streams += await going;
      return moved.prepared + moved.left + this.holder.adopting > 0;
    } finally {
      this.resume();
    }
  }

  /** @returns {Promise<{ prepared: number, left: number }>} */
  async move() {
    try {
      const moved = await this.handover.move({ ms: ROUND_MS, wantsIds: false });
      if (this.isStopping && !this.isCommitted) throw failed('the offer was withdrawn');
      if (!this.link.isOpen) throw failed('the other process has ended');
      return moved;
    } catch (error) {
      this.handover.takeBack();
      throw error;
    }
  }

  /** From now on, what the application says waits here. */
  pause() {
    this.holder.relay = this.relay;
    this.relay.keep();
    this.shards.pause();
  }

  /** What has waited goes on to the streams that are here, and if there was a round, to the other process. */
  resume() {
    if (this.isCommitted) this.relay.flow();
    this.shards.resume();
  }

  forgetRelay() {
    this.relay.end();
    if (this.holder.relay === this.relay) this.holder.relay = null;
  }
}
