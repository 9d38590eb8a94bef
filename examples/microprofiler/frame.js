/*
 * The rows of a table or a CSV, from the reports of one or more profilers. Pure.
 */
import { Histogram } from './histogram.js';

/** @typedef {import('./profiler.js').Report} Report */

/**
 * @typedef {object} Row one key
 * @property {string} key
 * @property {number | null} budgetNs null without one
 * @property {number} samples calls that were measured
 * @property {number} calls estimated from them
 * @property {number} perSecond calls
 * @property {number} meanNs
 * @property {number} p50Ns
 * @property {number} p90Ns
 * @property {number} p99Ns
 * @property {number} maxNs
 * @property {number} totalNs of all calls, estimated
 * @property {number} share of the time: 1 is a whole core, or one promise that is always pending
 * @property {number} overShare of the calls, that took longer than the budget
 */

export class Frame {
  /** @param {Record<string, number>} [budgets] ns by key */
  constructor(budgets = {}) {
    this.budgets = budgets;
    /** @type {Map<string, { histogram: Histogram, calls: number, totalNs: number }>} */
    this.keys = new Map();
  }

  /** @param {Pick<Report, 'every' | 'keys'>} report */
  add({ every, keys }) {
    for (const [key, recorded] of keys) {
      const sum = this.keys.get(key) ?? this.begin(key);
      sum.histogram.merge(recorded);
      sum.calls += recorded.count * every;
      sum.totalNs += recorded.sumNs * every;
    }
  }

  /** @param {string} key */
  begin(key) {
    const sum = { histogram: new Histogram(), calls: 0, totalNs: 0 };
    this.keys.set(key, sum);
    return sum;
  }

  /** @param {number} ns how long it was measured @returns {Row[]} those that took most time first */
  rows(ns) {
    const rows = [...this.keys].map(([key, { histogram, calls, totalNs }]) => ({
      key,
      budgetNs: this.budgets[key] ?? null,
      samples: histogram.count,
      calls,
      perSecond: ns > 0 ? (calls * 1e9) / ns : 0,
      meanNs: histogram.meanNs,
      p50Ns: histogram.percentile(0.5),
      p90Ns: histogram.percentile(0.9),
      p99Ns: histogram.percentile(0.99),
      maxNs: histogram.maxNs,
      totalNs,
      share: ns > 0 ? totalNs / ns : 0,
      overShare: histogram.count > 0 ? histogram.over / histogram.count : 0,
    }));
    return rows.sort((one, other) => other.totalNs - one.totalNs || (one.key < other.key ? -1 : 1));
  }
}
