/*
 * Collects the reports of all processes that a profiler is attached to, over a Unix socket in a private folder. They are asked all
 * at once, so that a frame has the same second of each.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** What a process that is busy answers later is in the next frame. */
const ANSWER_MS = 400;
const CLOSE_MS = 500;
const POLL_MS = 5;

/** @typedef {import('./profiler.js').Report} Report */

export class Collector {
  /** @param {(report: Report) => void} onReport */
  constructor(onReport) {
    this.onReport = onReport;
    this.folder = mkdtempSync(join(tmpdir(), 'microprofiler-')); // only for this user
    this.path = join(this.folder, 'socket');
    this.remove = () => rmSync(this.folder, { recursive: true, force: true });
    process.once('exit', this.remove);
    /** Those that are connected, and how many answers each owes. @type {Map<import('node:net').Socket, number>} */
    this.owing = new Map();
    /** How many were connected at the same time. */
    this.most = 0;
    this.server = createServer((socket) => this.accept(socket));
  }

  /** @returns {Promise<void>} */
  listen() {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(this.path, resolve);
    });
  }

  /** How many processes are connected. */
  get size() {
    return this.owing.size;
  }

  /** @param {import('node:net').Socket} socket */
  accept(socket) {
    this.owing.set(socket, 0);
    this.most = Math.max(this.most, this.size);
    socket.on('error', () => {}); // it has ended
    socket.on('close', () => this.owing.delete(socket));
    createInterface(socket).on('line', (line) => {
      this.owing.set(socket, Math.max(0, (this.owing.get(socket) ?? 0) - 1));
      this.onReport(JSON.parse(line));
    });
  }

  /** @returns {Promise<void>} once all have reported, or did not in time */
  async ask() {
    for (const [socket, count] of this.owing) {
      if (count > 0) continue; // it is still busy
      this.owing.set(socket, 1);
      socket.write('report\n');
    }
    await until(() => [...this.owing.values()].every((count) => count === 0), ANSWER_MS);
  }

  /** @returns {Promise<void>} after the last reports of processes that have just exited */
  async close() {
    await until(() => this.size === 0, CLOSE_MS);
    for (const socket of this.owing.keys()) socket.destroy();
    this.server.close();
    this.remove();
  }
}

/** @param {() => boolean} condition @param {number} mostMs */
async function until(condition, mostMs) {
  const endMs = performance.now() + mostMs;
  while (!condition() && performance.now() < endMs)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
