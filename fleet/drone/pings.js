/*
 * When the pings of one stream are due, and how late they come. Pure: the caller passes the time.
 */

/** One late ping counts for no more than this many missed ones. */
const MOST_MISSED = 1000;

export class Pings {
  /** @param {number} intervalMs 0 if unknown: then nothing is ever late */
  constructor(intervalMs) {
    this.intervalMs = intervalMs;
    /** When the next ping is due, the first within an interval; NaN if that isn't known. */
    this.dueMs = Number.NaN;
    this.wasPinged = false;
  }

  /** The stream is open. @param {number} nowMs */
  begin(nowMs) {
    if (this.intervalMs > 0) this.dueMs = nowMs + this.intervalMs;
  }

  /**
   * A ping came. One that is several intervals late counts for the missing ones too.
   * @param {number} nowMs
   * @returns {number[]} latenesses in ms; none for a first ping in time, which can come at any moment of the interval
   */
  note(nowMs) {
    const { intervalMs, wasPinged } = this;
    if (intervalMs === 0) return [];
    const lateMs = Math.max(0, nowMs - this.dueMs);
    this.wasPinged = true;
    this.dueMs = nowMs - (lateMs % intervalMs) + intervalMs;
    if (!wasPinged && lateMs === 0) return [];
    const missed = Math.min(MOST_MISSED, Math.max(0, Math.ceil(lateMs / intervalMs) - 1));
    return Array.from({ length: missed + 1 }, (_, i) => lateMs - i * intervalMs);
  }

  /** @param {number} nowMs @returns {number} ms since the next ping was due, if that is more than an interval; else 0 */
  overdueMs(nowMs) {
    const overdueMs = nowMs - this.dueMs;
    return overdueMs > this.intervalMs ? overdueMs : 0;
  }
}
