/*
 * The primary's side of its workers: forks them, passes on what they say, and ends them. What happens when one exits is in exits.js.
 * The states of a worker are drawn in lib/states.js.
 */
import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { createInterface } from 'node:readline';
import { dispatch } from '../lib/dispatch.js';
import { HoldfastError } from '../lib/errors.js';
import { Census } from './census.js';
import { Exits } from './exits.js';
import { Pause } from './handover/pause.js';
import { Replacements } from './handover/replacements.js';
import { Publications } from './publications.js';
import { Revocations } from './revocations.js';
import { Samples } from './samples.js';
import { keepSnapshot, makeSlot, nameOf } from './slot.js';
import { Totals } from './totals.js';

/** How long a worker may take to listen. With many workers, they start one after another. */
const START_MS = 30_000;
const START_MS_PER_WORKER = 200;
/** How long after the drain a worker may take to exit. */
const EXIT_GRACE_MS = 3000;
/** After this time a publication is answered with its outcome so far. Publishers usually wait for 5 s. */
const PUBLISH_MS = 4000;
/** Streams that are revoked end within a second. */
const REVOKE_MS = 1000;

/** Workers that take longer to count their topics are left out. */
const COUNT_MS = 2500;

/** @typedef {import('../broker/server.js').BrokerServer} BrokerServer */
/** @typedef {import('../hub/presence/server.js').PresenceServer} PresenceServer */
/** @typedef {import('./slot.js').Slot} Slot */

/**
 * Emits 'note' (line), a line for the log, 'change' when a worker answered or ended, and 'lost' (error) when one died that was to take
 * over streams.
 * @extends {EventEmitter<{ note: [string], change: [], lost: [HoldfastError] }>}
 */
export class Workers extends EventEmitter {
  /**
   * @param {object} options
   * @param {string} options.exec path of worker.js
   * @param {import('../limits/plan.js').Plan} options.plan
   * @param {string} options.transport
   * @param {import('../lib/config.js').Config} options.config
   */
  constructor({ exec, plan, transport, config }) {
    super();
    this.transport = transport;
    this.plan = plan;
    this.config = config;
    this.port = 0;
    this.ending = false;
    this.totals = new Totals();
    /** @type {Slot[]} */
    this.slots = [];
    /** Workers beside the slots: they are about to take one over, or have handed theirs over. @type {Set<Slot>} */
    this.aside = new Set();
    /** Another server is about to hand over its streams. If a worker dies now, that server keeps them. */
    this.isArriving = false;
    /** Another server that takes over from this one: it gets publications as a worker does. @type {object | null} */
    this.successor = null;
    /** Holds back publications and revocations while streams move. */
    this.pause = new Pause();
    this.exits = new Exits(this);
    this.replacements = new Replacements(this);
    this.samples = new Samples(this);
    const { maxQueueBytes } = config;
    this.publications = new Publications({ maxQueueBytes, answerMs: PUBLISH_MS, pause: this.pause });
    this.revocations = new Revocations(REVOKE_MS, this.pause);
    this.census = new Census(COUNT_MS);
    /** @type {BrokerServer | null} */
    this.broker = null;
    /** With --subscriptions. @type {PresenceServer | null} */
    this.presence = null;
    /** What they listen with; null without TLS. @type {import('./certificates.js').Secure | null} */
    this.secure = null;
    /** @type {{ resolve: (port: number) => void, reject: (error: Error) => void } | null} */
    this.starting = null;
    cluster.schedulingPolicy = plan.scheduling === 'shared' ? cluster.SCHED_NONE : cluster.SCHED_RR;
    cluster.setupPrimary({ exec, args: [], silent: true });
  }

  /**
   * @param {number} port to listen on
   * @param {BrokerServer} broker that feeds them
   * @param {PresenceServer | null} presence
   * @param {boolean} [takesOver] whether they will get their listening sockets from another server
   * @returns {Promise<number>} the port, once all workers listen
   * @throws {HoldfastError} the reason if a worker can't
   */
  start(port, broker, presence, takesOver = false) {
    this.config = { ...this.config, port };
    this.isArriving = takesOver;
    this.broker = broker;
    this.presence = presence;
    return new Promise((resolve, reject) => {
      this.starting = { resolve, reject };
      for (let id = 1; id <= this.plan.workers; id++) this.slots.push(this.fork(id, 0, broker, takesOver));
    });
  }

