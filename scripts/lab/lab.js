/*
 * What all parts of an experiment share: its folder, its end, and the one place where it says how it goes.
 */
import { setTimeout as after } from 'node:timers/promises';
import { Clean } from './clean.js';

const SECOND_MS = 1000;

export class Lab {
  /**
   * @param {object} parts
   * @param {string} parts.folder where it all goes
   * @param {AbortSignal} parts.signal ends it early
   * @param {NodeJS.WriteStream} [parts.output]
   */
  constructor({ folder, signal, output = process.stderr }) {
    this.folder = folder;
    this.signal = signal;
    this.output = output;
    this.clean = new Clean();
    /** What is going on, as the line of progress has it. @type {() => string} */
    this.status = () => '';
    this.startedMs = Date.now();
    this.aboutS = 0;
    this.hasLine = false;
    /** A dashboard that has the terminal, and gets the lines. @type {import('./session.js').View | null} */
    this.view = null;
    /** Lines for the report: what was skipped or went without. @type {string[]} */
    this.notes = [];
    /** Trials before whose streams the machine was busy already. @type {{ name: string, percent: number }[]} */
    this.busy = [];
    /** @type {Promise<never>} */
    this.aborted = new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    this.aborted.catch(() => {});
    this.ticker = setInterval(() => this.tick(), SECOND_MS);
  }

  /** @param {number} ms */
  sleep(ms) {
    return after(ms, undefined, { signal: this.signal });
  }

  /** @template T @param {Promise<T>} promise @returns {Promise<T>} */
  unlessAborted(promise) {
    promise.catch(() => {}); // what comes of it after the end is nobody's
    return Promise.race([promise, this.aborted]);
  }

  /** @param {string} line that stays */
  say(line) {
    if (this.view) return this.view.note(line);
    this.output.write(`${this.hasLine ? '\r\x1b[K' : ''}${line}\n`);
    this.hasLine = false;
  }

  /** @param {string} line that the report has, too */
  note(line) {
    if (!this.notes.includes(line)) this.notes.push(line);
    this.say(`  ${line}`);
  }

  /** Says what others did on the machine meanwhile, where it was much. */
  noteBusy() {
    if (this.busy.length === 0) return;
    const percent = Math.max(...this.busy.map((one) => one.percent)).toFixed(0);
    const names = this.busy.map(({ name }) => name).join(', ');
    this.note(
      `the machine was up to ${percent} % busy with other things before the streams came, in ${names}: take these with care`,
    );
  }

  tick() {
    const what = this.status();
    if (!what || this.view) return;
    const elapsedS = Math.round((Date.now() - this.startedMs) / SECOND_MS);
    const about = this.aboutS > 0 ? ` of about ${this.aboutS} s` : ' s';
    const line = `${what}; ${elapsedS}${about}`;
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
