/*
 * Hands the streams of a native Hold over to another one, in another process: the shards do it (native/core/src/shard/handover), and
 * this says when. A round is all or nothing:
 *
 *     giver    offer --> move ----------------> release        the streams are gone from here
 *                           \--> takeBack                      as if nothing had happened
 *     taker    connect --> (streams are parked) --> go         the streams are here
 *                                              \--> drop       they are still there
 *
 * Until `release` and `go`, nothing is written to a stream that moves, or read from it. The caller sees to it that both Holds have
 * been told the same publications before `move`.
 */
import { HoldfastError } from '../lib/errors.js';
import { withCode } from './bind.js';

/** @typedef {import('../native/types.js').CoreEvents} CoreEvents */
/** @typedef {import('../native/types.js').Taken} Taken */

/**
 * What came of a round.
 * @typedef {object} Moved
 * @property {number} prepared connections that would be gone from here after `release`
 * @property {number} left those that may move in a later round
 *
 * @typedef {{ shard: number, name: string, weight: number }} Source an old shard, and which of ours takes a share of its streams
 */

/**
 * The reports that every shard makes once.
 * @template T, R
 * @typedef {object} Gathering
 * @property {T[]} reports
 * @property {(reports: T[]) => R} sum
 * @property {(sum: R) => void} resolve
 * @property {(error: HoldfastError) => void} reject
 */

export class Handover {
  /**
   * @param {import('../native/types.js').Core} core
   * @param {number} count of shards
   * @param {() => void} flush passes on what was said to the Hold
   */
  constructor(core, count, flush) {
    this.core = core;
    this.count = count;
    this.flush = flush;
    /** @type {Gathering<import('../native/types.js').Move, Moved> | null} */
    this.moving = null;
    /** @type {Gathering<import('../native/types.js').Released, number[]> | null} */
    this.releasing = null;
    /** @type {Gathering<import('../native/types.js').Went, number> | null} */
    this.going = null;
    this.onTaken = (/** @type {Taken} */ _stream) => {};
  }

  /** The giver: lets others connect. @returns {string[]} by shard, the names under which they can */
  offer() {
    return withCode('listen', () => this.core.offer());
  }

  /**
   * The giver: connections move for so long. What was said to the Hold before takes effect before; what is said after it waits until
   * `release` or `takeBack`.
   * @param {{ ms: number, wantsIds: boolean }} round `wantsIds`: whether `release` tells which id became which
   * @returns {Promise<Moved>}
   * @throws {HoldfastError} HANDOVER if a shard of the other side is gone, or one of ours has failed; call `takeBack` then
   */
  move({ ms, wantsIds }) {
    this.flush();
    const moved = new Promise((resolve, reject) => {
      this.moving = { reports: [], sum: movedIn, resolve, reject };
    });
    this.core.beginMove(ms, wantsIds);
    return moved;
  }

  /** The giver: the streams of this round are not ours any more. @returns {Promise<number[]>} before, after, before…: their ids, if they were wanted */
  release() {
    const released = new Promise((resolve, reject) => {
      const sum = (/** @type {import('../native/types.js').Released[]} */ reports) =>
        reports.flatMap(({ ids }) => [...ids]);
      this.releasing = { reports: [], sum, resolve, reject };
    });
    this.core.release();
    return released;
  }

  /** The giver: all streams of this round go on here, and the offer ends. */
  takeBack() {
    this.fail('the round was taken back');
    this.core.takeBack();
  }

  /** The giver: the offer ends after the last round. */
  withdraw() {
    this.core.withdraw();
  }

  /** The taker. @param {readonly Source[]} sources @throws {NodeJS.ErrnoException} ECONNREFUSED if a shard offers nothing any more */
  connect(sources) {
    for (const { shard, name, weight } of sources)
      withCode('connect', () => this.core.takeFrom(shard, name, weight));
  }

  /**
   * The taker: the streams of this round are ours.
   * @param {object} how
   * @param {readonly string[] | null} how.quiet null reports no stream; otherwise those are reported that have a tag, or a channel that
   *   begins with none of these
   * @param {(stream: Taken) => void} how.onTaken must not throw
   * @returns {Promise<number>} how many streams, once all were reported
   * @throws {HoldfastError} HANDOVER if a shard has failed: its streams are lost
   */
  go({ quiet, onTaken }) {
    this.onTaken = onTaken;
    const went = new Promise((resolve, reject) => {
      const sum = (/** @type {import('../native/types.js').Went[]} */ reports) =>
        reports.reduce((all, { streams }) => all + streams, 0);
      this.going = { reports: [], sum, resolve, reject };
    });
    this.core.go(quiet && [...quiet]);
    return went;
  }

  /** The taker: what is parked is closed here, and so are the connections to the other side. */
  drop() {
    this.core.dropParked();
  }

  /** @param {CoreEvents} events */
  take({ moves, released, taken, went, failed }) {
    if (failed.length > 0) this.fail(`shard ${failed[0]} failed`);
    for (const stream of taken) this.onTaken(stream);
    this.moving = this.gathered(this.moving, moves);
    this.releasing = this.gathered(this.releasing, released);
    this.going = this.gathered(this.going, went);
  }

  /**
   * @template T, R
   * @param {Gathering<T, R> | null} gathering @param {readonly T[]} reports
   * @returns {Gathering<T, R> | null} null once it is complete
   */
  gathered(gathering, reports) {
    if (!gathering) return null;
    gathering.reports.push(...reports);
    if (gathering.reports.length < this.count) return gathering;
    try {
      gathering.resolve(gathering.sum(gathering.reports));
    } catch (error) {
      gathering.reject(/** @type {HoldfastError} */ (error));
    }
    return null;
  }

  /** Nobody needs to wait any more. @param {string} why */
  fail(why) {
    const error = new HoldfastError('HANDOVER', `the streams can't be handed over: ${why}`);
    for (const gathering of [this.moving, this.releasing, this.going]) gathering?.reject(error);
    this.moving = null;
    this.releasing = null;
    this.going = null;
  }
}

/** @param {import('../native/types.js').Move[]} reports @returns {Moved} @throws {HoldfastError} HANDOVER */
function movedIn(reports) {
  if (reports.some(({ isBroken }) => isBroken))
    throw new HoldfastError('HANDOVER', "the streams can't be handed over: the other side is gone");
  const sum = (/** @type {'prepared' | 'left'} */ name) => reports.reduce((all, one) => all + one[name], 0);
  return { prepared: sum('prepared'), left: sum('left') };
}