  /** @param {number} id @param {number} failures consecutive @param {BrokerServer} broker @param {boolean} [takesOver] @returns {Slot} */
  fork(id, failures, broker, takesOver = false) {
    const process = cluster.fork();
    const slot = makeSlot(id, failures, process, broker, takesOver);
    const ofPresence = this.presence?.handlersOf(slot) ?? NO_PRESENCE;
    const handlers = { ...this.handlersOf(slot), ...broker.handlersOf(slot), ...ofPresence };
    process.on('message', (message) => dispatch(handlers, message));
    process.on('exit', (code, signal) => this.exits.exited(slot, signal ?? `status ${code}`));
    process.on('error', (error) => {
      if (slot.pid === 0) this.exits.exited(slot, error.message); // the fork failed, so there will be no 'exit'
    });
    const startMs = START_MS + START_MS_PER_WORKER * this.plan.workers;
    slot.timer = setTimeout(() => process.process.kill('SIGKILL'), startMs);
    for (const output of [process.process.stdout, process.process.stderr]) {
      if (output) createInterface(output).on('line', (line) => this.note(`worker ${id}: ${line}`));
    }
    return slot;
  }

  /** @param {Slot} slot */
  handlersOf(slot) {
    return {
      hello: () => this.greeted(slot),
      /** @param {import('./messages.js').Ready} message */
      ready: (message) => this.ready(slot, message),
      /** @param {import('./messages.js').Failed} message */
      failed: ({ code, message }) => this.failed(slot, new HoldfastError(code, message)),
      /** @param {import('./messages.js').SnapshotMessage} message */
      snapshot: ({ id, snapshot }) => {
        if (slot.askedId === id) slot.askedId = 0;
        slot.silentFrames = 0;
        this.read(slot, snapshot);
      },
      /** @param {import('./messages.js').Published} message */
      published: (message) => this.publications.answered(slot, message),
      /** @param {import('./messages.js').Revoked} message */
      revoked: ({ id }) => this.revocations.answered(slot, id, undefined),
      /** @param {import('./messages.js').Counted} message */
      counted: ({ id, top }) => this.census.answered(slot, id, top),
      /** @param {import('./messages.js').HandedOver} message */
      handedOver: (message) => slot.asks.answered(message),
      /** @param {import('./messages.js').Crashed} message */
      crashed: ({ message }) => this.replacements.crashed(slot, message),
      /** @param {import('./messages.js').Drained} message */
      drained: ({ snapshot }) => {
        slot.drained = true;
        if (snapshot) this.read(slot, snapshot);
      },
    };
  }

  /** @param {Slot} slot whose worker can receive messages from now on; earlier ones would have been lost */
  greeted(slot) {
    if (this.ending) return this.send(slot, { type: 'drain', periodMs: 0 });
    const { config, transport, plan, secure } = this;
    const { workers, shards, capacity, connectionLimit } = plan;
    const share = {
      shards,
      phase: (slot.id - 1) * shards,
      phases: workers * shards,
      takesOver: slot.takesOver,
      secure,
    };
    slot.state = 'starting';
    // Not only when it is ready: it may have streams before we know.
    const place = slot.broker.add(slot, (message) => this.send(slot, message));
    this.send(slot, { type: 'start', config, transport, capacity, connectionLimit, ...share, place });
    this.publications.add(slot, (message) => this.send(slot, message));
    this.revocations.add(slot, (message) => this.send(slot, message));
    this.census.add(slot, (message) => this.send(slot, message));
    this.presence?.add(slot, (message) => this.sendWhole(slot, message));
  }

  /** @param {Slot} slot @param {import('../lib/counters.js').Snapshot} snapshot */
  read(slot, snapshot) {
    keepSnapshot(slot, snapshot);
    this.emit('change');
  }

  /** @param {Slot} slot @param {import('./messages.js').Ready} message */
  ready(slot, { port }) {
    if (slot.state === 'starting') slot.state = 'ready';
    clearTimeout(slot.timer);
    if (this.port !== 0 && this.port !== port) this.note(`the port is now ${port}`);
    this.port = port;
    this.emit('change');
    if (this.aside.has(slot)) return;
    if (!this.starting) this.note(`${nameOf(slot)} is listening`);
    else if (this.slots.every(({ state }) => state === 'ready')) {
      this.starting.resolve(port);
      this.starting = null;
    }
  }

  /** @param {Slot} slot @param {HoldfastError} error */
  failed(slot, error) {
    if (this.ending) return;
    if (!this.starting || this.aside.has(slot)) return this.note(`worker ${slot.id}: ${error.message}`);
    this.starting.reject(error);
    this.starting = null;
    this.ending = true;
  }

  /** A worker gives its slot to another one, which has its streams. @param {Slot} old @param {Slot} successor */
  swap(old, successor) {
    this.aside.delete(successor);
    this.aside.add(old);
    this.slots[old.id - 1] = successor;
    old.state = 'draining';
    old.askedId = 0;
    successor.unread.unshift(...old.unread.splice(0));
    if (old.snapshot) old.snapshot = { ...old.snapshot, streams: 0 };
    this.emit('change');
  }

