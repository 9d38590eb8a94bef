/*
 * The primary's broker as a worker sees it. It only needs to be able to send messages; the worker passes those it receives to
 * `receive`.
 *
 *     append: all drafts of a turn in one message --> the primary stores them --> feed: the publications, and then the receipts
 */
import { HoldfastError } from '../lib/errors.js';
import { busy } from './appends.js';
import { publicationsOf, rowOf } from './blocks.js';
import { MESSAGE_BYTES, sizeOf } from './limits.js';
import { SharedReads } from './parts.js';
import { Pending } from './pending.js';

/** After this many bytes, or this long, the primary is told what is delivered. */
const FED_BYTES = 65_536;
const FED_MS = 20;
/** Most questions to the primary at a time, because each answer may have READ_BYTES. The others wait. */
const MOST_QUESTIONS = 4;
const DOUBT = ': the publications may be stored or not';

/** @typedef {import('./blocks.js').Block} Block */
/** @typedef {import('./blocks.js').Row} Row */
/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Listener} Listener */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */
/** @typedef {import('./messages.js').Answer} Answer */
/** @typedef {import('./messages.js').ToServer} ToServer */

/** @implements {Broker} */
export class RemoteBroker {
  /**
   * @param {object} options
   * @param {import('./messages.js').Place} options.place as the server gave it; the messages that follow it must come here
   * @param {(message: ToServer) => void} options.send
   * @param {number} options.maxQueueBytes of drafts that are not answered yet
   * @param {number} options.answerMs how long the primary may take to answer
   */
  constructor({ place, send, maxQueueBytes, answerMs }) {
    this.place = place;
    this.epoch = place.epoch;
    this.key = keyIn(place);
    this.first = place.first;
    this.last = place.last;
    this.send = send;
    this.maxQueueBytes = maxQueueBytes;
    this.bytes = 0;
    this.isClosed = false;
    /** @type {{ id: number, rows: Row[], bytes: number }[]} of this turn */
    this.calls = [];
    this.pending = new Pending(answerMs);
    this.reads = new SharedReads(MOST_QUESTIONS);
    /** @type {Map<number, Publication[]>} answers that have not come whole yet, by id */
    this.parts = new Map();
    /** @type {Listener[]} */
    this.listeners = [];
    /** @type {(() => void)[]} */
    this.resetListeners = [];
    /** @type {Promise<void> | null} until what has come so far is delivered; null if it is */
    this.delivering = null;
    this.delivered = place.last;
    this.undeclaredBytes = 0;
    /** @type {NodeJS.Timeout | null} */
    this.fedTimer = null;
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<Receipt[]>} */
  async append(drafts) {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the broker is closed');
    let bytes = 0;
    for (const draft of drafts) bytes += sizeOf(draft);
    if (this.bytes > 0 && this.bytes + bytes > this.maxQueueBytes) throw busy(this.bytes, this.maxQueueBytes);
    const { id, answer } = /** @type {{ id: number, answer: Promise<Receipt[]> }} */ (
      this.pending.add(DOUBT)
    );
    if (this.calls.length === 0) setImmediate(() => this.sendCalls());
    this.calls.push({ id, rows: drafts.map(rowOf), bytes });
    this.bytes += bytes;
    try {
      return await answer;
    } finally {
      this.bytes -= bytes;
    }
  }

  /** Sends all calls of the turn, in messages of about MESSAGE_BYTES. */
  sendCalls() {
    const calls = this.calls;
    this.calls = [];
    for (let start = 0, end = 0; start < calls.length; start = end) {
      let bytes = 0;
      while (end < calls.length && (bytes === 0 || bytes + calls[end].bytes <= MESSAGE_BYTES))
        bytes += calls[end++].bytes + 1;
      this.send({ type: 'append', calls: calls.slice(start, end).map(({ id, rows }) => ({ id, rows })) });
    }
  }

  /** @param {Listener} listener @param {() => void} [onReset] */
  follow(listener, onReset) {
    this.listeners.push(listener);
    if (onReset) this.resetListeners.push(onReset);
  }

