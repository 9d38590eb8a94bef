/*
 * A server takes over from another one, and with it its broker: how the next one gets everything that the one before has.
 *
 *     memory   copied while the other one goes on, from the first broker of the switch
 *     disk     the other one closes the folder, this one opens it
 *     NATS     this node opens its own copy of the stream, beforehand unless it is in a folder that the other one has open
 */
import { openBroker } from './index.js';
import { MemoryBroker } from './memory.js';
import { Pursuit } from './pursuit.js';

/** Publications of the first read. */
const PAGE = 1000;

/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {Parameters<typeof openBroker>[0]} Options */

/**
 * @typedef {object} Inheritance
 * @property {(closeOther: () => Promise<void>) => Promise<void>} switch from now on the next broker decides. Meanwhile publications wait, and
 *   `closeOther` has the other server do `closeForHandover` (broker/server.js). If it rejects, everything goes on with the first broker
 * @property {() => Promise<void>} cancel instead of `switch`, or after it has rejected
 */

/**
 * @param {import('./switch.js').SwitchBroker} broker whose first broker is that of the other server
 * @param {Options} options of the next one: they should name the same store
 * @param {AbortSignal} [signal] ends waiting for NATS
 * @returns {Promise<Inheritance>} as soon as little is left to be done
 * @throws {import('../lib/errors.js').HoldfastError} NATS, STORE
 */
export async function prepareInheritance(broker, options, signal) {
  const opened = () => openBroker(options, signal);
  if (options.nats && options.store === '') {
    const next = await opened();
    return inheritanceOf(broker, async () => next, next);
  }
  if (options.nats || options.store !== '') return inheritanceOf(broker, opened);
  const heir = new Heir(broker.current, options);
  await heir.copy();
  return inheritanceOf(broker, () => heir.complete(), heir);
}

/**
 * @param {import('./switch.js').SwitchBroker} broker
 * @param {() => Promise<Broker>} complete called when the other server stores nothing any more
 * @param {{ close: () => Promise<void> }} [part] what is there already
 * @returns {Inheritance}
 */
function inheritanceOf(broker, complete, part) {
  return {
    async switch(closeOther) {
      await broker.switchTo(async () => {
        await closeOther();
        return complete();
      });
    },
    cancel: async () => part?.close(),
  };
}

/** Copies the history of a broker into memory, while that one goes on. */
export class Heir {
  /** @param {Broker} source @param {import('./index.js').Limits} limits */
  constructor(source, limits) {
    this.source = source;
    this.broker = new MemoryBroker(limits);
    this.isStale = false;
    /** @type {Pursuit | null} */
    this.pursuit = null;
  }

  /** @returns {Promise<void>} once it has everything, and gets everything that comes */
  async copy() {
    do {
      this.isStale = false;
      this.pursuit = this.pursue();
      try {
        await this.begin();
        await this.pursuit.run();
      } catch (error) {
        if (!this.isStale) throw error;
      }
    } while (this.isStale);
  }

  /** @returns {Pursuit} that begins anew if the order does */
  pursue() {
    const { broker } = this;
    const pursuit = new Pursuit(this.source, {
      get last() {
        return broker.last;
      },
      take: (publications) => broker.load(publications),
      skip: () => this.begin(),
      reset: () => {
        this.isStale = true;
        pursuit.end();
      },
    });
    return pursuit;
  }

  /** Forgets what it has, and begins with the oldest publication that is stored. */
  async begin() {
    const { source, broker } = this;
    const page = await source.read(0, PAGE);
    const { epoch, key, last } = source;
    const first = page[0]?.sequence ?? last + 1;
    const latest = await source.latest(); // after the read: whatever is newer than its beginning comes anyway
    broker.begin({ epoch, key, last: first - 1 });
    broker.loadKept(latest.filter(({ sequence }) => sequence < first));
    broker.load(page);
  }

  /** The source stores nothing more. @returns {Promise<MemoryBroker>} with everything that it has stored */
  async complete() {
    await this.source.read(this.broker.last, 1); // whatever was on its way comes before the answer
    if (this.isStale) await this.copy();
    else await this.pursuit?.run();
    this.pursuit?.end();
    return this.broker;
  }

  /** @returns {Promise<void>} */
  close() {
    this.pursuit?.end();
    return this.broker.close();
  }
}
