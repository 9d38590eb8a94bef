/*
 * Reports decisions that took too long. When a service that the application depends on is down, all of them do, so there is
 * one error per second.
 */
import { HoldfastError } from '../lib/errors.js';

const REPORT_EVERY_MS = 1000;

export class LateDecisions {
  /**
   * @param {number} answerTimeoutMs how long a decision may take
   * @param {(error: HoldfastError) => void} onError
   */
  constructor(answerTimeoutMs, onError) {
    this.answerTimeoutMs = answerTimeoutMs;
    this.onError = onError;
    /** Not reported yet. */
    this.count = 0;
    /** Runs while another report would be too soon. @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.report = this.report.bind(this);
  }

  /** Counts a request that was refused because its decision did not come. The first is reported at once. */
  add() {
    this.count++;
    if (!this.timer) this.report();
  }

  report() {
    this.timer = undefined;
    if (this.count === 0) return;
    this.onError(tooLate(this.count, this.answerTimeoutMs));
    this.count = 0;
    this.timer = setTimeout(this.report, REPORT_EVERY_MS).unref();
  }
}

/** @param {number} count @param {number} answerTimeoutMs */
function tooLate(count, answerTimeoutMs) {
  const requests = count === 1 ? '1 request' : `${count} requests`;
  return new HoldfastError(
    'DECISION_TIMEOUT',
    `decide did not answer ${requests} within ${answerTimeoutMs} ms (answerTimeoutMs): answered with 503`,
  );
}
