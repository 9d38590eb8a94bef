/*
 * Presence as the hub of a worker sees it: the one of the primary. It only needs to be able to send messages; the worker passes those
 * it receives to `listed` and `room`. It keeps nothing about a stream.
 */
import { HoldfastError } from '../../lib/errors.js';

/** @typedef {import('./messages.js').ToPresence} ToPresence */
/** @typedef {import('./local.js').HubPresence} HubPresence */
/** @typedef {import('./local.js').Listing} Listing */

/**
 * @typedef {object} Question a list that was asked for
 * @property {Buffer[]} parts
 * @property {NodeJS.Timeout} timer
 * @property {(listing: Listing) => void} resolve
 * @property {(error: HoldfastError) => void} reject
 */

/** @implements {HubPresence} */
export class RemotePresence {
  /**
   * @param {object} options
   * @param {(message: ToPresence) => void} options.send
   * @param {number} options.answerMs how long the primary may take
   */
  constructor({ send, answerMs }) {
    this.send = send;
    this.answerMs = answerMs;
    this.isFull = false;
    /** Of this turn. @type {[number, string][]} */
    this.entered = [];
    /** @type {number[]} */
    this.left = [];
    this.isSending = false;
    this.lastId = 0;
    /** @type {Map<number, Question>} */
    this.questions = new Map();
  }

  /** @param {number} id @param {string} text */
  enter(id, text) {
    this.entered.push([id, text]);
    this.sendSoon();
  }

  /** @param {number} id */
  leave(id) {
    this.left.push(id);
    this.sendSoon();
  }

  /** All changes of one turn of the event loop go in one message. */
  sendSoon() {
    if (this.isSending) return;
    this.isSending = true;
    setImmediate(() => this.flush());
  }

  flush() {
    this.isSending = false;
    const { entered, left } = this;
    if (entered.length + left.length === 0) return;
    this.entered = [];
    this.left = [];
    this.send({ type: 'attendance', entered, left });
  }

  /** @param {import('./messages.js').Query} query @returns {Promise<Listing>} */
  list(query) {
    this.flush(); // what this worker knows is on the list
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      const late = () => this.questions.delete(id) && reject(noAnswer(this.answerMs));
      const timer = setTimeout(late, this.answerMs);
      this.questions.set(id, { parts: [], timer, resolve, reject });
      this.send({ type: 'list', id, query });
    });
  }

  /** @param {import('./messages.js').Listed} message */
  listed(message) {
    const question = this.questions.get(message.id);
    if (!question) return;
    if ('part' in message) return void question.parts.push(Buffer.from(message.part));
    this.questions.delete(message.id);
    clearTimeout(question.timer);
    question.resolve({ ...message.found, parts: question.parts });
  }

  /** @param {import('./messages.js').Room} message */
  room({ isFull }) {
    this.isFull = isFull;
  }
}

/** @param {number} ms */
function noAnswer(ms) {
  return new HoldfastError('BUSY', `the primary has not answered within ${ms} ms`);
}
