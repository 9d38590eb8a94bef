/*
 * The states of a worker. primary/workers.js sets them, and the views show them.
 *
 *     forked --hello--> starting --ready--> ready --drain--> draining --exit--> gone
 *       ^                                     |
 *       \-------------back-off------------- dead     (if it dies before all are ready, the server ends)
 */

/** @typedef {'forked' | 'starting' | 'ready' | 'draining' | 'dead' | 'gone'} WorkerState */

/** @param {{ state: WorkerState }} worker @returns {boolean} whether it has a process */
export function isAlive({ state }) {
  return state !== 'dead' && state !== 'gone';
}
