/*
 * Pauses of the machine, second by second, while the streams are held.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PauseWatch } from '../pauses.js';

const EVERY_MS = 1000;
/** Waking more often would load the machine. */
const WAKE_MS = 5;
/** A second with a longer pause than this says little about the programs that ran in it. */
const PAUSE_MS = 5;

/**
 * @typedef {object} Second
 * @property {number} endMs since the epoch
 * @property {number} longestMs the longest pause of any core
 */

export class PauseLog {
  /** @param {import('../lab.js').Lab} lab */
  constructor(lab) {
    this.lab = lab;
    this.watch = new PauseWatch(lab, WAKE_MS);
    /** @type {Second[]} */
    this.seconds = [];
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.pending = Promise.resolve();
  }

  /** If pauses can't be detected, the log stays empty. */
  async start() {
    this.seconds = [];
    if (!(await this.watch.start())) return;
    await this.watch.take();
    this.timer = setInterval(() => {
      this.pending = this.read().catch(() => clearInterval(this.timer)); // a program has ended
    }, EVERY_MS);
  }

  async read() {
    const endMs = Date.now();
    this.seconds.push({ endMs, longestMs: await this.watch.take() });
  }

  /** @param {string} name of the file with the log, without .json */
  async stop(name) {
    clearInterval(this.timer);
    await this.pending;
    await this.watch.stop();
    writeFileSync(join(this.lab.folder, `${name}.json`), `${JSON.stringify(this.seconds)}\n`);
  }

  /** @returns {{ worstMs: number | null, sharePercent: number | null }} sharePercent: of the seconds that had a pause */
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
 * The longest tick of those rows during which the machine is known not to have paused. Pure.
 * @param {import('../phases.js').Row[]} rows with time and tickMaxMs, one per second
 * @param {Second[]} seconds in order
 * @returns {number | null} null when there is no such row
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
