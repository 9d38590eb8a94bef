/*
 * Revocations on their way to all workers. Each worker ends its own streams.
 */
import { Pause } from './handover/pause.js';
import { Poll } from './poll.js';

/** @typedef {import('../hub/revocations.js').Revocation} Revocation */
/** @typedef {{ workers: number, unanswered: number }} Outcome */

/** @extends {Poll<import('./messages.js').Revoke, undefined>} */
export class Revocations extends Poll {
  /** @param {number} answerMs @param {Pause} [pause] in which streams move: their end has to wait */
  constructor(answerMs, pause = new Pause()) {
    super(answerMs);
    this.pause = pause;
  }

  /**
   * @param {Revocation[]} list
   * @returns {Promise<Outcome>} once all workers are ending the streams, or at the deadline
   */
  async revoke(list) {
    await this.pause.passed();
    const { workers, unanswered } = await this.ask({ type: 'revoke', list });
    return { workers, unanswered };
  }
}
