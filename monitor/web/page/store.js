/*
 * What the page knows: the history, the last frame, the notes and the topics. Pure.
 */
import { pointOf } from '../columns.js';
import { History } from '../history.js';

/** How far back frames can be that are in the history too. */
const OVERLAP_MS = 10_000;
/** Later than this many steps after the one before, and something is missing in between. */
const GAP_STEPS = 2.5;
const MOST_NOTES = 200;

/** @typedef {number | string | null} Value */
/** @typedef {{ at: number, line: string }} Note */
/** @typedef {import('../../../lib/tops.js').Top} Top */
/** @typedef {{ subscribers: Top, unanswered: number, publications: Top, sinceMs: number }} Topics */
/** @typedef {{ kind: string, copy: string, stored: number, last: number, epoch: number }} Broker */
/** @typedef {{ id: number, pid: number, state: string, values: (number | null)[] }} WorkerMessage */
/** @typedef {import('../../collect.js').NodeState} NodeState */
/**
 * @typedef {object} Message a frame
 * @property {number} t ms since 1970
 * @property {Value[]} totals
 * @property {{ pid: number, values: (number | null)[] }} primary
 * @property {WorkerMessage[]} workers
 * @property {NodeState | null} node
 * @property {string} csvProblem
 * @property {string} state of the server
 * @property {string} problem why it is not ready
 * @property {Broker | null} broker
 *
 * @typedef {object} All the answer of /history
 * @property {string} run
 * @property {{ version: string, transport: string, workers: number, shards: number, hostname: string, refreshMs: number, startedMs: number }} about
 * @property {{ totals: string[], workers: string[] }} names
 * @property {import('../history.js').Points} points
 * @property {Note[]} notes
 * @property {Message | ''} last
 * @property {Topics | Record<string, never> | ''} topics
 */

export class Store {
  constructor() {
    this.run = '';
    /** @type {All['about'] | null} */
    this.about = null;
    /** @type {All['names']} */
    this.names = { totals: [], workers: [] };
    this.history = new History(1000);
    /** @type {Message | null} */
    this.frame = null;
    /** The totals of the last frame, by field. @type {Record<string, Value>} */
    this.totals = {};
    /** Oldest first. @type {Note[]} */
    this.notes = [];
    /** @type {Topics | null} */
    this.topics = null;
  }

  /** Where a next history has to begin. */
  get query() {
    return new URLSearchParams({ run: this.run, after: String(this.history.lastMs) });
  }

  /** @param {All} all @returns {boolean} whether the server was started anew: what was drawn before is not its history */
  load({ run, about, names, points, notes, last, topics }) {
    const isNew = run !== this.run;
    const isRestart = isNew && this.run !== '';
    if (isNew) this.history = new History(about.refreshMs);
    this.run = run;
    this.about = about;
    this.names = names;
    this.history.load(points);
    this.notes = notes;
    if (topics && 'subscribers' in topics) this.topics = /** @type {Topics} */ (topics);
    if (last) this.show(last);
    return isRestart;
  }

  /** @param {Message} message the next frame */
  add(message) {
    this.show(message);
    // It was in the history, unless the clock of the server was set back.
    if (message.t <= this.history.lastMs && message.t > this.history.lastMs - OVERLAP_MS) return;
    this.history.add(
      message.t,
      pointOf((name) => this.figure(name)),
    );
  }

  /** @param {Message} message */
  show(message) {
    this.frame = message;
    this.totals = Object.fromEntries(this.names.totals.map((name, i) => [name, message.totals[i]]));
  }

  /** @param {Note} note */
  note(note) {
    this.notes = [...this.notes, note].slice(-MOST_NOTES);
  }

  /** @param {string} name @returns {number | null} a total; null if it is unknown */
  figure(name) {
    const value = this.totals[name];
    return typeof value === 'number' ? value : null;
  }

  /** @param {(number | null)[]} values of a worker @param {string} name @returns {number | null} */
  ofWorker(values, name) {
    return values[this.names.workers.indexOf(name)] ?? null;
  }

  /**
   * @param {number} rangeMs
   * @returns {{ times: number[], columns: (number | null)[][] }} of the last part of the history, times in seconds; where something is
   *   missing, there is a point without values, so no line is drawn over it
   */
  recent(rangeMs) {
    const { times, columns } = this.history.points(this.history.lastMs - rangeMs);
    /** @type {number[]} */
    const found = [];
    /** @type {(number | null)[][]} */
    const values = columns.map(() => []);
    times.forEach((timeMs, i) => {
      if (i > 0 && timeMs - times[i - 1] > GAP_STEPS * this.history.stepMs) {
        found.push((times[i - 1] + this.history.stepMs) / 1000);
        for (const list of values) list.push(null);
      }
      found.push(timeMs / 1000);
      values.forEach((list, column) => {
        list.push(columns[column][i]);
      });
    });
    return { times: found, columns: values };
  }
}
