/*
 * Detects pauses of the machine itself: on each core a thread with the highest priority does nothing but wake up
 * regularly. Whatever delays it is the host of a virtual machine, or the kernel, and not one of our programs.
 */
import { availableParallelism } from 'node:os';
import { messageOf } from '../../lib/errors.js';
import { bareProgram } from './bare.js';
import { findCommand } from './install.js';
import { Program } from './program.js';

const WAKE_MS = 2;

/** @param {import('./lab.js').Lab} lab @returns {Promise<PauseWatch>} once it watches */
export async function startPauses(lab) {
  const pauses = new PauseWatch(lab, WAKE_MS);
  await pauses.start();
  return pauses;
}

export class PauseWatch {
  /** @param {import('./lab.js').Lab} lab @param {number} wakeMs how often each thread wakes up */
  constructor(lab, wakeMs) {
    this.lab = lab;
    this.wakeMs = wakeMs;
    /** @type {Program[]} */
    this.programs = [];
  }

  /** @returns {Promise<boolean>} false when it can't run here, which the report then mentions */
  async start() {
    const problem = await this.startPrograms();
    if (!problem) return true;
    this.lab.note(`pauses of the machine could not be detected: ${problem}`);
    await this.stop();
    return false;
  }

  /** @returns {Promise<string>} why not; '' on success */
  async startPrograms() {
    const missing = ['chrt', 'taskset'].find((name) => !findCommand(name));
    if (missing) return `${missing} is not installed (package util-linux)`;
    for (let core = 0; core < availableParallelism(); core++) this.programs.push(this.startOn(core));
    try {
      for (const program of this.programs) await program.answer();
      return '';
    } catch (error) {
      this.lab.signal.throwIfAborted();
      return `${messageOf(error)}; it needs root`;
    }
  }

  /** @param {number} core */
  startOn(core) {
    const place = ['--fifo', '99', 'taskset', '--cpu-list', String(core)];
    return new Program(this.lab, 'chrt', [...place, bareProgram('pauses'), String(this.wakeMs)]);
  }

  /** @returns {Promise<number>} ms: the longest pause of any core since the last call; 0 when it does not run */
  async take() {
    const answers = await Promise.all(this.programs.map((program) => program.ask('read')));
    return Math.max(0, ...answers.map(([, us]) => Number(us))) / 1000;
  }

  async stop() {
    await Promise.all(this.programs.map((program) => program.stop()));
    this.programs = [];
  }
}
