/*
 * What the pings of streams held in JS consist of. Those of streams of updates have the cursor, once there is one.
 */
import { cursorPing, pingsOf } from './encodings.js';

/** @typedef {import('./heldstream.js').HeldStream} HeldStream */

export class Pings {
  /** @param {import('./options.js').Settings['ping']} given */
  constructor(given) {
    this.payloads = pingsOf(given);
    /** That of streams of updates. @type {string | undefined} */
    this.cursor = undefined;
    /** The ping that has it, once it was needed. @type {Buffer | undefined} */
    this.cursorPayload = undefined;
  }

  /** @param {string} cursor */
  moveTo(cursor) {
    this.cursor = cursor;
    this.cursorPayload = undefined;
  }

  /** @param {HeldStream} stream @returns {Buffer} */
  of(stream) {
    const cursor = stream.encoding === 'updates' ? this.cursorOf(stream) : undefined;
    if (cursor === undefined) return this.payloads[stream.encoding];
    this.cursorPayload ??= cursorPing(cursor);
    return this.cursorPayload;
  }

  /**
   * Nothing ever waits for a stream here, so each has got everything up to the cursor. One without channels follows nothing
   * yet: the application may still be writing to it what it has missed.
   * @param {HeldStream} stream
   * @returns {string | undefined}
   */
  cursorOf({ isOfUpdates, channels }) {
    return isOfUpdates && channels.size > 0 ? this.cursor : undefined;
  }
}
