/*
 * A server and its successors: each takes over from the one before.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../../../lib/errors.js';
import { hasEnded } from '../clean.js';
import { SECRET } from '../hub/subjects.js';
import { familyOf } from '../processes.js';
import { commandOf, environment, LabServer, ROOT } from '../server.js';

/** The clients know how often pings come. */
export const PING_MS = 10_000;
const WORKERS = 2;
const POLL_MS = 20;
const EXIT_MS = 20_000;
/** What the old server says about the move itself. */
const MOVED = /moved ([\d,]+) streams? in ([\d,.]+) ms/;

/** @typedef {import('../lab.js').Lab} Lab */

/** A server whose lines are kept. */
class Generation extends LabServer {
  /** @param {Lab} lab @param {import('node:child_process').ChildProcess} child */
  constructor(lab, child) {
    super(lab, child);
    this.text = '';
    for (const output of [child.stdout, child.stderr])
      output?.on('data', (data) => {
        this.text += data;
      });
  }

  /** @returns {number | null} ms for which streams moved to the next one; null if it does not say */
  movedMs() {
    const [, , ms] = MOVED.exec(this.text) ?? [];
    return ms === undefined ? null : Number(ms.replaceAll(',', ''));
  }

  /** @returns {Promise<void>} @throws {HoldfastError} SERVER unless it ends with 0 */
  async untilGone() {
    const endMs = Date.now() + EXIT_MS;
    while (!hasEnded(this.child) && Date.now() < endMs) await this.lab.sleep(POLL_MS);
    if (this.child.exitCode !== 0)
      throw new HoldfastError('SERVER', `the old server did not exit with 0: ${this.lastLine}`);
  }
}

export class Generations {
  /** @param {Lab} lab @param {string} name of its control socket @param {number} streams */
  constructor(lab, name, streams) {
    this.lab = lab;
    this.args = [
      ...['--workers', String(WORKERS), '--streams', String(streams), '--ping-interval', String(PING_MS)],
      ...['--anonymous', '--jwt-secret', SECRET, '--refresh', '1000'],
      ...['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--no-log'],
      ...['--control', join(lab.folder, `${name}.sock`)],
    ];
    /** @type {Generation | null} */
    this.current = null;
  }

  /** @param {string[]} [more] @returns {Promise<Generation>} once it listens, and has all streams */
  async start(more = []) {
    const [, ...words] = commandOf({ name: '', host: '0.0.0.0', args: [...this.args, ...more] });
    const child = this.lab.clean.spawn(process.execPath, words, {
      cwd: ROOT,
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const server = new Generation(this.lab, child);
    const { port, adminPort } = await server.listening();
    server.port = port;
    server.adminPort = adminPort;
    this.current = server;
    return server;
  }

  /**
   * The next one takes over.
   * @returns {Promise<{ tookMs: number, movedMs: number | null }>} `tookMs`: from its command until the old one is gone
   */
  async next() {
    const old = this.current;
    if (!old) throw new Error('there is no server to take over from');
    const begunMs = performance.now();
    await this.start(['--takeover']);
    await old.untilGone();
    return { tookMs: performance.now() - begunMs, movedMs: old.movedMs() };
  }

  /** @returns {{ descriptors: number, memoryBytes: number }} of all processes of the current one */
  size() {
    const pids = familyOf(this.current?.child.pid ?? 0);
    return { descriptors: sum(pids.map(descriptorsOf)), memoryBytes: sum(pids.map(residentBytes)) };
  }

  async stop() {
    if (this.current) await this.current.stop();
  }
}

/** In all tables: each shard has its own. @param {number} pid @returns {number} */
function descriptorsOf(pid) {
  const tables = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const folder = `/proc/${pid}/task/${thread}/fd`;
    return readdirSync(folder);
  });
  const [main, ...others] = tables;
  // Threads of Node share that of the main thread.
  const isShared = (/** @type {string[]} */ table) => table.length === main.length;
  return sum([main, ...others.filter((table) => !isShared(table))].map(({ length }) => length));
}

/** @param {number} pid @returns {number} */
function residentBytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
