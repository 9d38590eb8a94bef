/*
 * Where a cursor of a client is in the order of publications.
 */
import { codeOf } from '../../lib/errors.js';

/** How long a cursor may be ahead of this process, which hears of publications a little later than others. */
const AHEAD_MS = 2000;
const AHEAD_STEP_MS = 10;

/**
 * @typedef {object} Position
 * @property {number | undefined} after replay what follows this sequence; undefined to begin with what is published next
 * @property {string | undefined} reported in the head of the response: the client's cursor, or 'earliest' if publications may
 *   be lost; undefined if the client has no cursor
 * @property {boolean} [isAhead] the client may have more than this process: it has to come again, with the same cursor
 * @property {number} [since] where the client was, if what followed is no longer stored, except the last publications of cached topics
 */

export class Positions {
  /**
   * @param {object} parts
   * @param {import('../../broker/index.js').Broker} parts.broker
   * @param {import('./window.js').Window} parts.window
   * @param {import('./cursor.js').Cursors} parts.cursors
   */
  constructor({ broker, window, cursors }) {
    this.broker = broker;
    this.window = window;
    this.cursors = cursors;
    /** Clients that are ahead. @type {{ sequence: number, endMs: number, resolve: (isReached: boolean) => void }[]} */
    this.ahead = [];
    /** @type {NodeJS.Timeout | undefined} while there are any */
    this.timer = undefined;
  }

  /** @param {string | undefined} cursor @returns {Position | Promise<Position>} */
  locate(cursor) {
    if (cursor === undefined) return { after: undefined, reported: undefined };
    if (cursor === 'earliest') return this.earliest();
    const sequence = this.cursors.read(cursor) ?? this.window.byId.get(cursor);
    if (sequence !== undefined) return this.positionAt(sequence, cursor);
    if (cursor === '' || cursor.startsWith('#')) return unknown();
    return this.broker.find(cursor).then(
      (found) => (found === undefined ? unknown() : this.positionAt(found, cursor)),
      (error) => notYet(error, cursor),
    );
  }

  /** @param {number} sequence @param {string} cursor @returns {Position | Promise<Position>} */
  positionAt(sequence, cursor) {
    if (sequence > this.window.last) return this.untilReached(sequence, cursor);
    return sequence < this.broker.first - 1
      ? { ...this.earliest(), since: sequence }
      : { after: sequence, reported: cursor };
  }

  /** @returns {Position} */
  earliest() {
    return { after: this.broker.first - 1, reported: 'earliest' };
  }

  /**
   * Another process may already have sent what this one is about to hear of. If it does not come, the broker knows whether it was lost, or
   * whether this node is behind others.
   * @param {number} sequence @param {string} cursor @returns {Promise<Position>}
   */
  async untilReached(sequence, cursor) {
    const isReached = await new Promise((resolve) => {
      this.ahead.push({ sequence, endMs: performance.now() + AHEAD_MS, resolve });
      this.timer ??= setInterval(() => this.look(), AHEAD_STEP_MS);
    });
    if (isReached) return { after: sequence, reported: cursor };
    try {
      await this.broker.read(sequence - 1, 1);
    } catch (error) {
      return notYet(error, cursor);
    }
    return sequence <= this.window.last ? { after: sequence, reported: cursor } : unknown();
  }

  /** One look for all who wait: when a node is behind, very many may. */
  look() {
    const nowMs = performance.now();
    const { last } = this.window;
    this.ahead = this.ahead.filter(({ sequence, endMs, resolve }) => {
      if (sequence > last && endMs > nowMs) return true;
      resolve(sequence <= last);
      return false;
    });
    if (this.ahead.length > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** @param {unknown} error @param {string} cursor @returns {Position} @throws what the client can't wait for */
function notYet(error, cursor) {
  if (codeOf(error) !== 'BUSY') throw error;
  return { after: undefined, reported: cursor, isAhead: true };
}

/** @returns {Position} */
function unknown() {
  return { after: undefined, reported: 'earliest' };
}
