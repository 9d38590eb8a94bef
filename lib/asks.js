/*
 * Questions of a handover to another process. Each has a deadline, and gets an answer or an error.
 *
 *     ask --handover {id, step, …}--> --handedOver {id, value | problem}--> answered
 */
import { HoldfastError } from './errors.js';

/** @typedef {{ type: 'handover', id: number, step: string, [field: string]: unknown }} Question */
/** @typedef {{ id: number, value?: any, problem?: string }} Answer */
/** @typedef {{ step: string, timer: NodeJS.Timeout, resolve: (value: any) => void, reject: (error: Error) => void }} Waiting */

export class Asks {
  /**
   * @param {(question: Question) => void} send
   * @param {(step: string, why: string) => Error} errorOf a step that has failed
   */
  constructor(send, errorOf) {
    this.send = send;
    this.errorOf = errorOf;
    this.lastId = 0;
    /** Why nothing can be asked any more; '' if it can. */
    this.closed = '';
    /** Those without an answer. @type {Map<number, Waiting>} by id */
    this.waiting = new Map();
  }

  /**
   * @param {string} step @param {Record<string, unknown>} fields @param {number} deadlineMs
   * @returns {Promise<any>} its value. Rejects with `errorOf` if there is none in time, the other process is gone, or it has a problem
   */
  ask(step, fields, deadlineMs) {
    if (this.closed) return Promise.reject(this.errorOf(step, this.closed));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.fail(id, `no answer within ${deadlineMs} ms`), deadlineMs);
      this.waiting.set(id, { step, timer, resolve, reject });
      this.send({ ...fields, type: 'handover', id, step });
    });
  }

  /** @param {Answer} answer */
  answered({ id, value, problem }) {
    if (problem !== undefined) return this.fail(id, problem);
    this.take(id)?.resolve(value);
  }

  /** The other process is gone. @param {string} why */
  close(why) {
    this.closed ||= why;
    for (const id of [...this.waiting.keys()]) this.fail(id, why);
  }

  /** @param {number} id @param {string} why */
  fail(id, why) {
    const question = this.take(id);
    question?.reject(this.errorOf(question.step, why));
  }

  /** @param {number} id @returns {Waiting | undefined} undefined if it is too late */
  take(id) {
    const question = this.waiting.get(id);
    this.waiting.delete(id);
    clearTimeout(question?.timer);
    return question;
  }
}

/** @param {string} who is asked @returns {(step: string, why: string) => HoldfastError} HANDOVER: which step failed where, and why */
export function failedIn(who) {
  return (step, why) => new HoldfastError('HANDOVER', `the step ${step} failed in ${who}: ${why}`);
}
