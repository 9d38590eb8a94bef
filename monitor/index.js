/*
 * The monitor: once per refresh it collects a sample, makes a frame of it, and passes it to every view.
 */
import { performance } from 'node:perf_hooks';
import { messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { Sampler } from '../lib/sampler.js';
import { collect } from './collect.js';
import { deriveReading, frameOf } from './frame.js';

/** The share of a refresh within which a worker must report. */
const DEADLINE_SHARE = 0.5;

/**
 * One way to show frames.
 * @typedef {object} View
 * @property {(frame: import('./frame.js').Frame, workers: import('./frame.js').WorkerReading[]) => void} show
 * @property {(line: string) => void} note something happened
 * @property {() => void | Promise<void>} close
 */

/**
 * What the monitor of one server has added up, for that of the next: its last frame, and how long it has run by now.
 * @typedef {Pick<import('./frame.js').Reading, 'elapsedMs' | 'counts' | 'ended' | 'base' | 'peakStreams' | 'distributions'> & { nowMs: number, cpuSecondsOf: [number, number][] }} Legacy
 */

export class Monitor {
  /**
   * @param {object} options
   * @param {import('./collect.js').Workers} options.workers
   * @param {View[]} options.views
   * @param {import('./csv.js').CsvLog | null} options.log
   * @param {import('../lib/config.js').Config} options.config
   * @param {Legacy | null} [options.legacy] of the server that this one has taken over from
   */
  constructor({ workers, views, log, config, legacy = null }) {
    this.workers = workers;
    this.views = views;
    this.log = log;
    this.refreshMs = config.refreshMs;
    this.sampler = new Sampler(0);
    this.startedMs = 0;
    /** Number of the next frame: refreshes since the start. */
    this.turn = 0;
    this.legacyMs = legacy?.nowMs ?? 0;
    /** @type {import('./frame.js').Reading | null} */
    this.reading = legacy && readingOf(legacy);
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    /** @type {Promise<void>} */
    this.working = Promise.resolve();
    this.problem = '';
    /** @type {Set<number>} pids of workers that were late in the last frame */
    this.late = new Set();
  }

  /** Shows the first frame, the baseline for costs, and then one per refresh. @returns {Promise<void>} when the first is shown */
  async start() {
    this.startedMs = performance.now() - this.legacyMs;
    await this.frame();
    this.schedule();
  }

  /** No more frames, until `resume`. @returns {Promise<void>} when the last is shown */
  async pause() {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.working;
  }

  resume() {
    if (!this.timer) this.schedule();
  }

  /** @returns {Legacy | null} what the next server goes on with; null before the first frame */
  get legacy() {
    if (!this.reading) return null;
    const { elapsedMs, counts, ended, base, peakStreams, distributions, cpuSecondsOf } = this.reading;
    const nowMs = performance.now() - this.startedMs;
    return {
      nowMs,
      elapsedMs,
      counts,
      ended,
      base,
      peakStreams,
      distributions,
      cpuSecondsOf: [...cpuSecondsOf],
    };
  }

  /** Waits for the next multiple of the refresh: frames don't drift, and those that a stall missed are skipped. */
  schedule() {
    const sinceMs = performance.now() - this.startedMs;
    this.turn = Math.max(this.turn + 1, Math.ceil(sinceMs / this.refreshMs));
    // A timer may fire up to 1 ms early, which would put the frame into the previous second.
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

  /** A frame that can't be made (no file descriptor left, for example) is skipped; the streams stay. @param {unknown} error */
  failed(error) {
    this.note(`no frame: ${messageOf(error)}`);
  }

  /** Notes when a worker starts to be late, and when it is on time again. @param {import('./frame.js').Frame} frame */
  watchWorkers({ workers }) {
    for (const { id, pid, state } of workers) {
      if (state === 'late' && !this.late.has(pid))
        this.note(`worker ${id} (pid ${pid}) did not report in time`);
      if (state === 'ready' && this.late.has(pid))
        this.note(`worker ${id} (pid ${pid}) reports in time again`);
    }
    this.late = new Set(workers.filter(({ state }) => state === 'late').map(({ pid }) => pid));
  }

  /** Notes once when the CSV starts to lose rows, and once when it stops. */
  watchLog() {
    const { problem = '', rowsDropped = 0 } = this.log?.status() ?? {};
    if (problem !== this.problem) {
      this.note(
        problem
          ? `CSV: row dropped: ${problem}`
          : `CSV: writing again; ${formatNoun(rowsDropped, 'row')} dropped in total`,
      );
    }
    this.problem = problem;
  }

  /** @param {string} line something happened */
  note(line) {
    for (const view of this.views) this.guard(view, () => view.note(line));
  }

  /** A view that fails is removed; the server and the other views go on. @param {View} view @param {() => void} call */
  guard(view, call) {
    try {
      call();
    } catch (error) {
      this.views = this.views.filter((other) => other !== view);
      this.note(`a view failed and was removed: ${messageOf(error)}`);
    }
  }

  /** Shows a last frame and closes the views. @returns {Promise<void>} */
  async stop() {
    clearTimeout(this.timer);
    const isPaused = !this.timer;
    this.timer = undefined;
    await this.working;
    if (this.reading && !isPaused) await this.frame().catch((error) => this.failed(error));
    this.sampler.stop();
    await Promise.all(this.views.map((view) => view.close()));
  }
}

/** @param {Legacy} legacy @returns {import('./frame.js').Reading} the part of the one before that the next one reads */
function readingOf(legacy) {
  const reading = { ...legacy, cpuSecondsOf: new Map(legacy.cpuSecondsOf), host: null, sockets: null };
  return /** @type {import('./frame.js').Reading} */ (/** @type {unknown} */ (reading));
}
