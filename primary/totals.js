/*
 * Counters of workers that are gone, and of the primary itself, so that totals never fall.
 */
import { addCounts, joinCounts, noCounts } from '../lib/counts.js';

/** @typedef {import('../lib/counters.js').Snapshot} Snapshot */
/** @typedef {import('../lib/counts.js').Counts} Counts */
/** @typedef {import('../lib/hubcounters.js').HubCounterName} HubCounterName */

export class Totals {
  constructor() {
    /** Of dead workers, and of the primary. */
    this.dead = noCounts();
    /** Of a server that this one has taken over from. */
    this.inherited = noCounts();
  }

  /** @param {Iterable<{ snapshot: Snapshot | null }>} workers that still count @returns {Counts} */
  with(workers) {
    const counts = structuredClone(this.dead);
    joinCounts(counts, this.inherited);
    for (const { snapshot } of workers) if (snapshot) addCounts(counts, snapshot);
    return counts;
  }

  /**
   * @param {Snapshot | null} snapshot the last one of a worker that died @param {number} received streams that it had before the first
   * @returns {number} streams that were lost with it
   */
  retire(snapshot, received) {
    if (snapshot) addCounts(this.dead, snapshot);
    const lost = snapshot?.streams ?? received;
    this.dead.lostWithWorkers += lost;
    return lost;
  }

  /** What the primary itself has done. @param {Partial<Record<HubCounterName, number>>} counts */
  count(counts) {
    for (const [name, count] of Object.entries(counts))
      this.dead[/** @type {HubCounterName} */ (name)] += count;
  }
}
