/*
 * What streams begin with: the response head, and the welcome.
 */
import { openingHead } from './wire.js';

/** How many welcomes of a kind are made; those that come together get one of them by lot. */
const JITTERS = 16;

/** @typedef {import('./wire.js').Format} Format */

/** What streams begin with: response head and welcome. Made once a second, for the Date. */
export class Openings {
  constructor() {
    this.second = 0;
    this.lot = 0;
    /** @type {Map<Format, { whole: Buffer[], chunked: Buffer[] }>} */
    this.made = new Map();
  }

  /** Before a batch of heads. */
  refresh() {
    this.lot = Math.floor(Math.random() * JITTERS);
    const second = Math.floor(Date.now() / 1000);
    if (second === this.second) return;
    this.second = second;
    this.made.clear();
  }

  /** @param {Format} format @param {boolean} isChunked @returns {Buffer} one of some, which differ in their jitter */
  of(format, isChunked) {
    return this.all(format, isChunked)[this.lot];
  }

  /** @param {Format} format @param {boolean} isChunked @returns {Buffer[]} all of them */
  all(format, isChunked) {
    let made = this.made.get(format);
    if (!made) {
      const welcomes = Array.from({ length: JITTERS }, (_, i) =>
        format.welcome((i + Math.random()) / JITTERS),
      );
      made = {
        whole: welcomes.map((welcome) => Buffer.from(openingHead(format, false) + welcome)),
        chunked: welcomes.map((welcome) => Buffer.from(openingHead(format, true) + chunkOf(welcome))),
      };
      this.made.set(format, made);
    }
    return isChunked ? made.chunked : made.whole;
  }
}

/** @param {string} text of an application, so any @returns {string} one chunk; of nothing none, which would be the last */
function chunkOf(text) {
  return text === '' ? '' : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