  /** Counters of workers that have no slot any more, and of the primary. */
  get retired() {
    return this.totals.with(this.aside);
  }

  /** Counters of all workers there ever were, as far as they have reported. */
  get counts() {
    return this.totals.with([...this.aside, ...this.slots]);
  }

  /** A worker is gone: nothing is sent to it, or expected of it, any more. @param {Slot} slot @param {string} how it ended */
  forget(slot, how) {
    this.publications.remove(slot);
    this.revocations.remove(slot);
    this.census.remove(slot);
    this.presence?.remove(slot);
    slot.broker.remove(slot);
    slot.asks.close(`it ended (${how})`);
    slot.askedId = 0;
  }

  /** Asks every worker for its snapshot. @param {number} deadlineMs @returns {Promise<void>} when all have answered, or at the deadline */
  sample(deadlineMs) {
    return this.samples.take(deadlineMs);
  }

  /** @returns {string} why some clients would not be served; '' if all would */
  get problem() {
    if (this.replacements.isReviving) return 'the workers are being replaced after a takeover that failed';
    for (const { id, state, silentFrames } of this.slots) {
      if (state !== 'ready') return `worker ${id} is ${state}`;
      if (silentFrames >= this.samples.silentAfter) return `worker ${id} does not report`;
    }
    return '';
  }

  /**
   * Sends a message to every stream on a channel.
   * @param {string} channel @param {string} message
   * @returns {Promise<import('./publications.js').Outcome>}
   * @throws {HoldfastError} NO_WORKER if no worker is ready, BUSY
   */
  async publish(channel, message) {
    if (!this.successor && !this.slots.some(({ state }) => state === 'ready'))
      throw new HoldfastError(
        'NO_WORKER',
        `no worker is ready${this.ending ? ': the server is ending' : ''}`,
      );
    return this.publications.publish(channel, message);
  }

  /** Counts what the primary itself has done. @param {Parameters<Totals['count']>[0]} counts */
  count(counts) {
    this.totals.count(counts);
  }

  /** Those that start later get the newest ones, too. @param {import('./certificates.js').Secure} secure */
  useCertificates(secure) {
    this.secure = secure;
    for (const slot of [...this.slots, ...this.aside])
      if (slot.state === 'starting' || slot.state === 'ready')
        this.send(slot, { type: 'certificates', secure });
  }

  gc() {
    this.tellReady({ type: 'gc' });
  }

  /**
   * Closes all streams and ends the workers.
   * @param {number} periodMs
   * @returns {Promise<void>} resolves when the last is gone; a worker that does not exit is killed
   */
  async drain(periodMs) {
    this.ending = true;
    await this.replacements.stop();
    for (const slot of [...this.slots, ...this.aside]) {
      clearTimeout(slot.timer);
      if (slot.state === 'dead') slot.state = 'gone';
      if (slot.state === 'gone') continue;
      slot.state = 'draining';
      this.send(slot, { type: 'drain', periodMs });
    }
    const allGone = () => this.aside.size === 0 && this.slots.every(({ state }) => state === 'gone');
    await this.until(allGone, periodMs + EXIT_GRACE_MS);
    if (allGone()) return;
    this.kill();
    await this.until(allGone, EXIT_GRACE_MS);
  }

  /** Ends the workers now. */
  kill() {
    this.ending = true;
    for (const slot of [...this.slots, ...this.aside]) {
      clearTimeout(slot.timer);
      if (slot.state !== 'gone' && slot.state !== 'dead') slot.process.process.kill('SIGKILL');
    }
  }

  /** @param {import('./messages.js').ToWorker} message */
  tellReady(message) {
    for (const slot of this.slots) if (slot.state === 'ready') this.send(slot, message);
  }

  /** @param {Slot} slot @param {import('./messages.js').ToWorker} message */
  send(slot, message) {
    if (slot.process.isConnected()) slot.process.send(message);
  }

  /** @param {Slot} slot @param {import('./messages.js').ToWorker} message @returns {Promise<void>} when the kernel has taken it, or the worker is gone */
  sendWhole(slot, message) {
    return new Promise((resolve) => {
      if (slot.process.isConnected()) slot.process.process.send(message, () => resolve());
      else resolve();
    });
  }

  /** @param {string} line */
  note(line) {
    this.emit('note', line);
  }

  /** @param {() => boolean} condition @param {number} deadlineMs @returns {Promise<void>} */
  until(condition, deadlineMs) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.off('change', check);
        resolve();
      };
      const check = () => condition() && done();
      const timer = setTimeout(done, deadlineMs);
      this.on('change', check);
      check();
    });
  }
}

/** Without --subscriptions, workers don't send these. */
const NO_PRESENCE = { attendance: () => {}, list: () => {} };
