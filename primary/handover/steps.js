/*
 * The steps of a handover in a worker, old or new: what the primary asks for, the Hold and the hub do.
 */
import { HoldfastError } from '../../lib/errors.js';
import { failAt } from '../../lib/failat.js';

/** @typedef {NonNullable<import('../../transport/index.js').Transport['handover']>} Handover */
/** @typedef {import('../../native/types.js').Taken} Taken */

/**
 * The part of a hub that streams move from, or to.
 * @typedef {object} Hub
 * @property {() => Promise<void>} settled resolves when its Hold has been given everything that was fed
 * @property {(stream: Taken) => void} takeIn
 * @property {readonly string[] | null} quiet prefixes of channels; a stream only on such ones need not be taken in
 * @property {() => any[]} notes what the hub that takes its streams has to know
 * @property {(notes: any[]) => void} learn
 */

export class Steps {
  /**
   * @param {object} options
   * @param {Handover | null} options.handover null without the native core
   * @param {Hub} options.hub
   * @param {() => void} options.flush sends what the primary has to know of the streams so far
   * @param {() => Promise<unknown>} options.listen for a worker that gets no listening sockets of others
   */
  constructor({ handover, hub, flush, listen }) {
    this.listen = listen;
    this.handover = handover;
    this.hub = hub;
    this.flush = flush;
    /** Whether another worker has streams of this one. */
    this.hasReleased = false;
  }

  /**
   * @param {import('../messages.js').Handover} question
   * @returns {Promise<import('../messages.js').HandedOver>} never rejects
   */
  async answer(question) {
    const { id, step } = question;
    try {
      failAt(step);
      return { type: 'handedOver', id, value: await this.take(question) };
    } catch (error) {
      return { type: 'handedOver', id, problem: error instanceof Error ? error.message : String(error) };
    }
  }

  /** @param {import('../messages.js').Handover} question @returns {unknown} */
  take({ step, ms = 0, wantsIds = false, sources = [], notes = [] }) {
    const { handover, hub } = this;
    if (!handover) throw new HoldfastError('NOT_NATIVE', 'only the hold transport can move streams');
    /** @type {Record<string, () => unknown>} */
    const steps = {
      offer: () => handover.offer(),
      move: () => this.move(handover, { ms, wantsIds }),
      release: () => {
        this.hasReleased = true;
        return handover.release();
      },
      takeBack: () => handover.takeBack(),
      withdraw: () => handover.withdraw(),
      connect: () => handover.connect(sources),
      sync: () => this.sync(handover),
      learn: () => hub.learn(notes),
      go: () => handover.go({ quiet: hub.quiet, onTaken: (stream) => hub.takeIn(stream) }),
      drop: () => handover.drop(),
      listen: () => this.listen().then(() => {}),
    };
    if (!Object.hasOwn(steps, step)) throw new HoldfastError('HANDOVER', `unknown step ${step}`);
    return steps[step]();
  }

  /** @param {Handover} handover */
  async sync({ flush }) {
    await this.hub.settled();
    flush(); // the shards have to know it before streams come
  }

  /** Streams have been given everything that was fed before they move. @param {Handover} handover @param {{ ms: number, wantsIds: boolean }} how */
  async move(handover, how) {
    await this.hub.settled();
    const moved = await handover.move(how);
    this.flush();
    return { ...moved, notes: this.hub.notes() };
  }
}
