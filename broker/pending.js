/*
 * Questions that wait for an answer, or its next part, each with the same time for it. One timer watches the oldest.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * @typedef {object} Question
 * @property {number} endMs
 * @property {string} doubt what is not known without an answer
 * @property {Promise<any>} answer
 * @property {(answer: any) => void} resolve
 * @property {(error: Error) => void} reject
 */

export class Pending {
  /** @param {number} answerMs */
  constructor(answerMs) {
    this.answerMs = answerMs;
    this.lastId = 0;
    /** @type {Map<number, Question>} by id, those whose time ends first are first */
    this.questions = new Map();
    /** @type {NodeJS.Timeout | null} */
    this.timer = null;
  }

  /**
   * @template T
   * @param {string} [doubt] what is not known without an answer
   * @returns {{ id: number, answer: Promise<T> }} rejects with BUSY if there is none in time
   */
  add(doubt = '') {
    const id = ++this.lastId;
    const endMs = performance.now() + this.answerMs;
    /** @type {Question} */
    const question = { endMs, doubt, answer: Promise.resolve(), resolve: () => {}, reject: () => {} };
    question.answer = new Promise((resolve, reject) => {
      question.resolve = resolve;
      question.reject = reject;
    });
    this.questions.set(id, question);
    this.timer ??= setTimeout(() => this.expire(), this.answerMs);
    return { id, answer: question.answer };
  }

  /** @param {number} id */
  has(id) {
    return this.questions.has(id);
  }

  /** A part of its answer has come, so the rest has the same time again. @param {number} id */
  renew(id) {
    const question = this.questions.get(id);
    if (!question) return;
    this.questions.delete(id);
    question.endMs = performance.now() + this.answerMs;
    this.questions.set(id, question);
  }

  /** @returns {Promise<void>} when all are answered or expired */
  async settled() {
    const answers = [...this.questions.values()].map(({ answer }) => answer.catch(() => {}));
    await Promise.all(answers);
  }

  /** @param {number} id @returns {Question | undefined} undefined if it is too late */
  take(id) {
    const question = this.questions.get(id);
    this.questions.delete(id);
    if (this.questions.size > 0 || !this.timer) return question;
    clearTimeout(this.timer);
    this.timer = null;
    return question;
  }

  /** Rejects what has waited too long. */
  expire() {
    this.timer = null;
    const now = performance.now();
    for (const [id, { endMs, doubt, reject }] of this.questions) {
      if (endMs > now) {
        this.timer = setTimeout(() => this.expire(), endMs - now + 1);
        return;
      }
      this.questions.delete(id);
      reject(new HoldfastError('BUSY', `the primary did not answer within ${this.answerMs} ms${doubt}`));
    }
  }
}
