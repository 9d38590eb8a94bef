/*
 * Revocations on their way to all workers. Each worker ends its own streams.
 */

/** @typedef {import('../hub/revocations.js').Revocation} Revocation */
/** @typedef {(message: import('./messages.js').Revoke) => void} Send */
/** @typedef {{ workers: number, unanswered: number }} Outcome */
/** @typedef {{ waiting: Set<object>, workers: number, resolve: (outcome: Outcome) => void, timer: NodeJS.Timeout }} Round */

export class Revocations {
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
    for (const id of this.rounds.keys()) this.answered(worker, id);
  }

  /**
   * @param {Revocation[]} list
   * @returns {Promise<Outcome>} once all workers are ending the streams, or at the deadline
   */
  revoke(list) {
    const id = ++this.lastId;
    const waiting = new Set(this.workers.keys());
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finish(id), this.answerMs);
      this.rounds.set(id, { waiting, workers: waiting.size, resolve, timer });
      for (const send of this.workers.values()) send({ type: 'revoke', id, list });
      if (waiting.size === 0) this.finish(id);
    });
  }

  /** @param {object} worker @param {number} id */
  answered(worker, id) {
    const round = this.rounds.get(id);
    if (round?.waiting.delete(worker) && round.waiting.size === 0) this.finish(id);
  }

  /** @param {number} id */
  finish(id) {
    const round = this.rounds.get(id);
    if (!round) return;
    this.rounds.delete(id);
    clearTimeout(round.timer);
    round.resolve({ workers: round.workers, unanswered: round.waiting.size });
  }
}
