/*
 * Revocations on their way to all workers. Each worker ends its own streams.
 */
import { Poll } from './poll.js';

/** @typedef {import('../hub/revocations.js').Revocation} Revocation */
/** @typedef {{ workers: number, unanswered: number }} Outcome */

/** @extends {Poll<import('./messages.js').Revoke, undefined>} */
export class Revocations extends Poll {
  /**
   * @param {Revocation[]} list
   * @returns {Promise<Outcome>} once all workers are ending the streams, or at the deadline
   */
  async revoke(list) {
    const { workers, unanswered } = await this.ask({ type: 'revoke', list });
    return { workers, unanswered };
  }
}
