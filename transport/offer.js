/*
 * The offer of a Hold to hand over its streams to a process that connects at a path. The other side is takeover.js.
 *
 *     giver                                                     taker
 *       | <-- takeOver: protocol, shards, whether with TLS ------ |
 *       | --- refused: problem ---------------------------------> |   or:
 *       | --- connect, then for each round: sync, go -----------> |   each is answered
 *       | --- say: what the application publishes, or ends -----> |   after a round; publications are answered: said
 *       | --- done ---------------------------------------------> |   and then only say and said, until one of them ends
 */
import { createServer } from 'node:net';
import { messageOf } from '../lib/errors.js';
import { Link, PROTOCOL } from './link.js';
import { listenAt } from './offerpath.js';
import { Rounds } from './rounds.js';
import { tlsProblem } from './takeover.js';

/** Within this time, a taker must have said what it is. */
const HELLO_MS = 5000;

/** @typedef {import('./link.js').Message} Message */

export class Offer {
  /** @param {import('./holder.js').StreamHolder} holder @param {number} periodMs over which streams that can't move are ended */
  constructor(holder, periodMs) {
    this.holder = holder;
    this.periodMs = periodMs;
    this.server = createServer((socket) => void this.serve(new Link(socket)));
    this.server.unref();
    /** The attempt that is in progress. @type {Rounds | null} */
    this.rounds = null;
    /** @type {{ reason: unknown } | null} */
    this.withdrawal = null;
    /** Whether the outcome of the offer is decided. */
    this.isOver = false;
    this.removePath = async () => {};
    this.resolve = (/** @type {number} */ _streams) => {};
    this.reject = (/** @type {unknown} */ _reason) => {};
    /** @type {Promise<number>} */
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.result.catch(() => {}); // it may be withdrawn before anybody waits for it
  }

  /** @param {string} path */
  async open(path) {
    this.removePath = await listenAt(this.server, path);
    if (this.isOver) await this.closePath(); // it was withdrawn meanwhile
  }

  /**
   * Ends the offer, unless streams have moved already: then it goes on to its end, but soon.
   * @param {unknown} reason with which `result` rejects
   * @returns {Promise<void>} when no round is in progress any more
   */
  async withdraw(reason) {
    this.withdrawal ??= { reason };
    const { rounds } = this;
    if (!rounds) return this.abandon(reason);
    rounds.stop();
    await rounds.ended.catch(() => {});
  }

  /** @param {unknown} reason */
  async abandon(reason) {
    if (this.isOver) return;
    this.isOver = true;
    await this.closePath();
    this.reject(reason);
  }

  /** Before another process may use it. */
  async closePath() {
    this.server.close();
    await this.removePath();
  }

  /** @param {Link} link to somebody who may be a taker */
  async serve(link) {
    const timer = setTimeout(() => link.close(), HELLO_MS);
    /** @type {Rounds | null} */
    let rounds = null;
    for await (const message of link.messages()) {
      clearTimeout(timer);
      if (rounds && message.type === 'said') rounds.relay.counted(message);
      else if (!rounds && message.type === 'takeOver') rounds = this.begin(link, message);
      else link.close();
    }
    clearTimeout(timer);
    rounds?.forgetRelay();
  }

  /** @param {Link} link @param {Message} hello @returns {Rounds | null} */
  begin(link, hello) {
    const problem = this.problemWith(hello);
    if (problem) {
      link.send({ type: 'refused', problem });
      link.end();
      return null;
    }
    this.rounds = new Rounds(this.holder, link);
    void this.hand(this.rounds, hello.shards);
    return this.rounds;
  }

  /** @param {Message} hello @returns {string} '' if there is none */
  problemWith({ protocol, shards, isTls = false }) {
    if (protocol !== PROTOCOL)
      return `the process that has them speaks version ${PROTOCOL} of the protocol, this one ${protocol}: use versions of holdfast that match`;
    if (!Number.isInteger(shards) || shards < 1)
      return `the number of shards is ${shards}, not a whole number above 0`;
    const { place } = this.holder;
    if (place && isTls !== (place.isTls ?? false)) return tlsProblem(!isTls);
    if (this.rounds || this.isOver) return 'another process is already taking over the streams';
    return '';
  }

  /** @param {Rounds} rounds @param {number} shards */
  async hand(rounds, shards) {
    const problem = await rounds.run(shards).catch((error) => error);
    // What is there already stays there, and the rest has to end here.
    const isDone = !problem || (rounds.isCommitted && rounds.link.isOpen);
    if (!isDone) await this.goOn(rounds, problem);
    // Only now: whoever reads it may connect at once.
    if (problem && !this.withdrawal) this.holder.report(problem);
    if (isDone) return this.finish(rounds);
    if (this.withdrawal) await this.abandon(this.withdrawal.reason);
  }

  /** Goes on without the other process, so that the next one may take over. @param {Rounds} rounds @param {unknown} problem */
  async goOn({ link, isCommitted }, problem) {
    link.send({ type: 'refused', problem: messageOf(problem) });
    link.end();
    if (isCommitted) await this.holder.listenAgain().catch((error) => this.holder.report(error));
    this.rounds = null;
  }

  /** The other process has the streams. @param {Rounds} rounds */
  async finish({ link, streams }) {
    this.isOver = true;
    await this.closePath();
    link.send({ type: 'done' });
    link.unref();
    await this.holder.close(this.periodMs);
    this.resolve(streams);
  }
}
