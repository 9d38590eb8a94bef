/*
 * What all parts of an experiment share: its folder, its end, and one place for progress and notes.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as after } from 'node:timers/promises';
import { Clean } from './clean.js';

const SECOND_MS = 1000;

export class Lab {
  /**
   * @param {object} parts
   * @param {string} parts.folder for all files
   * @param {AbortSignal} parts.signal ends it early
   * @param {NodeJS.WriteStream} [parts.output]
   */
  constructor({ folder, signal, output = process.stderr }) {
    this.folder = folder;
    this.signal = signal;
    this.output = output;
    this.clean = new Clean();
    /** What is happening now, for the progress line. @type {() => string} */
    this.status = () => '';
    this.startedMs = Date.now();
    /** How long it should take. */
    this.expectedS = 0;
    this.hasLine = false;
    /** A dashboard that occupies the terminal and then gets the lines. @type {import('./session.js').View | null} */
    this.view = null;
    /** Lines for the report: what was skipped or missing. @type {string[]} */
    this.notes = [];
    /** Trials that began on a busy machine. @type {{ name: string, percent: number }[]} */
    this.busy = [];
    /** @type {Promise<never>} */
    this.aborted = new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    this.aborted.catch(() => {});
    setMaxListeners(0, signal); // every sleep listens to it
    this.ticker = setInterval(() => this.tick(), SECOND_MS);
  }

  /** @param {number} ms */
  sleep(ms) {
    return after(ms, undefined, { signal: this.signal });
  }

  /** @template T @param {Promise<T>} promise @returns {Promise<T>} */
  unlessAborted(promise) {
    promise.catch(() => {}); // after the end nobody waits for it
    return Promise.race([promise, this.aborted]);
  }

  /** @param {string} line that stays on the screen */
  say(line) {
    if (this.view) return this.view.note(line);
    this.output.write(`${this.hasLine ? '\r\x1b[K' : ''}${line}\n`);
    this.hasLine = false;
  }

  /** @param {string} line for the report, too */
  note(line) {
    if (!this.notes.includes(line)) this.notes.push(line);
    this.say(`  ${line}`);
  }

  /** Notes how much CPU other programs used, if it was a lot. */
  noteBusy() {
    if (this.busy.length === 0) return;
    const percent = Math.max(...this.busy.map((one) => one.percent)).toFixed(0);
    const names = this.busy.map(({ name }) => name).join(', ');
    this.note(
      `other programs used up to ${percent} % of the machine before the first stream, in ${names}: be careful with these figures`,
    );
  }

  tick() {
    const what = this.status();
    if (!what || this.view) return;
    const elapsedS = Math.round((Date.now() - this.startedMs) / SECOND_MS);
    const expected = this.expectedS > 0 ? ` of about ${this.expectedS} s` : ' s';
    const line = `${what}; ${elapsedS}${expected}`;
    if (!this.output.isTTY) return this.say(line);
    this.output.write(`\r\x1b[K${line.slice(0, Math.max(20, (this.output.columns || 80) - 1))}`);
    this.hasLine = true;
  }

  /** @returns {Promise<unknown[]>} what could not be undone */
  async close() {
    this.status = () => '';
    clearInterval(this.ticker);
    this.view?.close();
    this.view = null;
    if (this.hasLine) this.output.write('\r\x1b[K');
    this.hasLine = false;
    return this.clean.run();
  }
}
