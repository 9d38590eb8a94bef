/*
 * What an experiment must not leave behind: child processes, and changed settings of the machine. Undone in reverse
 * order at its end and on Ctrl-C; children are killed even if this process exits at once.
 */
import { spawn } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError } from '../../lib/errors.js';

const POLL_MS = 20;
/** A process that has not ended by then is killed. */
const END_MS = 5000;

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

export class Clean {
  constructor() {
    /** @type {Set<ChildProcess>} */
    this.children = new Set();
    /** @type {Set<() => unknown>} */
    this.undos = new Set();
    this.isOver = false;
    this.onExit = () => this.killAll();
    process.on('exit', this.onExit);
  }

  /**
   * @param {() => unknown} undo
   * @returns {() => Promise<void>} undoes it before the end; a second call does nothing
   */
  add(undo) {
    this.undos.add(undo);
    return async () => {
      if (this.undos.delete(undo)) await undo();
    };
  }

  /**
   * A child in its own process group: Ctrl-C reaches this process only, which then ends its children in order.
   * @param {string} command @param {string[]} args @param {import('node:child_process').SpawnOptions} [options]
   * @returns {ChildProcess}
   * @throws {HoldfastError} OVER after the cleanup: an interrupted experiment must not start anything else
   */
  spawn(command, args, options = {}) {
    if (this.isOver) throw new HoldfastError('OVER', `can't start ${command}: the experiment is over`);
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options, detached: true });
    this.children.add(child);
    child.on('error', () => {}); // seen by its missing pid
    child.once('exit', () => this.children.delete(child));
    return child;
  }

  /** @param {ChildProcess} child @returns {Promise<void>} once it has ended, by force if it takes too long */
  async end(child) {
    signal(child, 'SIGTERM');
    const endMs = Date.now() + END_MS;
    while (!hasEnded(child) && Date.now() < endMs) await after(POLL_MS);
    if (!hasEnded(child)) signal(child, 'SIGKILL');
    while (!hasEnded(child)) await after(POLL_MS);
    this.children.delete(child);
  }

  /** Undoes everything, even if some of it fails. @returns {Promise<unknown[]>} what failed */
  async run() {
    this.isOver = true;
    return this.clear();
  }

  /** The same, but more can follow. @returns {Promise<unknown[]>} */
  async clear() {
    const problems = [];
    for (const undo of [...this.undos].reverse()) {
      this.undos.delete(undo);
      try {
        await undo();
      } catch (error) {
        problems.push(error);
      }
    }
    await Promise.all([...this.children].map((child) => this.end(child)));
    return problems;
  }

  killAll() {
    for (const child of this.children) signal(child, 'SIGKILL');
  }
}

/** @param {ChildProcess} child @returns {boolean} also true for one that never started */
export function hasEnded({ exitCode, signalCode, pid }) {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/**
 * SIGKILL goes to the whole group: what a package manager starts does not end with it.
 * @param {ChildProcess} child @param {'SIGTERM' | 'SIGKILL'} name
 */
function signal(child, name) {
  if (hasEnded(child) || !child.pid) return;
  try {
    process.kill(name === 'SIGKILL' ? -child.pid : child.pid, name);
  } catch {} // it has ended
}
