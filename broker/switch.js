/*
 * A broker that can be exchanged for another one with the same order, while publishers publish and followers follow.
 *
 *     one broker --switchTo: what is in progress is answered, the rest waits--> open --> what came in between is passed on --> the next
 *          ^------------------------------ it can't be opened ------------------/
 */
import { HoldfastError } from '../lib/errors.js';
import { busy } from './appends.js';
import { sizeOf } from './limits.js';
import { SharedReads } from './parts.js';
import { Pursuit } from './pursuit.js';

/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Listener} Listener */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */

/** @implements {Broker} */
export class SwitchBroker {
  /**
   * @param {Broker} broker the first one
   * @param {{ maxQueueBytes: number }} options of drafts that wait while it is exchanged
   */
  constructor(broker, { maxQueueBytes }) {
    this.maxQueueBytes = maxQueueBytes;
    /** The one that decides. */
    this.current = broker;
    this.epoch = broker.epoch;
    this.key = broker.key;
    /** Of the last one that was passed on. */
    this.last = broker.last;
    /** @type {Listener[]} */
    this.listeners = [];
    /** @type {(() => void)[]} */
    this.resetListeners = [];
    this.reads = new SharedReads();
    /** Calls in progress. @type {Set<Promise<unknown>>} */
    this.calls = new Set();
    /** Of the drafts that wait. */
    this.bytes = 0;
    /** While it is exchanged: those that wait for the next one. @type {(() => void)[] | null} */
    this.waiting = null;
    /** Until it is exchanged. @type {Promise<void>} */
    this.switching = Promise.resolve();
    this.isClosed = false;
    broker.follow(
      (publications) => (this.current === broker ? this.take(publications) : undefined),
      () => this.current === broker && this.begin(),
    );
  }

  get first() {
    return Math.min(this.current.first, this.last + 1);
  }

  get state() {
    return this.current.state;
  }

  get bus() {
    return this.current.bus;
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<Receipt[]>} */
  async append(drafts) {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the broker is closed');
    if (!this.waiting) return this.call(() => this.current.append(drafts));
    let bytes = 0;
    for (const draft of drafts) bytes += sizeOf(draft);
    if (this.bytes > 0 && this.bytes + bytes > this.maxQueueBytes) throw busy(this.bytes, this.maxQueueBytes);
    this.bytes += bytes;
    return this.later(() => {
      this.bytes -= bytes;
      return this.current.append(drafts);
    });
  }

  /** @param {Listener} listener @param {() => void} [onReset] */
  follow(listener, onReset) {
    this.listeners.push(listener);
    if (onReset) this.resetListeners.push(onReset);
  }

  /** @param {number} after @param {number} most @returns {Promise<readonly Publication[]>} */
  read(after, most) {
    return this.ask(`read ${after} ${most}`, () => this.current.read(after, most));
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  find(id) {
    return this.ask(`find ${id}`, () => this.current.find(id));
  }

  /** @returns {Promise<readonly Publication[]>} */
  latest() {
    return this.ask('latest', () => this.current.latest());
  }

  /** Finishes what is in progress, and refuses everything else. */
  async close() {
    this.isClosed = true;
    await this.switching;
    await this.current.close();
  }

  /**
   * Another broker decides from now on.
   * @param {() => Promise<Broker>} open the other one; called when nothing is in progress. The first one is closed afterwards
   * @returns {Promise<void>} rejects if `open` does, or if that is not possible now; then everything goes on as before
   */
  async switchTo(open) {
    if (this.waiting || this.isClosed)
      throw new HoldfastError('BUSY', 'the broker is being exchanged or closed');
    this.waiting = [];
    const switched = this.exchange(open);
    this.switching = switched.catch(() => {});
    await switched;
  }

  /** @param {() => Promise<Broker>} open */
  async exchange(open) {
    try {
      await Promise.allSettled(this.calls);
      const before = this.current;
      const next = await open();
      this.current = next;
      await this.pursue(next);
      void before.close().catch(() => {});
    } finally {
      const waiting = this.waiting ?? [];
      this.waiting = null;
      for (const call of waiting) call();
    }
  }

  /** Passes on what the next broker has above `last`, and what comes then. @param {Broker} next */
  async pursue(next) {
    if (next.epoch !== this.epoch || !Buffer.from(next.key).equals(this.key)) this.begin();
    const broker = this;
    const pursuit = new Pursuit(next, {
      get last() {
        return broker.last;
      },
      take: (publications) => (this.current === next ? this.take(publications) : undefined),
      skip: () => this.begin(),
      reset: () => this.current === next && this.begin(),
    });
    await pursuit.run();
  }

  /**
   * @template T
   * @param {string} key the same for identical reads @param {() => Promise<T>} read
   * @returns {Promise<T>}
   */
  ask(key, read) {
    return this.reads.share(key, () => (this.waiting ? this.later(read) : this.call(read)));
  }

  /** @template T @param {() => Promise<T>} act @returns {Promise<T>} */
  call(act) {
    const done = act();
    this.calls.add(done);
    const forget = () => void this.calls.delete(done);
    done.then(forget, forget);
    return done;
  }

  /** @template T @param {() => Promise<T>} act once there is a broker that decides @returns {Promise<T>} */
  later(act) {
    return new Promise((resolve, reject) => {
      this.waiting?.push(() => this.call(act).then(resolve, reject));
    });
  }

  /** @param {readonly Publication[]} publications the next ones @returns {Promise<void> | undefined} */
  take(publications) {
    this.last = publications.at(-1)?.sequence ?? this.last;
    const waits = this.listeners.map((listener) => listener(publications)).filter(Boolean);
    return waits.length > 0 ? Promise.all(waits).then(() => {}) : undefined;
  }

  /** The order has begun anew, or has a gap. */
  begin() {
    const { epoch, key, last } = this.current;
    this.epoch = epoch;
    this.key = key;
    this.last = last;
    this.reads.restart();
    for (const onReset of this.resetListeners) onReset();
  }
}
