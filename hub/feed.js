/*
 * Publications on their way from the broker to the streams of this process, in the order of the broker. What the Hold has no
 * room for waits here.
 *
 *     broker --> pending --> window, latest --> Hold
 */
import { codeOf } from '../lib/errors.js';

/** How soon to try again if the Hold has no room although nothing of ours waits in it. */
const BUSY_MS = 5;

/** @typedef {import('../broker/index.js').Publication} Publication */

export class Feed {
  /**
   * @param {object} parts
   * @param {import('./hub.js').HoldLike} parts.hold
   * @param {import('./audience.js').Audience} parts.audience
   * @param {import('./window.js').Window} parts.window
   * @param {import('./latest.js').Latest} parts.latest
   * @param {import('./cursor.js').Cursors} parts.cursors
   * @param {(through: number) => void} parts.onFed called when the Hold has taken everything up to a sequence
   * @param {(error: unknown) => void} parts.onError
   */
  constructor({ hold, audience, window, latest, cursors, onFed, onError }) {
    this.hold = hold;
    this.audience = audience;
    this.window = window;
    this.latest = latest;
    this.cursors = cursors;
    this.onFed = onFed;
    this.onError = onError;
    /** @type {Publication[]} */
    this.pending = [];
    this.isWaiting = false;
    /** Resolves when the last publication has reached its streams. @type {Promise<unknown>} */
    this.delivered = Promise.resolve();
    this.published = 0;
  }

  /** @param {readonly Publication[]} publications the next in the order */
  take(publications) {
    for (const publication of publications) this.pending.push(publication);
    if (!this.isWaiting) this.pump();
  }

  /** Passes on as much as the Hold has room for. */
  pump() {
    let taken = 0;
    while (taken < this.pending.length && this.pass(this.pending[taken])) taken++;
    if (taken > 0) {
      this.pending.splice(0, taken);
      this.onFed(this.window.last);
    }
    if (this.pending.length > 0) void this.wait();
  }

  /** Tries again when there is room. */
  async wait() {
    this.isWaiting = true;
    await Promise.all([this.delivered, new Promise((resolve) => setTimeout(resolve, BUSY_MS))]);
    this.isWaiting = false;
    this.pump();
  }

  /** @param {Publication} publication @returns {boolean} false if there is no room */
  pass(publication) {
    const { id, type, retry, data, sequence } = publication;
    const cursor = this.cursors.of(sequence);
    const message = { id: id ?? cursor, type, retry, data };
    try {
      this.delivered = this.hold.publish(this.audience.channelsOf(publication), message, { cursor });
    } catch (error) {
      if (codeOf(error) === 'BUSY') return false;
      this.onError(error); // it is in the history all the same
      void this.hold.publish([], null, { cursor });
    }
    this.window.push(publication);
    this.latest.push(publication);
    this.published++;
    return true;
  }
}
