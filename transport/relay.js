/*
 * What an application says to many streams while, and after, another process takes them over: it is passed on to that process,
 * in order. States:
 *
 *     keeping --flow()--> flowing      keeping: a round is in progress; what comes waits for its outcome
 *        ^------keep()-------/
 *        \---------------/--end()--> ended: nobody is there
 */
import { HoldfastError } from '../lib/errors.js';

/** A line of JSON may have escapes, but mostly it is text. */
const MESSAGE_BYTES = 256;

/** @typedef {import('./link.js').Message} Message */

export class Relay {
  /** @param {import('./link.js').Link} link @param {number} maxBytes */
  constructor(link, maxBytes) {
    this.link = link;
    this.maxBytes = maxBytes;
    /** What waits for the end of a round; null while it flows. @type {Message[] | null} */
    this.kept = [];
    this.keptBytes = 0;
    /** Publications whose listeners the other side counts. @type {Map<number, (listeners: number) => void>} by token */
    this.counts = new Map();
    this.lastToken = 0;
    this.isEnded = false;
  }

  keep() {
    this.kept ??= [];
  }

  flow() {
    for (const message of this.kept ?? []) this.link.send(message);
    this.kept = null;
    this.keptBytes = 0;
  }

  /** What was kept, or not answered, has reached nobody. */
  end() {
    this.isEnded = true;
    this.kept = null;
    for (const resolve of this.counts.values()) resolve(0);
    this.counts.clear();
  }

  /** @param {number} bytes of a message @throws {HoldfastError} BUSY */
  checkRoom(bytes) {
    const waiting = this.keptBytes + this.link.waitingBytes;
    if (!this.isEnded && waiting > 0 && waiting + bytes > this.maxBytes)
      throw new HoldfastError(
        'BUSY',
        `more than ${this.maxBytes} bytes of messages would be waiting for the process that takes over (maxQueueBytes): try again later`,
      );
  }

  /**
   * @param {readonly string[]} channels @param {import('./encodings.js').Message} message
   * @param {boolean} isCounted
   * @returns {Promise<number> | undefined} the streams of the other process that it was for; undefined if they are not counted
   */
  publish(channels, message, isCounted) {
    if (this.isEnded) return undefined;
    const token = isCounted ? ++this.lastToken : 0;
    this.say('publish', [channels, message, token]);
    return isCounted ? new Promise((resolve) => this.counts.set(token, resolve)) : undefined;
  }

  /** @param {'publish' | 'endChannel' | 'endLabelled'} what @param {unknown[]} given */
  say(what, given) {
    if (this.isEnded) return;
    const message = { type: 'say', what, given };
    if (!this.kept) return this.link.send(message);
    this.kept.push(message);
    this.keptBytes += MESSAGE_BYTES + bytesOf(given);
  }

  /** @param {Message} answer */
  counted({ token, listeners }) {
    this.counts.get(token)?.(Number(listeners));
    this.counts.delete(token);
  }
}

/** @param {unknown[]} given @returns {number} about as many bytes as it takes */
function bytesOf(given) {
  const { data = '' } = /** @type {Partial<import('./encodings.js').Message>} */ (given[1] ?? {});
  return data.length;
}
