/*
 * Something that is done so many times per second, in steps. Pure: the caller passes the time.
 */

/** How much time it may catch up on after the event loop was blocked. */
const MOST_STEP_MS = 1000;

export class Rate {
  constructor() {
    this.lastMs = Number.NaN;
    /** What is due but not whole yet. */
    this.credit = 0;
  }

  /** @param {number} nowMs @param {number} perSecond @returns {number} how often it is to be done now */
  take(nowMs, perSecond) {
    const elapsedMs = Math.min(Math.max(nowMs - this.lastMs, 0) || 0, MOST_STEP_MS);
    this.lastMs = nowMs;
    this.credit = perSecond > 0 ? this.credit + (perSecond * elapsedMs) / 1000 : 0;
    const due = Math.floor(this.credit);
    this.credit -= due;
    return due;
  }
}
