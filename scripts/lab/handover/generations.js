/*
 * A server and its successors: each takes over from the one before.
 */
import { readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../../../lib/errors.js';
import { hasEnded } from '../clean.js';
import { cpuUs, endedCpuUs } from '../processes.js';
import { commandOf, environment, LabServer, ROOT } from '../server.js';

const POLL_MS = 20;
/** A takeover takes as long as it takes: the figures say so. */
const TAKEOVER_MS = 300_000;
/** What the old server says when the new one has connected to it, and about the move itself. */
const BEGUN = /\) takes over/;
const MOVED = /moved ([\d,]+) streams? in ([\d,.]+) ms/;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {{ atMs: number, line: string }} Said */

/**
 * @typedef {object} Takeover
 * @property {number} tookMs from the command until the old server is gone
 * @property {number | null} connectedMs from the command until the new server asks for the streams; null if the old one does not say, as
 *   in the next three
 * @property {number | null} haveAllMs from the command until the new server has all streams
 * @property {number | null} movedMs for which streams moved
 * @property {number | null} moved streams
 * @property {number} cpuMs of both servers
 */

/** The newest server, whose `child` it is. The others are gone, or about to go. */
export class Generations extends LabServer {
  /** @param {Lab} lab @param {string[]} words of the command @param {string} csv its final path */
  constructor(lab, words, csv) {
    super(lab, spawnServer(lab, words));
    this.words = words;
    this.csv = csv;
    /** Since the last takeover began. @type {Said[]} */
    this.said = [];
    /** CPU of the servers that are gone. */
    this.goneUs = 0;
  }

  /** Once it listens. */
  async begin() {
    const { port, adminPort, csvPath } = await this.listening();
    Object.assign(this, { port, adminPort, csvPath });
    return this;
  }

  /** @param {string} line */
  heard(line) {
    super.heard(line);
    this.said.push({ atMs: performance.now(), line });
  }

  /**
   * The next one takes over.
   * @returns {Promise<Takeover>} when the old one is gone, and the new one has everything
   * @throws {HoldfastError} SERVER unless the old one ends with 0
   */
  async next() {
    const { lab, child: old } = this;
    const [beforeUs, endedUs] = [this.cpuUs(), endedCpuUs()];
    const oldUs = cpuUs(this.pids());
    const begunMs = performance.now();
    this.said = [];
    this.child = spawnServer(lab, [...this.words, '--takeover']);
    this.hear(this.child);
    await this.listening(TAKEOVER_MS);
    await this.untilGone(old);
    const goneMs = performance.now();
    this.goneUs += Math.max(oldUs, endedCpuUs() - endedUs); // nothing else that this process has started has ended meanwhile
    return {
      ...takeoverOf(this.said, begunMs),
      tookMs: goneMs - begunMs,
      cpuMs: (this.cpuUs() - beforeUs) / 1000,
    };
  }

  /** @param {import('node:child_process').ChildProcess} old */
  async untilGone(old) {
    const endMs = Date.now() + TAKEOVER_MS;
    while (!hasEnded(old) && Date.now() < endMs) await this.lab.sleep(POLL_MS);
    if (old.exitCode !== 0)
      throw new HoldfastError('SERVER', `the old server did not exit with 0: ${this.lastLine}`);
  }

  /** @returns {number} of all servers so far */
  cpuUs() {
    return this.goneUs + super.cpuUs();
  }

  /** @returns {{ descriptors: number, memoryBytes: number }} of all processes of the newest one */
  size() {
    const pids = this.pids();
    return { descriptors: sum(pids.map(descriptorsOf)), memoryBytes: sum(pids.map(residentBytes)) };
  }

  async stop() {
    await super.stop();
    if (this.csvPath) renameSync(this.csvPath, this.csv);
    this.csvPath &&= this.csv;
  }
}

/**
 * @param {Lab} lab @param {import('../server.js').How} how
 * @returns {Promise<Generations>} the first one, once it listens
 */
export function startGenerations(lab, how) {
  const [, ...words] = commandOf(how);
  const own = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--log-dir', lab.folder];
  const control = ['--control', join(lab.folder, `${how.name}.sock`)];
  return new Generations(lab, [...words, ...own, ...control], join(lab.folder, `${how.name}.csv`)).begin();
}

/** @param {Lab} lab @param {string[]} words */
function spawnServer(lab, words) {
  return lab.clean.spawn(process.execPath, words, {
    cwd: ROOT,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/**
 * What a takeover took, by what the old server has said.
 * @param {Said[]} said @param {number} begunMs
 * @returns {Pick<Takeover, 'connectedMs' | 'haveAllMs' | 'movedMs' | 'moved'>}
 */
export function takeoverOf(said, begunMs) {
  const [begun, end] = [BEGUN, MOVED].map((pattern) => said.find(({ line }) => pattern.test(line)));
  const [, moved, ms] = MOVED.exec(end?.line ?? '') ?? [];
  const count = (/** @type {string | undefined} */ text) => (text ? Number(text.replaceAll(',', '')) : null);
  return {
    connectedMs: begun ? begun.atMs - begunMs : null,
    haveAllMs: end ? end.atMs - begunMs : null,
    movedMs: count(ms),
    moved: count(moved),
  };
}

/** In all tables: each shard has its own. @param {number} pid @returns {number} */
function descriptorsOf(pid) {
  const tables = readdirSync(`/proc/${pid}/task`).map((thread) => openIn(`/proc/${pid}/task/${thread}/fd`));
  const [main, ...others] = tables;
  // Threads of Node share that of the main thread.
  return sum([main, ...others.filter((count) => count !== main)]);
}

/** Since Linux 6.2 the size of the folder says it, without an inode for each. @param {string} folder @returns {number} */
function openIn(folder) {
  return statSync(folder).size || readdirSync(folder).length;
}

/** @param {number} pid @returns {number} */
function residentBytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
