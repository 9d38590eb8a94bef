/*
 * The real server as a child process, with its CSV in the folder of the experiment.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { Histogram } from '../../lib/histogram.js';
import { untilListening } from '../../lib/listening.js';
import { hasEnded } from './clean.js';
import { cpuUs, familyOf } from './processes.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const POLL_MS = 50;
const SHOW_EVERY_MS = 500;
/** A frame that takes longer will not come. */
const ROW_MS = 30_000;
const ANSWER_MS = 5000;

/** @typedef {import('./lab.js').Lab} Lab */

/**
 * @typedef {object} How
 * @property {string} name of its CSV, without .csv
 * @property {string[]} args in addition to those that every server of an experiment gets
 * @property {string[]} [nodeFlags]
 * @property {string} [host] default 127.0.0.1
 */

/** @param {How} how @returns {string[]} the command, as a person would repeat it */
export function commandOf({ args, nodeFlags = [], host = '127.0.0.1' }) {
  return ['node', ...nodeFlags, 'server.js', '--host', host, '--drain', '0', ...args];
}

/**
 * @param {Lab} lab @param {How} how
 * @returns {Promise<LabServer>} once it listens and has written its first row
 * @throws {HoldfastError} SERVER, with the last line it printed
 */
export async function startServer(lab, how) {
  const own = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--log-dir', lab.folder];
  const [, ...words] = commandOf(how);
  const child = lab.clean.spawn(process.execPath, [...words, ...own], {
    cwd: ROOT,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const server = new LabServer(lab, child);
  const { port, adminPort, csvPath } = await server.listening();
  server.port = port;
  server.adminPort = adminPort;
  server.csvPath = join(lab.folder, `${how.name}.csv`);
  renameSync(csvPath, server.csvPath);
  return server;
}

/** Options set in the environment are not part of an experiment. */
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
    this.port = 0;
    this.adminPort = 0;
    this.csvPath = '';
    this.lastLine = '';
    this.hear(child);
  }

  /** @param {import('node:child_process').ChildProcess} child */
  hear({ stdout, stderr }) {
    for (const output of [stdout, stderr]) {
      if (output) createInterface(output).on('line', (line) => this.heard(line));
    }
  }

  /** The last one may say why the server ends. @param {string} line */
  heard(line) {
    this.lastLine = line;
  }

  /** @param {number} [deadlineMs] @returns {Promise<import('../../lib/listening.js').ServerListening>} @throws {HoldfastError} SERVER */
  async listening(deadlineMs) {
    try {
      return await this.lab.unlessAborted(untilListening(this.child, deadlineMs));
    } catch (error) {
      this.lab.signal.throwIfAborted();
      await this.lab.sleep(POLL_MS); // for its last line
      this.check();
      throw new HoldfastError('SERVER', `the server: ${messageOf(error)}; its last line: ${this.lastLine}`);
    }
  }

  /** @throws {HoldfastError} SERVER when it has ended */
  check() {
    if (!hasEnded(this.child)) return;
    const { exitCode, signalCode } = this.child;
    throw new HoldfastError('SERVER', `the server ended (${signalCode ?? exitCode}): ${this.lastLine}`);
  }

  /** @returns {number[]} of all its processes */
  pids() {
    return familyOf(this.child.pid ?? 0);
  }

  /** @returns {number} of all its processes */
  cpuUs() {
    return cpuUs(this.pids());
  }

  /** @returns {Promise<Record<string, any> | null>} the totals of the last frame; null when there is no answer yet */
  async totals() {
    return (await this.ask('/frame'))?.totals ?? null;
  }

  /** @returns {Promise<Map<number, Histogram>>} all ticks of each worker since it started, by pid */
  async ticks() {
    const { workers = [] } = (await this.ask('/ticks')) ?? {};
    const rows = workers.map((/** @type {any} */ { pid, ticks }) => [pid, new Histogram().merge(ticks)]);
    return new Map(rows);
  }

  /** Shows each frame from now on. @param {import('./session.js').View} view @returns {() => void} stops it */
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

  /** @param {string} path on its admin port @returns {Promise<any>} null when there is no answer yet */
  async ask(path) {
    this.check();
    try {
      const answer = await this.fetch(path);
      return answer.ok ? await answer.json() : null;
    } catch (error) {
      this.lab.signal.throwIfAborted();
      this.check();
      if (error instanceof SyntaxError) throw error;
      return null; // it is busy
    }
  }

  /** @param {string} channel @param {string} message @throws {HoldfastError} SERVER when it is not accepted */
  async publish(channel, message) {
    const { status } = await this.fetch(`/publish?channel=${channel}`, { method: 'POST', body: message });
    if (status !== 202) throw new HoldfastError('SERVER', `the server answered /publish with ${status}`);
  }

  /** @param {string} path @param {RequestInit} [request] */
  fetch(path, request = {}) {
    const signal = AbortSignal.any([this.lab.signal, AbortSignal.timeout(ANSWER_MS)]);
    return fetch(`http://127.0.0.1:${this.adminPort}${path}`, { ...request, signal });
  }

  /** @returns {Promise<number>} elapsedMs of the next row */
  async nextRow() {
    const endMs = Date.now() + ROW_MS;
    const before = (await this.totals())?.elapsedMs ?? -1;
    for (;;) {
      const now = (await this.totals())?.elapsedMs ?? -1;
      if (now > before) return now;
      if (Date.now() > endMs)
        throw new HoldfastError('SERVER', `the server wrote no row for ${ROW_MS / 1000} s`);
      await this.lab.sleep(POLL_MS);
    }
  }

  stop() {
    return this.lab.clean.end(this.child);
  }
}
