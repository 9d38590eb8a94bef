/*
 * The real server as a child, with its CSV in the folder of the experiment.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { Histogram } from '../../lib/histogram.js';
import { hasEnded } from './clean.js';
import { familyOf } from './processes.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const POLL_MS = 50;
const SHOW_EVERY_MS = 500;
const START_MS = 60_000;
/** A frame that is later than this will not come. */
const ROW_MS = 30_000;

/** @typedef {import('./lab.js').Lab} Lab */

/**
 * @typedef {object} How
 * @property {string} name of its CSV, without .csv
 * @property {string[]} args beyond those that every server of an experiment is given
 * @property {string[]} nodeFlags
 * @property {string} [host] 127.0.0.1
 */

/** @param {How} how @returns {string[]} the command, as a person repeats it */
export function commandOf({ args, nodeFlags, host = '127.0.0.1' }) {
  return ['node', ...nodeFlags, 'server.js', '--host', host, '--drain', '0', ...args];
}

/**
 * @param {Lab} lab @param {How} how
 * @returns {Promise<LabServer>} when it listens and its first row is there
 * @throws {HoldfastError} SERVER, with what it said
 */
export async function startServer(lab, how) {
  const own = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--log-dir', lab.folder];
  const [, ...words] = commandOf(how);
  const child = lab.clean.spawn(process.execPath, [...words, ...own], { cwd: ROOT, env: environment() });
  const server = new LabServer(lab, child);
  await server.untilListening();
  server.csvPath = join(lab.folder, `${how.name}.csv`);
  renameSync(server.found.csv, server.csvPath);
  await server.nextRow();
  return server;
}

/** Options that stand in the environment are not part of an experiment. */
export function environment() {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^HOLDFAST_|^NODE_OPTIONS$/.test(name)),
  );
}

export class LabServer {
  /** @param {Lab} lab @param {import('node:child_process').ChildProcess} child */
  constructor(lab, child) {
    this.lab = lab;
    this.child = child;
    this.csvPath = '';
    this.lastLine = '';
    this.found = { csv: '', port: 0, adminPort: 0 };
    for (const output of [child.stdout, child.stderr]) {
      if (output) createInterface(output).on('line', (line) => this.hear(line));
    }
  }

  get port() {
    return this.found.port;
  }

  /** @param {string} line */
  hear(line) {
    this.lastLine = line;
    const csv = /CSV in (.+\.csv)$/.exec(line);
    const admin = /admin on http:\S+?:(\d+)/.exec(line);
    const port = /listening on http:\S+:(\d+)/.exec(line);
    if (csv) this.found.csv = csv[1];
    if (admin) this.found.adminPort = Number(admin[1]);
    if (port) this.found.port = Number(port[1]);
  }

  async untilListening() {
    const endMs = Date.now() + START_MS;
    const { found } = this;
    while (!found.csv || !found.port || !found.adminPort) {
      this.check();
      if (Date.now() > endMs)
        throw new HoldfastError('SERVER', `the server does not listen: ${this.lastLine}`);
      await this.lab.sleep(POLL_MS);
    }
  }

  /** @throws {HoldfastError} SERVER where it has ended */
  check() {
    if (!hasEnded(this.child)) return;
    const { exitCode, signalCode } = this.child;
    throw new HoldfastError('SERVER', `the server ended (${signalCode ?? exitCode}): ${this.lastLine}`);
  }

  /** @returns {number[]} of all its processes */
  pids() {
    return familyOf(this.child.pid ?? 0);
  }

  /** @returns {Promise<Record<string, any> | null>} the last row, null where there is none yet */
  async totals() {
    return (await this.ask('/frame'))?.totals ?? null;
  }

  /** @returns {Promise<Map<number, Histogram>>} all ticks of each worker, by pid */
  async ticks() {
    const { workers = [] } = (await this.ask('/ticks')) ?? {};
    const rows = workers.map((/** @type {any} */ { pid, ticks }) => [pid, new Histogram().merge(ticks)]);
    return new Map(rows);
  }

  /** Each frame, from now on. @param {import('./session.js').View} view @returns {() => void} stops it */
  showTo(view) {
    let shownMs = -1;
    const timer = setInterval(async () => {
      const frame = await this.ask('/frame').catch(() => null);
      if (!frame || frame.totals.elapsedMs === shownMs) return;
      shownMs = frame.totals.elapsedMs;
      view.show(frame);
    }, SHOW_EVERY_MS);
    return () => clearInterval(timer);
  }

  /** @param {string} path of the admin view @returns {Promise<any>} null where there is no answer yet */
  async ask(path) {
    this.check();
    const url = `http://127.0.0.1:${this.found.adminPort}${path}`;
    const signal = AbortSignal.any([this.lab.signal, AbortSignal.timeout(5000)]);
    try {
      const answer = await fetch(url, { signal });
      return answer.ok ? await answer.json() : null;
    } catch (error) {
      this.lab.signal.throwIfAborted();
      this.check();
      if (error instanceof SyntaxError) throw error;
      return null; // it is busy
    }
  }

  /** @returns {Promise<number>} elapsedMs of the row that comes next */
  async nextRow() {
    const endMs = Date.now() + ROW_MS;
    const before = (await this.totals())?.elapsedMs ?? -1;
    for (;;) {
      const now = (await this.totals())?.elapsedMs ?? -1;
      if (now > before) return now;
      if (Date.now() > endMs) throw new HoldfastError('SERVER', 'the server says nothing of itself any more');
      await this.lab.sleep(POLL_MS);
    }
  }

  stop() {
    return this.lab.clean.end(this.child);
  }
}
