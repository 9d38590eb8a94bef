/*
 * How far the stream is, how far this node is, and who waits for it.
 */
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { Newest } from './newest.js';
import { windowMsOf } from './stream.js';

/** How often the stream is looked at. */
export const LOOK_MS = 1000;
/** How long a question may wait for publications that this node does not have yet, and how often it is asked whether they are there. */
const CATCH_UP_MS = 2000;
const STEP_MS = 20;

/** @typedef {import('./stream.js').Info} Info */

export class Progress {
  /**
   * @param {object} parts
   * @param {import('./link.js').Link} parts.link
   * @param {import('../index.js').Copy} parts.copy
   * @param {() => Promise<Info | null>} parts.ask about the stream
   */
  constructor({ link, copy, ask }) {
    this.link = link;
    this.copy = copy;
    this.newest = new Newest(ask);
    /** What the last look at the stream has found. */
    this.seen = { first: copy.first, last: copy.last, atMs: 0 };
    /** How long NATS knows the id of a publication. */
    this.windowMs = 0;
    /** When this node last had everything. */
    this.currentMs = performance.now();
    this.isFollowing = false;
    /** Whether it does not follow the stream any more. */
    this.isOver = false;
    /** Why the stream can't be followed, and why the copy can't be written; '' if they can. */
    this.problem = '';
    this.storeProblem = '';
    /** Those that wait for the copy. @type {Set<{ sequence: number, done: () => void }>} */
    this.waiting = new Set();
  }

  /** For the monitor. @returns {import('../index.js').State} */
  get state() {
    const { link, isFollowing, behind, lagMs } = this;
    return {
      isConnected: link.isConnected && isFollowing,
      behind,
      lagMs: Math.round(lagMs),
      problem: link.problem || this.storeProblem || this.problem,
    };
  }

  /** Publications that the stream had at the last look, and the copy does not have. */
  get behind() {
    return Math.max(0, this.seen.last - this.copy.last);
  }

  /** How long ago this node last had everything; 0 if it has. */
  get lagMs() {
    const nowMs = performance.now();
    const { link, isFollowing, seen } = this;
    const isFresh =
      link.isConnected && isFollowing && seen.atMs > Math.max(link.sinceMs, nowMs - 3 * LOOK_MS);
    return isFresh && this.behind === 0 ? 0 : nowMs - this.currentMs;
  }

  /** @param {Info} info */
  note(info) {
    const { first_seq: first, last_seq: last } = info.state;
    this.windowMs = windowMsOf(info);
    this.seen = { first: Math.max(first, 1), last, atMs: performance.now() };
    this.advanced();
  }

  /** The copy has more than before. */
  advanced() {
    const { last } = this.copy;
    if (last >= this.seen.last) this.currentMs = Math.max(this.currentMs, this.seen.atMs);
    for (const { sequence, done } of this.waiting) if (sequence <= last) done();
  }

  /** @param {number} sequence @param {number} endMs @returns {Promise<void>} when the copy has it, or if that takes long */
  reached(sequence, endMs) {
    if (sequence <= this.copy.last) return Promise.resolve();
    return new Promise((resolve) => {
      const one = {
        sequence,
        done: () => {
          clearTimeout(timer);
          this.waiting.delete(one);
          resolve();
        },
      };
      const timer = setTimeout(one.done, endMs - performance.now());
      this.waiting.add(one);
    });
  }

  /**
   * @returns {Promise<void>} when this node has everything that was published before the call
   * @throws {HoldfastError} BUSY if that takes long
   */
  async caughtUp() {
    const endMs = performance.now() + CATCH_UP_MS;
    if (!(await this.link.ready(CATCH_UP_MS))) throw behind(this.link.problem);
    const info = await this.newest.get().catch((error) => {
      throw behind(messageOf(error));
    });
    if (!info) throw behind('the stream is gone');
    while (this.copy.last < info.state.last_seq) {
      if (performance.now() >= endMs || this.isOver) throw behind(this.state.problem);
      await after(STEP_MS);
    }
  }

  /** Nobody waits any more. */
  end() {
    this.isOver = true;
    for (const { done } of this.waiting) done();
  }
}

/** @param {string} problem @returns {HoldfastError} */
function behind(problem) {
  return new HoldfastError('BUSY', `this server is behind NATS${problem && ` (${problem})`}: try again`);
}
