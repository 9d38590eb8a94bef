/*
 * What is asked of all workers while somebody looks at the dashboard: how many streams are on which topics. Each worker counts its
 * own, and a worker that does not answer in time is left out.
 */
import { mergeTops } from '../lib/tops.js';

/** @typedef {import('../lib/tops.js').Top} Top */
/** @typedef {(message: import('./messages.js').Count) => void} Send */
/** @typedef {{ top: Top, unanswered: number }} Outcome */
/** @typedef {{ waiting: Set<object>, tops: Top[], most: number, resolve: (outcome: Outcome) => void, timer: NodeJS.Timeout }} Round */

/** Workers report more than are shown, because the largest of all need not be the largest of each. */
const SPARE = 5;

export class Census {
  /** @param {number} answerMs how long workers may take to answer */
  constructor(answerMs) {
    this.answerMs = answerMs;
    this.lastId = 0;
    /** @type {Map<object, Send>} by an object that stands for the worker */
    this.workers = new Map();
    /** @type {Map<number, Round>} by id */
    this.rounds = new Map();
  }

  /** @param {object} worker @param {Send} send */
  add(worker, send) {
    this.workers.set(worker, send);
  }

  /** @param {object} worker died, with its streams */
  remove(worker) {
    this.workers.delete(worker);
    for (const id of this.rounds.keys()) this.answered(worker, id, null);
  }

  /** @param {number} most topics @returns {Promise<Outcome>} at the deadline at the latest */
  take(most) {
    const id = ++this.lastId;
    const waiting = new Set(this.workers.keys());
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finish(id), this.answerMs);
      this.rounds.set(id, { waiting, tops: [], most, resolve, timer });
      for (const send of this.workers.values()) send({ type: 'count', id, most: most * SPARE });
      if (waiting.size === 0) this.finish(id);
    });
  }

  /** @param {object} worker @param {number} id @param {Top | null} top null if it has died */
  answered(worker, id, top) {
    const round = this.rounds.get(id);
    if (!round?.waiting.delete(worker)) return;
    if (top) round.tops.push(top);
    if (round.waiting.size === 0) this.finish(id);
  }

  /** @param {number} id */
  finish(id) {
    const round = this.rounds.get(id);
    if (!round) return;
    this.rounds.delete(id);
    clearTimeout(round.timer);
    round.resolve({ top: mergeTops(round.tops, round.most), unanswered: round.waiting.size });
  }
}
