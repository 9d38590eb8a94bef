/*
 * The view for dashboards in browsers: the history, the last notes, and a stream of frames as Server-Sent Events. The Hold for these
 * streams is opened when the first dashboard comes and closed a while after the last has left, so a server without one has
 * neither its thread nor its memory.
 *
 *     closed --dashboard--> open --last one leaves--> idle --after a while--> closed
 *                             ^------dashboard---------/
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { codeOf, messageOf } from '../../lib/errors.js';
import { RequestError, send } from '../../lib/router.js';
import { pointOf } from './columns.js';
import { History } from './history.js';
import { frameMessage, NAMES } from './message.js';

/** Dashboards at a time: each takes a file descriptor of the primary, and more are refused. */
export const MOST_DASHBOARDS = 32;
/** More than that waiting for one dashboard, and it is closed as slow; it comes again. */
const MOST_BACKLOG_BYTES = 262_144;
const PING_MS = 15_000;
const RETRY_MS = 1000;
const IDLE_MS = 30_000;
const TOPICS_MS = 5000;
const MOST_TOPICS = 10;
const MOST_NOTES = 200;
/** Workers may print anything. */
const MOST_LINE = 500;
/** At the end, dashboards get the last frame within this time or not at all. */
const CLOSE_MS = 500;
const CHANNEL = 'frames';

/** @typedef {import('../frame.js').Frame} Frame */
/** @typedef {'starting' | 'running' | 'draining' | 'stopped'} State */

/**
 * The part of a transport that it uses.
 * @typedef {object} HoldLike
 * @property {(response: import('node:http').ServerResponse, options: { channels: string[], encoding: 'events' }) => Promise<number>} adopt
 * @property {(channel: string, message: { type?: string, retry?: number, data: string }) => Promise<number>} publish
 * @property {(id: number, labels: { expiresAtMs: number }) => void} label
 * @property {(listener: () => void) => void} onStreamClose
 * @property {(periodMs: number) => Promise<void>} close
 */

/**
 * What it is told by the server.
 * @typedef {object} Source
 * @property {(options: { pingIntervalMs: number, maxBacklogBytes: number, capacity: number, connectionLimit: number }) => Promise<HoldLike>} openHold
 * @property {{ begin: () => void, end: () => void, read: (most: number) => Promise<object> }} topics counted only in between
 * @property {() => { state: State, problem: string }} status
 * @property {() => object | null} broker its state, for people
 * @property {Record<string, string | number>} about the server
 * @property {number} refreshMs
 */

export class Live {
  /** @param {Source} source */
  constructor({ openHold, topics, status, broker, about, refreshMs }) {
    this.openHold = openHold;
    this.topics = topics;
    this.status = status;
    this.broker = broker;
    this.history = new History(refreshMs);
    /** Another one for each start of the server. */
    this.run = randomUUID();
    this.about = { ...about, hostname: hostname(), refreshMs, startedMs: Date.now() };
    /** @type {{ at: number, line: string }[]} */
    this.notes = [];
    /** @type {Frame | null} */
    this.frame = null;
    /** The last topics; '' if nobody looks. */
    this.lastTopics = '';
    /** @type {Promise<HoldLike> | null} */
    this.hold = null;
    this.dashboards = 0;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.isClosed = false;
  }

  /** @param {Frame} frame */
  show(frame) {
    const { totals } = frame;
    this.frame = frame;
    this.history.add(
      timeOf(frame),
      pointOf((name) => (typeof totals[name] === 'number' ? totals[name] : null)),
    );
    if (this.dashboards > 0) void this.say('', JSON.stringify(this.messageOf(frame)));
  }

  /** @param {Frame} frame @returns {object} as dashboards get it */
  messageOf(frame) {
    return frameMessage(frame, { timeMs: timeOf(frame), ...this.status(), broker: this.broker() });
  }

  /** @param {string} line */
  note(line) {
    const note = { at: Date.now(), line: line.slice(0, MOST_LINE) };
    this.notes.push(note);
    if (this.notes.length > MOST_NOTES) this.notes.shift();
    void this.say('note', JSON.stringify(note));
  }

  /**
   * Everything that a dashboard needs before the next frame, as JSON.
   * @param {string} run that it has seen @param {number} afterMs time of its last point
   */
  all(run, afterMs) {
    const isSame = run === this.run;
    return {
      run: this.run,
      about: this.about,
      names: NAMES,
      points: this.history.points(isSame ? afterMs : 0),
      notes: this.notes,
      last: this.frame && this.messageOf(this.frame),
      topics: this.lastTopics && JSON.parse(this.lastTopics),
    };
  }

