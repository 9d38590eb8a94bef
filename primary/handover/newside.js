/*
 * New workers of this primary in a move: of a reload, or of a server that takes over from another one.
 */
import { HoldfastError, messageOf } from '../../lib/errors.js';

/** Longer than the deadline of whoever asked for the step, so that theirs comes first. */
const STEP_MS = 10_000;

/** @typedef {import('./links.js').Link} Link */
/** @typedef {import('./move.js').PresenceOf} PresenceOf */
/** @typedef {import('./move.js').Targets} Targets */

/** @implements {Targets} */
export class NewSide {
  /**
   * @param {object} options
   * @param {{ ask: (step: string, fields: Record<string, unknown>, deadlineMs: number) => Promise<any> }[]} options.workers
   * @param {number[]} options.shards of each worker
   * @param {() => Promise<void>} options.flush passes on to the workers everything that has been fed to this primary
   * @param {(presence: PresenceOf) => void} [options.arrive] puts streams of a worker on the list of subscriptions
   */
  constructor({ workers, shards, flush, arrive = () => {} }) {
    this.workers = workers;
    this.shards = shards;
    this.flush = flush;
    this.arrive = arrive;
    /** Those that get no listening sockets, because they take no streams. @type {NewSide['workers']} */
    this.deaf = [];
  }

  /** @param {Link[][]} links by worker */
  async connect(links) {
    this.deaf = this.workers.filter((_, i) => links[i].length === 0);
    await Promise.all(this.workers.map((worker, i) => worker.ask('connect', { sources: links[i] }, STEP_MS)));
  }

  /** @param {number} [deadlineMs] */
  async sync(deadlineMs = STEP_MS) {
    await this.flush();
    await Promise.all(this.workers.map((worker) => worker.ask('sync', {}, deadlineMs)));
  }

  /** @param {unknown[]} notes of the old hubs */
  async learn(notes) {
    await Promise.all(this.workers.map((worker) => worker.ask('learn', { notes }, STEP_MS)));
  }

  /**
   * A worker that dies now takes its streams with it; those of the others go on.
   * @param {PresenceOf[]} presence @returns {Promise<number>} streams
   * @throws {HoldfastError} HANDOVER if no worker has gone on
   */
  async go(presence) {
    for (const one of presence) this.arrive(one);
    const answers = await Promise.allSettled(this.workers.map((worker) => worker.ask('go', {}, STEP_MS)));
    const taken = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const [failure] = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    if (taken.length === 0 && failure) throw new HoldfastError('HANDOVER', messageOf(failure));
    await Promise.allSettled(this.deaf.splice(0).map((worker) => worker.ask('listen', {}, STEP_MS)));
    return taken.reduce((sum, count) => sum + count, 0);
  }

  async drop() {
    await Promise.allSettled(this.workers.map((worker) => worker.ask('drop', {}, STEP_MS)));
  }
}
