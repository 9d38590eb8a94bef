/*
 * Publications on their way from the primary to the workers. A worker gets few at a time (its window), and the others wait
 * here, in a queue for each worker. In it, channels take turns. What waits is bounded in bytes.
 *
 *     publish --> queue of worker 1 --> window --> worker 1 --published--> \
 *            \--> queue of worker 2 --> window --> worker 2 --published-->  the number of listeners
 */
import { HoldfastError } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { Pause } from './handover/pause.js';
import { Turns } from './turns.js';

/** Most publications that a worker may have without having answered, and most bytes of them. */
const WINDOW = 64;
const WINDOW_BYTES = 1_048_576;
/** Roughly what a publication needs besides its texts. More than a worker counts for it, so that the queue here is full first. */
const OVERHEAD_BYTES = 512;

/**
 * @typedef {object} Publication
 * @property {number} id
 * @property {string} channel
 * @property {string} message
 * @property {number} bytes
 * @property {number} unanswered workers that have not answered yet
 * @property {number} listeners of those that have
 * @property {number} busy workers that had no room for it
 * @property {string} problem why a worker refused it; '' if none did
 * @property {(outcome: Outcome) => void} resolve
 *
 * @typedef {object} Outcome
 * @property {number} listeners streams that it was addressed to
 * @property {number} unanswered workers that had not answered by the deadline; they may still deliver it
 *
 * @typedef {(message: import('./messages.js').Publish) => void} Send
 *
 * @typedef {object} Reader a worker
 * @property {Turns<Publication>} queue
 * @property {Map<number, Publication>} window by id, sent but not answered
 * @property {number} windowBytes
 * @property {Send} send
 */

export class Publications {
  /**
   * @param {object} limits
   * @param {number} limits.maxQueueBytes of all publications that a worker has not answered
   * @param {number} limits.answerMs how long the outcome of a publication may take
   * @param {Pause} [limits.pause] in which none is passed on
   */
  constructor({ maxQueueBytes, answerMs, pause = new Pause() }) {
    this.pause = pause;
    this.maxQueueBytes = maxQueueBytes;
    this.answerMs = answerMs;
    /** Of all publications that at least one worker has not answered. */
    this.bytes = 0;
    /** Of those that wait for the end of a pause. */
    this.pausedBytes = 0;
    /** Called when everything has been sent to all workers. @type {(() => void)[]} */
    this.sentListeners = [];
    this.lastId = 0;
    /** @type {Map<object, Reader>} by an object that stands for the worker */
    this.readers = new Map();
  }

  /** @param {object} worker gets every publication from now on @param {Send} send passes a message to it */
  add(worker, send) {
    this.readers.set(worker, { queue: new Turns(), window: new Map(), windowBytes: 0, send });
  }

  /** @param {object} worker died: nobody is left there to deliver anything to */
  remove(worker) {
    const reader = this.readers.get(worker);
    if (!reader) return;
    this.readers.delete(worker);
    for (const publication of [...reader.window.values(), ...reader.queue.all()]) this.settle(publication, 0);
    this.checkSent();
  }

  /** @returns {Promise<void>} when all workers have been sent the same publications: nothing waits in a queue */
  sent() {
    return new Promise((resolve) => {
      this.sentListeners.push(resolve);
      this.checkSent();
    });
  }

  checkSent() {
    if (this.sentListeners.length === 0) return;
    for (const { queue } of this.readers.values()) if (queue.peek()) return;
    for (const resolve of this.sentListeners.splice(0)) resolve();
  }

  /**
   * @param {string} channel @param {string} message
   * @returns {Promise<Outcome>} once every worker has delivered it, or at the deadline
   * @throws {HoldfastError} BUSY: at once if there is no room here, and later if a worker had none; BAD_ARGUMENT
   */
  async publish(channel, message) {
    const bytes = OVERHEAD_BYTES + Buffer.byteLength(channel) + Buffer.byteLength(message);
    const waiting = this.bytes + this.pausedBytes;
    if (waiting + bytes > this.maxQueueBytes)
      throw busy(`${waiting} bytes of publications are waiting, and --max-queue is ${this.maxQueueBytes}`);
    if (this.pause.isOn) await this.untilResumed(bytes);
    const publication = this.enqueue(channel, message, bytes);
    const outcome = await this.outcomeOf(publication);
    if (publication.problem) throw new HoldfastError('BAD_ARGUMENT', publication.problem);
    if (publication.busy > 0)
      throw busy(
        `${formatNoun(publication.busy, 'worker')} had no room for it; streams of other workers may have got it`,
      );
    return outcome;
  }

  /** @param {number} bytes of a publication that comes in a pause */
  async untilResumed(bytes) {
    this.pausedBytes += bytes;
    await this.pause.passed();
    this.pausedBytes -= bytes;
  }

  /** @param {string} channel @param {string} message @param {number} bytes @returns {Publication} */
  enqueue(channel, message, bytes) {
    const unanswered = this.readers.size;
    const counts = { unanswered, listeners: 0, busy: 0, problem: '' };
    const publication = { id: ++this.lastId, channel, message, bytes, ...counts, resolve: () => {} };
    if (unanswered > 0) this.bytes += bytes;
    for (const reader of this.readers.values()) {
      reader.queue.push(channel, publication);
      this.pump(reader);
    }
    return publication;
  }

  /** @param {Publication} publication @returns {Promise<Outcome>} */
  outcomeOf(publication) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => publication.resolve(outcomeSoFar(publication)), this.answerMs);
      publication.resolve = (outcome) => {
        clearTimeout(timer);
        resolve(outcome);
      };
      if (publication.unanswered === 0) publication.resolve(outcomeSoFar(publication));
    });
  }

  /** Sends what the window allows: at least one, however large. @param {Reader} reader */
  pump(reader) {
    const { queue, window } = reader;
    for (let next = queue.peek(); next && hasRoom(reader, next); next = queue.peek()) {
      queue.shift();
      window.set(next.id, next);
      reader.windowBytes += next.bytes;
      const { id, channel, message } = next;
      reader.send({ type: 'publish', id, channel, message });
    }
  }

  /**
   * A worker has answered.
   * @param {object} worker @param {import('./messages.js').Published} answer
   */
  answered(worker, { id, listeners = 0, busy = false, problem = '' }) {
    const reader = this.readers.get(worker);
    const publication = reader?.window.get(id);
    if (!reader || !publication) return;
    reader.window.delete(id);
    reader.windowBytes -= publication.bytes;
    if (busy) publication.busy++;
    publication.problem ||= problem;
    this.settle(publication, listeners);
    this.pump(reader);
    this.checkSent();
  }

  /** A worker is done with a publication. @param {Publication} publication @param {number} listeners it found */
  settle(publication, listeners) {
    publication.listeners += listeners;
    publication.unanswered--;
    if (publication.unanswered > 0) return;
    this.bytes -= publication.bytes;
    publication.resolve(outcomeSoFar(publication));
  }
}

/** @param {Reader} reader @param {Publication} publication */
function hasRoom({ window, windowBytes }, { bytes }) {
  if (window.size === 0) return true;
  return window.size < WINDOW && windowBytes + bytes <= WINDOW_BYTES;
}

/** @param {Publication} publication @returns {Outcome} */
function outcomeSoFar({ listeners, unanswered }) {
  return { listeners, unanswered };
}

/** @param {string} why */
function busy(why) {
  return new HoldfastError('BUSY', `too many publications: ${why}`);
}
