/*
 * Whether a drone may dial its target now. Pure: the caller passes the time and the number of failures.
 *
 *     none --granted--> valid --a stream failed or was lost--> in doubt --granted--> valid
 *       ^                                                          |
 *       \------------------- refused ------------------------------/
 *
 * A target that was lost may be back as another server, or as one that no longer accepts load. So it is asked again before
 * anything else is sent to it. This machine needs no consent, and is never in doubt.
 */

/** The time between two questions; it doubles after each that was not answered. */
const FIRST_DELAY_MS = 1000;
const MOST_DELAY_MS = 30_000;

export class Permit {
  constructor() {
    this.isGranted = false;
    this.wasRefused = false;
    this.isLocal = false;
    this.isPartial = false;
    /** Failures when the target was asked. */
    this.failures = 0;
    this.delayMs = FIRST_DELAY_MS;
    /** When it may be asked again. */
    this.nextMs = 0;
  }

  /**
   * @param {number} nowMs @param {boolean} isLocal @param {number} failures so far, when the question was sent
   * @param {boolean} isPartial whether a server did not answer, and has to be asked again
   */
  grant(nowMs, isLocal, failures, isPartial) {
    this.isGranted = true;
    this.wasRefused = false;
    this.isLocal = isLocal;
    this.isPartial = isPartial;
    this.failures = failures;
    this.delayMs = FIRST_DELAY_MS;
    this.nextMs = nowMs + FIRST_DELAY_MS;
  }

  /** The target refuses. */
  revoke() {
    this.wasRefused = true;
    this.isGranted = false;
  }

  /** The target was not asked, or did not answer. @param {number} nowMs */
  defer(nowMs) {
    this.delayMs = Math.min(this.delayMs * 2, MOST_DELAY_MS);
    this.nextMs = nowMs + this.delayMs;
  }

  /** @param {number} failures @returns {boolean} whether streams may be opened */
  isValid(failures) {
    return this.isGranted && (this.isLocal || failures === this.failures);
  }

  /** @param {number} nowMs @param {number} failures @returns {boolean} whether the target has to be asked now */
  isDue(nowMs, failures) {
    return this.isGranted && (this.isPartial || !this.isValid(failures)) && nowMs >= this.nextMs;
  }
}
