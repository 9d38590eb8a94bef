/*
 * The monitor: once a refresh it collects a sample, makes a frame of it, and hands it to every view.
 */
import { performance } from 'node:perf_hooks';
import { messageOf } from '../lib/errors.js';
import { Sampler } from '../lib/sampler.js';
import { collect } from './collect.js';
import { deriveReading, frameOf } from './frame.js';

/** The share of a refresh that a worker has to answer. */
const DEADLINE_SHARE = 0.5;

/**
 * One way to show frames.
 * @typedef {object} View
 * @property {(frame: import('./frame.js').Frame, workers: import('./frame.js').WorkerReading[]) => void} show
 * @property {(line: string) => void} note something happened
 * @property {() => void | Promise<void>} close
 */

export class Monitor {
  /**
   * @param {object} options
   * @param {import('../primary/workers.js').Workers} options.workers
   * @param {View[]} options.views
   * @param {import('./csv.js').CsvLog | null} options.log
   * @param {import('../lib/config.js').Config} options.config
   */
  constructor({ workers, views, log, config }) {
    this.workers = workers;
    this.views = views;
    this.log = log;
    this.refreshMs = config.refreshMs;
    this.sampler = new Sampler(0);
    this.startedMs = 0;
    /** Refreshes since the start, of the frame that is next. */
    this.turn = 0;
    /** @type {import('./frame.js').Reading | null} */
    this.reading = null;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    /** @type {Promise<void>} */
    this.working = Promise.resolve();
    this.problem = '';
    /** @type {Set<number>} pids of workers that were late in the last frame */
    this.late = new Set();
  }

  /** Shows the first frame, which costs are measured against, and then one a refresh. @returns {Promise<void>} */
  async start() {
    this.startedMs = performance.now();
    await this.frame();
    this.schedule();
  }

  /** The next multiple of the refresh: frames don't drift, and those that a stall missed are left out. */
  schedule() {
    const sinceMs = performance.now() - this.startedMs;
    this.turn = Math.max(this.turn + 1, Math.ceil(sinceMs / this.refreshMs));
    // A timer may fire up to 1 ms early, which would put the frame into the second before.
    const delayMs = this.turn * this.refreshMs - sinceMs + 1;
    this.timer = setTimeout(() => {
      this.working = this.frame()
        .catch((error) => this.failed(error))
        .finally(() => this.timer && this.schedule());
    }, delayMs);
  }

  async frame() {
    const { workers, sampler, startedMs, log } = this;
    const deadlineMs = this.refreshMs * DEADLINE_SHARE;
    const sample = await collect({ workers, sampler, startedMs, deadlineMs, log: log?.status() ?? null });
    this.reading = deriveReading(this.reading, sample);
    const frame = frameOf(this.reading);
    const { workers: readings } = this.reading;
    for (const view of this.views) this.guard(view, () => view.show(frame, readings));
    this.watchWorkers(frame);
    this.watchLog();
  }

  /** A frame that can't be made (no descriptor is left, say) is left out; the streams stay. @param {unknown} error */
  failed(error) {
    this.note(`no frame: ${messageOf(error)}`);
  }

  /** Says when a worker begins to be late, and when it is on time again. @param {import('./frame.js').Frame} frame */
  watchWorkers({ workers }) {
    for (const { id, pid, state } of workers) {
      if (state === 'late' && !this.late.has(pid))
        this.note(`worker ${id} (pid ${pid}) is late with its snapshot`);
      if (state === 'ready' && this.late.has(pid)) this.note(`worker ${id} (pid ${pid}) is on time again`);
    }
    this.late = new Set(workers.filter(({ state }) => state === 'late').map(({ pid }) => pid));
  }

  /** Says once when the CSV begins to lose rows, and once when it no longer does. */
  watchLog() {
    const { problem = '', rowsDropped = 0 } = this.log?.status() ?? {};
    if (problem !== this.problem) {
      this.note(
        problem
          ? `CSV: row dropped: ${problem}`
          : `CSV: written again; ${rowsDropped} rows were dropped in all`,
      );
    }
    this.problem = problem;
  }

  /** @param {string} line something happened */
  note(line) {
    for (const view of this.views) this.guard(view, () => view.note(line));
  }

  /** A view that fails goes; the server and the other views stay. @param {View} view @param {() => void} call */
  guard(view, call) {
    try {
      call();
    } catch (error) {
      this.views = this.views.filter((other) => other !== view);
      this.note(`a view failed and is off: ${messageOf(error)}`);
    }
  }

  /** Shows a last frame and closes the views. @returns {Promise<void>} */
  async stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.working;
    if (this.reading) await this.frame().catch((error) => this.failed(error));
    this.sampler.stop();
    await Promise.all(this.views.map((view) => view.close()));
  }
}
