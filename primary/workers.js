/*
 * The primary's side of its workers: forks them, forks again those that die, asks each for its snapshot, and
 * ends them. A worker moves so:
 *
 *     forked --hello--> starting --ready--> ready --drain--> draining --exit--> gone
 *       ^                                     |
 *       \-------------back-off------------- dead     (one that dies before it was ever ready ends the server)
 */
import cluster from 'node:cluster';
import { EventEmitter } from 'node:events';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { addCounts, noCounts } from '../lib/counts.js';
import { HoldfastError } from '../lib/errors.js';
import { dispatch } from './messages.js';

const BACK_OFF_MIN_MS = 100;
const BACK_OFF_MAX_MS = 10_000;
/** A worker that lived this long starts afresh with the shortest back-off. */
const STEADY_MS = 60_000;
/** How long a worker may take to listen: at a big start they come one after another. */
const START_MS = 30_000;
const START_MS_A_WORKER = 200;
/** Beyond the drain, how long a worker has to end by itself. */
const EXIT_GRACE_MS = 3000;

/** @typedef {'forked' | 'starting' | 'ready' | 'draining' | 'dead' | 'gone'} WorkerState */

/**
 * One place among the workers; the process in it may change.
 * @typedef {object} Slot
 * @property {number} id from 1
 * @property {WorkerState} state
 * @property {import('node:cluster').Worker} process
 * @property {number} pid
 * @property {number} startedMs on performance's clock
 * @property {number} failures in a row
 * @property {number} askedId of the sample that waits for its answer; 0 where none does
 * @property {import('../lib/counters.js').Snapshot | null} snapshot the last one of this process
 * @property {import('../lib/counters.js').Snapshot[]} unread those that no frame has seen yet
 * @property {boolean} drained it has said its last word
 * @property {NodeJS.Timeout | undefined} timer of the back-off, or of the start
 */

