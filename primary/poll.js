/*
 * A question to all workers, which has an answer at the deadline at the latest. A worker that dies meanwhile does not count any more.
 */

/**
 * @template A what a worker answers
 * @typedef {{ answers: A[], workers: number, unanswered: number }} Outcome `workers`: how many were asked
 */
/** @typedef {{ waiting: Set<object>, answers: any[], workers: number, resolve: (outcome: Outcome<any>) => void, timer: NodeJS.Timeout }} Round */

/**
 * @template {{ id: number }} M the message to a worker
 * @template A
 */
export class Poll {
  /** @param {number} answerMs how long workers may take to answer */
  constructor(answerMs) {
    this.answerMs = answerMs;
    this.lastId = 0;
    /** @type {Map<object, (message: M) => void>} by an object that stands for the worker */
    this.workers = new Map();
    /** @type {Map<number, Round>} by id */
    this.rounds = new Map();
  }

  /** @param {object} worker @param {(message: M) => void} send */
  add(worker, send) {
    this.workers.set(worker, send);
  }

  /** @param {object} worker died, with its streams */
  remove(worker) {
    this.workers.delete(worker);
    for (const id of this.rounds.keys()) this.leave(worker, id, []);
  }

  /** @param {Omit<M, 'id'>} question @returns {Promise<Outcome<A>>} at the deadline at the latest */
  ask(question) {
    const id = ++this.lastId;
    const waiting = new Set(this.workers.keys());
    const message = /** @type {M} */ ({ ...question, id });
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finish(id), this.answerMs);
      this.rounds.set(id, { waiting, answers: [], workers: waiting.size, resolve, timer });
      for (const send of this.workers.values()) send(message);
      if (waiting.size === 0) this.finish(id);
    });
  }

  /** @param {object} worker @param {number} id @param {A} answer */
  answered(worker, id, answer) {
    this.leave(worker, id, [answer]);
  }

  /** @param {object} worker @param {number} id @param {A[]} answers none if it has died */
  leave(worker, id, answers) {
    const round = this.rounds.get(id);
    if (!round?.waiting.delete(worker)) return;
    round.answers.push(...answers);
    if (round.waiting.size === 0) this.finish(id);
  }

  /** @param {number} id */
  finish(id) {
    const round = this.rounds.get(id);
    if (!round) return;
    this.rounds.delete(id);
    clearTimeout(round.timer);
    const { answers, workers, waiting, resolve } = round;
    resolve({ answers, workers, unanswered: waiting.size });
  }
}
