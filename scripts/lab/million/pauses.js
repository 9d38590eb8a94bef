/*
 * How long the machine itself stood still: on each core a thread that wakes every 5 ms, at the highest priority there
 * is. What delays it is the host of a virtual machine, or the kernel, and no program.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bareProgram } from '../bare.js';
import { findCommand } from '../install.js';

const EVERY_MS = 1000;
/** Oftener would be work for the machine. */
const WAKE_MS = 5;
/** A second with a longer pause than this says little of the programs that ran in it. */
const PAUSE_MS = 5;

/**
 * @typedef {object} Second
 * @property {number} endMs since the epoch
 * @property {number} longestMs that it stood still, on any core
 */

export class Pauses {
  /** @param {import('../lab.js').Lab} lab */
  constructor(lab) {
    this.lab = lab;
    /** @type {Second[]} */
    this.seconds = [];
    /** @type {import('node:child_process').ChildProcess[]} */
    this.children = [];
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.latestMs = 0;
    this.askedMs = 0;
  }

  /** Where a program is missing nothing is known of them. */
  start() {
    if (!findCommand('chrt') || !findCommand('taskset')) return;
    for (let core = 0; core < availableParallelism(); core++) this.watch(core);
    this.timer = setInterval(() => this.ask(), EVERY_MS);
  }

  /** @param {number} core */
  watch(core) {
    const words = [
      '--fifo',
      '99',
      'taskset',
      '--cpu-list',
      String(core),
      bareProgram('hiccup'),
      String(WAKE_MS),
    ];
    const child = this.lab.clean.spawn('chrt', words, { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin?.on('error', () => {}); // it could not be started, or has ended
    if (child.stdout) createInterface(child.stdout).on('line', (line) => this.hear(line));
    this.children.push(child);
  }

  /** @param {string} line */
  hear(line) {
    const us = /^late (\d+)$/.exec(line)?.[1];
    if (us) this.latestMs = Math.max(this.latestMs, Number(us) / 1000);
  }

  /** The answers of the last second are here; those of this one come before the next. */
  ask() {
    if (this.latestMs > 0) this.seconds.push({ endMs: this.askedMs, longestMs: this.latestMs });
    this.latestMs = 0;
    this.askedMs = Date.now();
    for (const { stdin } of this.children) if (stdin?.writable) stdin.write('read\n');
  }

  /** @param {string} name of the file that keeps what it saw, without .json */
  async stop(name) {
    clearInterval(this.timer);
    await Promise.all(this.children.map((child) => this.lab.clean.end(child)));
    writeFileSync(join(this.lab.folder, `${name}.json`), `${JSON.stringify(this.seconds)}\n`);
  }

  /** @returns {{ worstMs: number | null, sharePercent: number | null }} of the seconds, those with a pause */
  figures() {
    const { seconds } = this;
    if (seconds.length === 0) return { worstMs: null, sharePercent: null };
    const paused = seconds.filter(isPaused).length;
    return {
      worstMs: Math.max(...seconds.map(({ longestMs }) => longestMs)),
      sharePercent: (100 * paused) / seconds.length,
    };
  }
}

/**
 * The worst tick of those rows through which the machine is known to have run. Pure.
 * @param {import('../phases.js').Row[]} rows with time and tickMaxMs, one a second
 * @param {Second[]} seconds in their order
 * @returns {number | null} null where there is no such row
 */
export function quietTickMaxMs(rows, seconds) {
  const ticks = rows.slice(1).flatMap(({ time, tickMaxMs }, i) => {
    const [beginMs, endMs] = [Number(rows[i].time), Number(time)];
    const during = seconds.filter((second, place) => {
      const since = place > 0 ? seconds[place - 1].endMs : second.endMs - EVERY_MS;
      return since < endMs && second.endMs > beginMs;
    });
    const isCovered = during.length > 0 && during[during.length - 1].endMs >= endMs;
    return isCovered && tickMaxMs !== null && !during.some(isPaused) ? [tickMaxMs] : [];
  });
  return ticks.length > 0 ? Math.max(...ticks) : null;
}

/** @param {Second} second */
function isPaused({ longestMs }) {
  return longestMs > PAUSE_MS;
}
