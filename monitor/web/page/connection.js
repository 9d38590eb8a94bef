/*
 * The connection to the server. It comes back by itself, and then asks for what it has missed.
 *
 *     connecting --open, history--> live --lost--> reconnecting --after a while--> connecting
 *                                     \--the server says that it stops--> stopped ----^
 */

const FIRST_MS = 500;
const MOST_MS = 5000;
/** Without a frame for so many refreshes, and at least so long, something is wrong. */
const LATE_FRAMES = 3;
const LATE_MS = 5000;
const LOST_MS = 30_000;
const CHECK_MS = 1000;
/** A server that hangs does not answer at all. */
const ANSWER_MS = 5000;
/** It is read out, so it does not change every second. */
const SAY_S = 5;

/** @typedef {import('./store.js').Store} Store */
/** @typedef {'connecting' | 'live' | 'late' | 'reconnecting' | 'draining' | 'stopped' | 'refused'} Status */

export class Connection {
  /**
   * @param {Store} store gets everything
   * @param {object} listeners
   * @param {(status: Status, text: string) => void} listeners.onStatus
   * @param {(isRestart: boolean) => void} listeners.onHistory
   * @param {() => void} listeners.onFrame
   * @param {() => void} listeners.onTopics
   * @param {() => void} listeners.onNote
   */
  constructor(store, listeners) {
    this.store = store;
    this.on = listeners;
    /** @type {EventSource | null} */
    this.source = null;
    /** Events from before the history came. @type {(() => void)[] | null} */
    this.early = null;
    this.failures = 0;
    this.frameMs = 0;
    this.hasStopped = false;
    setInterval(() => this.checkFrames(), CHECK_MS);
  }

  open() {
    const source = new EventSource('/frames');
    this.source = source;
    this.early = [];
    source.onopen = () => void this.load(source);
    source.onerror = () => void this.lost(source);
    source.onmessage = (event) => this.when(() => this.take(JSON.parse(event.data)));
    source.addEventListener('topics', ({ data }) => this.when(() => this.takeTopics(JSON.parse(data))));
    source.addEventListener('note', ({ data }) => this.when(() => this.takeNote(JSON.parse(data))));
    source.addEventListener('state', ({ data }) => this.when(() => this.say(JSON.parse(data))));
    source.addEventListener('stopped', () => {
      this.hasStopped = true;
    });
  }

  /** Does something with an event once the history is there. @param {() => void} act */
  when(act) {
    if (this.early) this.early.push(act);
    else act();
  }

  /** @param {EventSource} source that is open */
  async load(source) {
    try {
      const response = await fetch(`/history?${this.store.query}`, {
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      if (!response.ok) throw new Error(`${response.status}`);
      const all = await response.json();
      if (source !== this.source) return;
      this.on.onHistory(this.store.load(all));
      this.frameMs = performance.now();
      this.failures = 0;
      this.hasStopped = false;
      this.say(this.store.frame ?? { state: 'starting', problem: '' });
      for (const act of this.early ?? []) act();
      this.early = null;
    } catch {
      void this.lost(source);
    }
  }

  /** @param {import('./store.js').Message} message */
  take(message) {
    this.frameMs = performance.now();
    this.store.add(message);
    this.say(message);
    this.on.onFrame();
  }

  /** @param {import('./store.js').Topics} topics */
  takeTopics(topics) {
    this.store.topics = topics;
    this.on.onTopics();
  }

  /** @param {import('./store.js').Note} note */
  takeNote(note) {
    const last = this.store.notes.at(-1);
    if (
      last &&
      note.at <= last.at &&
      this.store.notes.some(({ at, line }) => at === note.at && line === note.line)
    )
      return;
    this.store.note(note);
    this.on.onNote();
  }

  /** @param {{ state: string, problem: string }} server */
  say({ state, problem }) {
    if (state === 'draining') this.on.onStatus('draining', 'server draining');
    else if (problem) this.on.onStatus('late', problem);
    else this.on.onStatus('live', 'live');
  }

  /** A server that hangs, or a computer that slept. */
  checkFrames() {
    if (!this.source || this.early) return;
    const sinceMs = performance.now() - this.frameMs;
    const { refreshMs = 1000 } = this.store.about ?? {};
    if (sinceMs > Math.max(LOST_MS, 2 * LATE_FRAMES * refreshMs)) void this.lost(this.source);
    else if (sinceMs > Math.max(LATE_MS, LATE_FRAMES * refreshMs))
      this.on.onStatus('late', `no frame for ${SAY_S * Math.floor(sinceMs / 1000 / SAY_S)} s`);
  }

  /** @param {EventSource} source */
  async lost(source) {
    if (source !== this.source) return;
    source.close();
    this.source = null;
    const delayMs = Math.min(MOST_MS, FIRST_MS * 2 ** this.failures++);
    if (this.hasStopped) this.on.onStatus('stopped', 'server stopped; waiting for it to return');
    else this.on.onStatus('reconnecting', 'reconnecting');
    await this.explain();
    setTimeout(() => this.open(), delayMs * (0.75 + Math.random() / 2));
  }

  /** An EventSource doesn't say why it was refused. */
  async explain() {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await fetch('/frame', { method: 'HEAD', signal }).catch(() => null);
    if (response?.status === 401)
      location.reload(); // the session has ended: there is the login
    else if (response?.ok && this.failures > 2) this.on.onStatus('refused', 'too many dashboards; waiting');
  }
}
