/*
 * Runs a program of ours with the profiler attached to all its processes, and shows what they do:
 *
 *     node examples/microprofiler/run.js --budget decide=40us --every 16 -- server.js --workers 2
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { now } from './clock.js';
import { Collector } from './collector.js';
import { CsvFile } from './csv.js';
import { Frame } from './frame.js';
import { UsageError } from './options.js';
import { readArguments } from './runoptions.js';
import { Screen } from './screen.js';
import { tableText } from './table.js';

const SECOND_MS = 1000;
const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']);

/** @typedef {{ frame: Frame, begunNs: number }} Stretch of time */

class Run {
  /** @param {import('./runoptions.js').RunOptions} options */
  constructor(options) {
    this.options = options;
    this.screen = new Screen(process.stderr);
    this.file = options.csv ? new CsvFile(options.csv) : null;
    this.whole = this.begin();
    /** Since the table was last shown. */
    this.shown = this.begin();
    /** Since the last rows of the CSV. */
    this.second = this.begin();
    this.collector = new Collector((report) => {
      for (const { frame } of [this.whole, this.shown, this.second]) frame.add(report);
    });
  }

  /** @returns {Stretch} */
  begin() {
    return { frame: new Frame(this.options.budgets), begunNs: now() };
  }

  /** @returns {Promise<number>} the exit status */
  async run() {
    await this.collector.listen();
    const child = this.start();
    for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
    process.once('exit', () => child.kill()); // it must not go on alone, whatever happens here
    const timer = setInterval(() => void this.tick(), SECOND_MS);
    const status = await endOf(child);
    clearInterval(timer);
    await this.collector.close();
    this.end();
    return status;
  }

  /** Starts it in a session of its own: the terminal sends Ctrl-C only to this process, which passes it on once. */
  start() {
    const args = ['--import', this.attachment(), ...this.options.program];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    createInterface(child.stderr).on('line', (line) => this.screen.line(line));
    createInterface(child.stdout).on('line', (line) => {
      if (process.stdout.isTTY) this.screen.line(line);
      else process.stdout.write(`${line}\n`);
    });
    return child;
  }

  /** @returns {string} a URL */
  attachment() {
    const { every, budget, keys } = this.options;
    const url = new URL('attach.js', import.meta.url);
    url.searchParams.set('every', String(every));
    url.searchParams.set('socket', this.collector.path);
    for (const text of budget) url.searchParams.append('budget', text);
    for (const key of keys) url.searchParams.append('keys', key);
    return url.href;
  }

  async tick() {
    await this.collector.ask();
    this.writeSecond();
    const { intervalS } = this.options;
    const shownS = (now() - this.shown.begunNs) / 1e9;
    if (intervalS === 0 || shownS < intervalS - 0.5) return;
    const text = this.textOf(this.shown, this.collector.size);
    if (this.screen.isLive) this.screen.draw(text);
    else this.screen.end(text);
    this.shown = this.begin();
  }

  writeSecond() {
    const { frame, begunNs } = this.second;
    this.file?.write(frame.rows(now() - begunNs));
    this.second = this.begin();
  }

  /** @param {Stretch} stretch @param {number} processes @returns {string} a table with a title */
  textOf({ frame, begunNs }, processes) {
    const { every } = this.options;
    const ns = now() - begunNs;
    const which = every === 1 ? 'every call' : `one call in ${every}`;
    const title = `\n${processes} ${processes === 1 ? 'process' : 'processes'}, ${which}, ${(ns / 1e9).toFixed(1)} s\n`;
    return title + tableText(frame.rows(ns), this.screen.style);
  }

  end() {
    this.writeSecond();
    this.file?.close();
    this.screen.end(this.textOf(this.whole, this.collector.most));
  }
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number>} the exit status that a shell would show */
function endOf(child) {
  return new Promise((resolve) => {
    child.once('error', ({ message }) => {
      process.stderr.write(`microprofiler: can't start the program: ${message}\n`);
      resolve(1);
    });
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more

try {
  const options = readArguments(process.argv.slice(2), process.stderr.isTTY === true);
  if (options.help) process.stdout.write(options.help);
  else process.exitCode = await new Run(options).run();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`microprofiler: ${error.message}; see --help\n`);
  process.exitCode = 1;
}
