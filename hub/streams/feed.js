/*
 * Publications on their way from the broker to the streams of this process, in the order of the broker. What the Hold has no
 * room for waits here.
 *
 *     broker --> pending --> window, latest --> Hold
 */
import { codeOf } from '../../lib/errors.js';
import { topicOf } from './lines.js';

/** How soon to try again if the Hold has no room. */
const BUSY_MS = 5;

/** @typedef {import('../../broker/index.js').Publication} Publication */

export class Feed {
  /**
   * @param {object} parts
   * @param {import('./core.js').HoldLike} parts.hold
   * @param {import('./audience.js').Audience} parts.audience
   * @param {import('./window.js').Window} parts.window
   * @param {import('./latest.js').Latest} parts.latest
   * @param {import('./cursor.js').Cursors} parts.cursors
   * @param {(error: unknown) => void} parts.onError
   */
  constructor({ hold, audience, window, latest, cursors, onError }) {
    this.hold = hold;
    this.audience = audience;
    this.window = window;
    this.latest = latest;
    this.cursors = cursors;
    this.onError = onError;
    /** @type {Publication[]} */
    this.pending = [];
    /** Resolves when nothing is pending any more. @type {Promise<void> | undefined} */
    this.emptied = undefined;
    this.published = 0;
  }

  /**
   * @param {readonly Publication[]} publications the next in the order
   * @returns {Promise<void> | undefined} a promise if the Hold has no room for all of them: until it has taken them
   */
  take(publications) {
    for (const publication of publications) this.pending.push(publication);
    if (!this.emptied) this.pass();
    if (this.pending.length === 0) return undefined;
    this.emptied ??= this.drain();
    return this.emptied;
  }

  /** Nothing more is passed on. */
  drop() {
    this.pending = [];
  }

  /** Passes on the rest as room becomes free. */
  async drain() {
    while (this.pending.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
      this.pass();
    }
    this.emptied = undefined;
  }

  /** Passes on as much as the Hold has room for. */
  pass() {
    let passed = 0;
    while (passed < this.pending.length && this.publish(this.pending[passed])) passed++;
    this.pending.splice(0, passed);
  }

  /** @param {Publication} publication @returns {boolean} false if there is no room */
  publish(publication) {
    const { id, type, retry, data, sequence } = publication;
    const cursor = this.cursors.of(sequence);
    const message = { id: id ?? cursor, type, retry, topic: topicOf(publication), data };
    try {
      // However large it is, it is in the order: to leave it out would be a gap that nobody is told of.
      const options = { cursor, isCounted: false, mayBeLarge: true };
      this.hold.publish(this.audience.channelsOf(publication), message, options);
    } catch (error) {
      if (codeOf(error) === 'BUSY') return false;
      this.onError(error); // it is in the history all the same
      this.hold.publish([], null, { cursor });
    }
    this.window.push(publication);
    this.latest.push(publication);
    this.published++;
    return true;
  }
}
