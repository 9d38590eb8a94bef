/*
 * Decides, in steps of 100 ms, how many streams to open or close to reach the target. Pure: the caller passes the time,
 * the number of streams, and the failures.
 *
 * A stream that failed or was lost waits before it is tried again: twice as long after each round of failures without
 * a success, and for a random time, so that they don't all come back together. The tries of one round are spread over
 * several steps, and double the wait only once.
 */

const FIRST_DELAY_MS = 250;
const MOST_DELAY_MS = 30_000;
/** Waiting streams are counted in classes of this width. */
const CLASS_MS = 100;
/** How much time a ramp may catch up on after the event loop was blocked. */
const MOST_STEP_MS = 1000;

/**
 * @typedef {object} Goal
 * @property {number} target streams
 * @property {number} ramp streams to open per second
 * @property {number} concurrency most streams being opened at a time
 */

/**
 * @typedef {object} State
 * @property {number} open
 * @property {number} inFlight
 * @property {number} opened total
 * @property {number} failed total, lost streams included
 */

export class Reconciler {
  /**
   * @param {number} [opened] the caller's counts at the start
   * @param {number} [failed]
   * @param {() => number} [random] 0 to 1
   */
  constructor(opened = 0, failed = 0, random = Math.random) {
    this.random = random;
    /** How long streams wait that fail in this round; 0 before the first. */
    this.delayMs = 0;
    /** When the first stream that failed in this round may have failed again. */
    this.roundEndMs = 0;
    this.credit = 0;
    this.lastMs = Number.NaN;
    this.opened = opened;
    this.failed = failed;
    /** @type {Map<number, number>} how many wait, by the class of the time they wait until */
    this.waiting = new Map();
  }

  /**
   * @param {number} nowMs
   * @param {Goal} goal
   * @param {State} state
   * @returns {number} streams to open; negative: streams to close
   */
  step(nowMs, { target, ramp, concurrency }, { open, inFlight, opened, failed }) {
    this.note(nowMs, opened - this.opened, failed - this.failed);
    this.opened = opened;
    this.failed = failed;
    this.release(nowMs);
    this.credit = Math.min(this.credit + (ramp * this.elapsedMs(nowMs)) / 1000, Math.max(ramp, 1));
    const surplus = open + inFlight - target;
    if (surplus > 0) return -Math.min(surplus, open);
    const missing = -surplus - this.waitingCount();
    const most = Math.min(missing, concurrency - inFlight, Math.floor(this.credit));
    if (most <= 0) return 0;
    this.credit -= most;
    return most;
  }

  /** @param {number} nowMs @returns {number} since the last step */
  elapsedMs(nowMs) {
    const elapsed = Number.isNaN(this.lastMs) ? CLASS_MS : nowMs - this.lastMs;
    this.lastMs = nowMs;
    return Math.min(Math.max(elapsed, 0), MOST_STEP_MS);
  }

  /** @param {number} nowMs @param {number} successes @param {number} failures */
  note(nowMs, successes, failures) {
    if (successes > 0) {
      this.delayMs = 0;
      this.roundEndMs = 0;
    }
    if (failures <= 0) return;
    if (nowMs >= this.roundEndMs) {
      this.delayMs = Math.min(this.delayMs * 2 || FIRST_DELAY_MS, MOST_DELAY_MS);
      this.roundEndMs = nowMs + this.delayMs / 2;
    }
    for (let i = 0; i < failures; i++) {
      const dueMs = nowMs + this.delayMs * (0.5 + this.random() / 2);
      const due = Math.ceil(dueMs / CLASS_MS);
      this.waiting.set(due, (this.waiting.get(due) ?? 0) + 1);
    }
  }

  /** @param {number} nowMs */
  release(nowMs) {
    for (const due of this.waiting.keys()) {
      if (due * CLASS_MS <= nowMs) this.waiting.delete(due);
    }
  }

  /** @returns {number} streams waiting to be tried again */
  waitingCount() {
    let count = 0;
    for (const some of this.waiting.values()) count += some;
    return count;
  }
}