/**
 * Emits 'note' (line), a line for the log, and 'change' when a worker answered or ended.
 * @extends {EventEmitter<{ note: [string], change: [] }>}
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
    this.lastId = 0;
    /** What the dead had counted, so that totals never fall. */
    this.retired = noCounts();
    /** @type {Slot[]} */
    this.slots = [];
    /** @type {{ resolve: (port: number) => void, reject: (error: Error) => void } | null} */
    this.starting = null;
    cluster.schedulingPolicy = plan.scheduling === 'shared' ? cluster.SCHED_NONE : cluster.SCHED_RR;
    cluster.setupPrimary({ exec, args: [], silent: true });
  }

  /**
   * @param {number} port to listen on
   * @returns {Promise<number>} the port, when all workers listen
   * @throws {HoldfastError} why one can't
   */
  start(port) {
    this.config = { ...this.config, port };
    return new Promise((resolve, reject) => {
      this.starting = { resolve, reject };
      for (let id = 1; id <= this.plan.workers; id++) this.slots.push(this.fork(id, 0));
    });
  }

  /** @param {number} id @param {number} failures @returns {Slot} */
  fork(id, failures) {
    const process = cluster.fork();
    /** @type {Slot} */
    const slot = {
      id,
      state: 'forked',
      process,
      pid: process.process.pid ?? 0,
      startedMs: performance.now(),
      failures,
      askedId: 0,
      snapshot: null,
      unread: [],
      drained: false,
      timer: undefined,
    };
    process.on('message', (message) => dispatch(this.handlersOf(slot), message));
    process.on('exit', (code, signal) => this.exited(slot, signal ?? `status ${code}`));
    process.on('error', (error) => this.broken(slot, error));
    const startMs = START_MS + START_MS_A_WORKER * this.plan.workers;
    slot.timer = setTimeout(() => process.process.kill('SIGKILL'), startMs);
    for (const output of [process.process.stdout, process.process.stderr]) {
      if (output) createInterface(output).on('line', (line) => this.emit('note', `worker ${id}: ${line}`));
    }
    return slot;
  }

  /** @param {Slot} slot @param {Error} error of the channel to it, or of the fork itself: then no exit follows */
  broken(slot, error) {
    if (slot.pid === 0) this.exited(slot, error.message);
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
        this.read(slot, snapshot);
      },
      /** @param {import('./messages.js').Drained} message */
      drained: ({ snapshot }) => {
        slot.drained = true;
        if (snapshot) this.read(slot, snapshot);
      },
    };
  }

  /** @param {Slot} slot that hears us from now on: what was sent before is lost */
  greeted(slot) {
    if (this.ending) return this.send(slot, { type: 'drain', periodMs: 0 });
    const { config, transport, plan } = this;
    const { workers, shards, capacity, connectionLimit } = plan;
    slot.state = 'starting';
    this.send(slot, {
      type: 'start',
      config,
      transport,
      capacity,
      connectionLimit,
      shards,
      phase: (slot.id - 1) * shards,
      phases: workers * shards,
    });
  }

  /** @param {Slot} slot @param {import('../lib/counters.js').Snapshot} snapshot */
  read(slot, snapshot) {
    slot.snapshot = snapshot;
    slot.unread.push(snapshot);
    this.emit('change');
  }

  /** @param {Slot} slot @param {import('./messages.js').Ready} message */
  ready(slot, { port }) {
    if (slot.state === 'starting') slot.state = 'ready';
    clearTimeout(slot.timer);
    if (this.port !== 0 && this.port !== port) this.emit('note', `the port is now ${port}`);
    this.port = port;
    if (!this.starting) this.emit('note', `worker ${slot.id} (pid ${slot.pid}) listens`);
    else if (this.slots.every(({ state }) => state === 'ready')) {
      this.starting.resolve(port);
      this.starting = null;
    }
  }

  /** @param {Slot} slot @param {HoldfastError} error */
  failed(slot, error) {
    if (this.ending) return;
    if (!this.starting) return void this.emit('note', `worker ${slot.id}: ${error.message}`);
    this.starting.reject(error);
    this.starting = null;
    this.ending = true;
  }

  /** @param {Slot} slot @param {string} how */
  exited(slot, how) {
    const lost = this.retire(slot);
    clearTimeout(slot.timer);
    if (this.ending) {
      if (lost > 0)
        this.emit(
          'note',
          `worker ${slot.id} (pid ${slot.pid}) died (${how}) in the drain: ${lost} streams lost`,
        );
      slot.state = 'gone';
      return void this.emit('change');
    }
    slot.state = 'dead';
    if (this.starting) {
      return this.failed(
        slot,
        new HoldfastError('WORKER_DIED', `worker ${slot.id} ended (${how}) before it listened`),
      );
    }
    const steady = performance.now() - slot.startedMs > STEADY_MS;
    const failures = steady ? 1 : slot.failures + 1;
    const delayMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MIN_MS * 2 ** (failures - 1));
    this.emit(
      'note',
      `worker ${slot.id} (pid ${slot.pid}) died (${how}), ${lost} streams lost; again in ${delayMs} ms`,
    );
    slot.timer = setTimeout(() => {
      this.slots[slot.id - 1] = this.fork(slot.id, failures);
    }, delayMs);
    this.emit('change');
  }

  /**
   * Adds what a worker had counted to what the dead left.
   * @param {Slot} slot
   * @returns {number} streams that it held when it was last heard of
   */
  retire(slot) {
    const { snapshot } = slot;
    slot.askedId = 0;
    slot.snapshot = null;
    if (!snapshot) return 0;
    addCounts(this.retired, snapshot);
    this.retired.lostWithWorkers += snapshot.streams;
    return snapshot.streams;
  }

  /**
   * Asks every worker for its snapshot; one that still owes an answer is not asked again.
   * @param {number} deadlineMs
   * @returns {Promise<void>} when all have answered, or at the deadline
   */
  sample(deadlineMs) {
    for (const slot of this.slots) {
      if ((slot.state !== 'ready' && slot.state !== 'draining') || slot.askedId !== 0 || slot.drained)
        continue;
      slot.askedId = ++this.lastId;
      this.send(slot, { type: 'sample', id: slot.askedId });
    }
    return this.until(() => this.slots.every(({ askedId }) => askedId === 0), deadlineMs);
  }

  /** Sends a message to every stream that listens to a channel. @param {string} channel @param {string} message */
  publish(channel, message) {
    for (const slot of this.slots)
      if (slot.state === 'ready') this.send(slot, { type: 'publish', channel, message });
  }

  gc() {
    for (const slot of this.slots) if (slot.state === 'ready') this.send(slot, { type: 'gc' });
  }

  /**
   * Lets go of all streams and ends the workers.
   * @param {number} periodMs
   * @returns {Promise<void>} when the last is gone; one that does not end by itself is killed
   */
  async drain(periodMs) {
    this.ending = true;
    for (const slot of this.slots) {
      clearTimeout(slot.timer);
      if (slot.state === 'dead') slot.state = 'gone';
      if (slot.state === 'gone') continue;
      slot.state = 'draining';
      this.send(slot, { type: 'drain', periodMs });
    }
    const allGone = () => this.slots.every(({ state }) => state === 'gone');
    await this.until(allGone, periodMs + EXIT_GRACE_MS);
    if (allGone()) return;
    this.kill();
    await this.until(allGone, EXIT_GRACE_MS);
  }

  /** Ends the workers at once. */
  kill() {
    this.ending = true;
    for (const slot of this.slots) {
      clearTimeout(slot.timer);
      if (slot.state !== 'gone' && slot.state !== 'dead') slot.process.process.kill('SIGKILL');
    }
  }

  /** @param {Slot} slot @param {import('./messages.js').ToWorker} message */
  send(slot, message) {
    if (slot.process.isConnected()) slot.process.send(message);
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