  /**
   * @param {import('node:http').ServerResponse} response becomes a stream, or gets 503
   * @param {number} endMs when its session ends; 0 if it has none
   * @returns {Promise<void>} never rejects
   */
  async join(response, endMs) {
    try {
      await this.adopt(response, endMs);
    } catch (error) {
      const { status, headers, message } = error instanceof RequestError ? error : unopened(error);
      if (response.headersSent) response.destroy();
      else send(response, { status, headers, body: `${message}\n` });
    }
  }

  /** @param {import('node:http').ServerResponse} response @param {number} endMs @throws {RequestError} 503 */
  async adopt(response, endMs) {
    if (this.isClosed || this.dashboards >= MOST_DASHBOARDS) throw refused(this.isClosed);
    if (this.dashboards++ === 0) clearTimeout(this.timer); // no longer idle
    try {
      const hold = await this.opened();
      this.watch();
      const id = await hold.adopt(response, { channels: [CHANNEL], encoding: 'events' });
      if (endMs > 0) hold.label(id, { expiresAtMs: endMs });
    } catch (error) {
      this.left();
      if (codeOf(error) === 'OVER_CAPACITY' || codeOf(error) === 'CLOSED') throw refused(this.isClosed);
      throw error;
    }
  }

  /** @returns {Promise<HoldLike>} the one that is open; if it can't be opened, the next dashboard tries again */
  opened() {
    if (this.hold) return this.hold;
    const opening = this.open();
    this.hold = opening;
    opening.catch(() => {
      if (this.hold === opening) this.hold = null;
    });
    return opening;
  }

  /** @returns {Promise<HoldLike>} */
  async open() {
    const hold = await this.openHold({
      pingIntervalMs: PING_MS,
      maxBacklogBytes: MOST_BACKLOG_BYTES,
      capacity: MOST_DASHBOARDS,
      connectionLimit: 2 * MOST_DASHBOARDS,
    });
    hold.onStreamClose(() => this.left());
    return hold;
  }

  /** A dashboard is open: topics are counted. */
  watch() {
    if (this.lastTopics || this.isClosed) return;
    clearInterval(this.timer);
    this.topics.begin();
    this.timer = setInterval(() => void this.tellTopics(), TOPICS_MS).unref();
    this.lastTopics = '{}';
    void this.tellTopics();
  }

  async tellTopics() {
    const topics = JSON.stringify(await this.topics.read(MOST_TOPICS));
    if (!this.lastTopics) return; // all have left meanwhile
    this.lastTopics = topics;
    void this.say('topics', topics);
  }

  /** A dashboard has left. */
  left() {
    this.dashboards--;
    if (this.dashboards > 0 || this.isClosed) return;
    this.topics.end();
    this.lastTopics = '';
    clearInterval(this.timer);
    this.timer = setTimeout(() => this.rest(), IDLE_MS).unref();
  }

  /** Nobody has come back. */
  rest() {
    this.hold?.then((hold) => hold.close(0)).catch(() => {});
    this.hold = null;
  }

  /** @param {string} type @param {string} data @returns {Promise<unknown>} */
  async say(type, data) {
    if (this.dashboards === 0) return;
    const message = { data, retry: RETRY_MS, ...(type ? { type } : {}) };
    // If there is no room, nobody reads; what is missing comes with the next history.
    await this.hold?.then((hold) => hold.publish(CHANNEL, message)).catch(() => {});
  }

  /** Says that the state has changed, before the next frame does. */
  tellState() {
    void this.say('state', JSON.stringify(this.status()));
  }

  /** @returns {Promise<void>} soon, whatever dashboards do */
  async close() {
    this.isClosed = true;
    clearInterval(this.timer);
    const ended = this.say('stopped', '{}')
      .then(async () => (await this.hold)?.close(0))
      .catch(() => {});
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
  }
}

/** @param {Frame} frame @returns {number} ms since 1970 */
function timeOf({ totals }) {
  return Date.parse(String(totals.time));
}

/** @param {unknown} error why there is no stream: descriptors or memory may be free again soon */
function unopened(error) {
  return new RequestError(503, messageOf(error), { 'Retry-After': '5' });
}

/** @param {boolean} isClosed */
function refused(isClosed) {
  const why = isClosed
    ? 'the server is ending'
    : `${MOST_DASHBOARDS} dashboards are open: no more are allowed`;
  return new RequestError(503, why, { 'Retry-After': '5' });
}