  /** @param {number} after @param {number} most @returns {Promise<readonly Publication[]>} */
  read(after, most) {
    return this.reads.share(`read ${after} ${most}`, () => this.ask({ type: 'read', after, most }));
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  find(id) {
    return this.reads.share(`find ${id}`, () => this.ask({ type: 'find', name: id }));
  }

  /** @returns {Promise<readonly Publication[]>} */
  latest() {
    return this.reads.share('latest', () => this.ask({ type: 'latest' }));
  }

  /** @param {{ type: 'read', after: number, most: number } | { type: 'find', name: string } | { type: 'latest' }} question */
  async ask(question) {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the broker is closed');
    const { id, answer } = /** @type {{ id: number, answer: Promise<any> }} */ (this.pending.add());
    this.send({ ...question, id });
    try {
      return await answer;
    } finally {
      this.parts.delete(id);
    }
  }

  /** Finishes what is in progress, and refuses everything else. */
  async close() {
    this.isClosed = true;
    await this.pending.settled();
    if (this.fedTimer) clearTimeout(this.fedTimer);
  }

  /** @param {import('./messages.js').Feed} message */
  feed({ first, blocks, stored }) {
    this.first = first;
    if (blocks.length > 0) this.deliver(blocks);
    for (const answer of stored) this.answerAppend(answer);
  }

  /** Whatever is still answered to questions from before is about another order (`SharedReads`). @param {import('./messages.js').Reset} message */
  reset({ place }) {
    this.place = place;
    this.epoch = place.epoch;
    this.key = keyIn(place);
    this.first = place.first;
    this.last = place.last;
    this.delivering = null;
    this.delivered = place.last;
    this.undeclaredBytes = 0;
    this.reads.restart();
    for (const onReset of this.resetListeners) onReset();
  }

  /** @param {Block[]} blocks */
  deliver(blocks) {
    const { place } = this;
    const publications = blocks.flatMap(publicationsOf);
    const last = /** @type {Publication} */ (publications.at(-1)).sequence;
    this.last = last;
    let bytes = 0;
    for (const publication of publications) bytes += sizeOf(publication);
    const waits = this.listeners.map((listener) => listener(publications)).filter(Boolean);
    if (waits.length === 0 && !this.delivering) return this.declare(last, bytes);
    const before = this.delivering;
    const all = Promise.all([before, ...waits]).then(() => {
      if (this.place !== place) return; // the order has begun anew
      if (this.delivering === all) this.delivering = null;
      this.declare(last, bytes);
    });
    this.delivering = all;
  }

  /** Everything up to a sequence is delivered. @param {number} last @param {number} bytes of that which is new */
  declare(last, bytes) {
    this.delivered = last;
    this.undeclaredBytes += bytes;
    if (this.undeclaredBytes >= FED_BYTES) this.sendFed();
    else this.fedTimer ??= setTimeout(() => this.sendFed(), FED_MS);
  }

  sendFed() {
    if (this.fedTimer) clearTimeout(this.fedTimer);
    this.fedTimer = null;
    this.undeclaredBytes = 0;
    this.send({ type: 'fed', epoch: this.epoch, sequence: this.delivered });
  }

  /** @param {import('./messages.js').Stored} answer */
  answerAppend(answer) {
    const question = this.pending.take(answer.id);
    if (!question) return;
    if ('problem' in answer) return question.reject(errorOf(answer.problem));
    const known = new Set(answer.known);
    question.resolve(answer.sequences.map((sequence, index) => ({ sequence, isNew: !known.has(index) })));
  }

  /** @param {Answer} message */
  answer({ id, blocks, more = false, sequence, problem }) {
    if (blocks) this.addPart(id, blocks);
    if (more) return;
    const question = this.pending.take(id);
    if (!question) return void this.parts.delete(id);
    if (problem) question.reject(errorOf(problem));
    else question.resolve(blocks ? this.parts.get(id) : sequence);
  }

  /** @param {number} id @param {Block[]} blocks */
  addPart(id, blocks) {
    if (!this.pending.has(id)) return;
    this.pending.renew(id);
    const parts = this.parts.get(id) ?? [];
    this.parts.set(id, parts);
    for (const block of blocks) parts.push(...publicationsOf(block));
  }
}

/** @param {import('./messages.js').Place} place @returns {Uint8Array} */
function keyIn({ key }) {
  return new Uint8Array(Buffer.from(key, 'base64'));
}

/** @param {import('./messages.js').Problem} problem */
function errorOf({ code, message }) {
  return new HoldfastError(code, message);
}
