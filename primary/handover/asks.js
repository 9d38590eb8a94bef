/*
 * Questions of a handover to a worker, or to the primary of another server. Each has a deadline, and gets an answer or an error.
 *
 *     ask --handover {id, step, …}--> --handedOver {id, value | problem}--> answered
 */
import { HoldfastError } from '../../lib/errors.js';

/** @typedef {import('../messages.js').Handover} Handover */
/** @typedef {import('../messages.js').HandedOver} HandedOver */
/** @typedef {{ step: string, timer: NodeJS.Timeout, resolve: (value: any) => void, reject: (error: Error) => void }} Question */

export class Asks {
  /** @param {string} who is asked, for errors @param {(message: Handover) => void} send */
  constructor(who, send) {
    this.who = who;
    this.send = send;
    this.lastId = 0;
    /** Why nothing can be asked any more; '' if it can. */
    this.closed = '';
    /** @type {Map<number, Question>} by id */
    this.questions = new Map();
  }

  /**
   * @param {string} step @param {Record<string, unknown>} fields @param {number} deadlineMs
   * @returns {Promise<any>} its value
   * @throws {HoldfastError} HANDOVER: which step failed, and why
   */
  ask(step, fields, deadlineMs) {
    if (this.closed) return Promise.reject(failed(this.who, step, this.closed));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.fail(id, `no answer within ${deadlineMs} ms`), deadlineMs);
      this.questions.set(id, { step, timer, resolve, reject });
      this.send({ ...fields, type: 'handover', id, step });
    });
  }

  /** @param {HandedOver} answer */
  answered({ id, value, problem }) {
    if (problem !== undefined) return this.fail(id, problem);
    const question = this.take(id);
    question?.resolve(value);
  }

  /** Whoever was asked is gone. @param {string} why */
  close(why) {
    this.closed ||= why;
    for (const id of [...this.questions.keys()]) this.fail(id, why);
  }

  /** @param {number} id @param {string} why */
  fail(id, why) {
    const question = this.take(id);
    question?.reject(failed(this.who, question.step, why));
  }

  /** @param {number} id @returns {Question | undefined} undefined if it is too late */
  take(id) {
    const question = this.questions.get(id);
    this.questions.delete(id);
    clearTimeout(question?.timer);
    return question;
  }
}

/** @param {string} who @param {string} step @param {string} why */
function failed(who, step, why) {
  return new HoldfastError('HANDOVER', `the step ${step} failed in ${who}: ${why}`);
}
