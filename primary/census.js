/*
 * What is asked of all workers while somebody looks at the dashboard: how many streams are on which topics. Each worker counts its
 * own, and a worker that does not answer in time is left out.
 */
import { mergeTops } from '../lib/tops.js';
import { Poll } from './poll.js';

/** @typedef {import('../lib/tops.js').Top} Top */

/** Workers report more than are shown, because the largest of all need not be the largest of each. */
const SPARE = 5;

/** @extends {Poll<import('./messages.js').Count, Top>} */
export class Census extends Poll {
  /** @param {number} most topics @returns {Promise<{ top: Top, unanswered: number }>} at the deadline at the latest */
  async take(most) {
    const { answers, unanswered } = await this.ask({ type: 'count', most: most * SPARE });
    return { top: mergeTops(answers, most), unanswered };
  }
}
