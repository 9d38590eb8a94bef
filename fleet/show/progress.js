/*
 * The progress of a run: in a terminal one line that is redrawn, elsewhere a new line now and then.
 */
import { formatCount, formatMs, printable } from '../../lib/format.js';
import { sumOf } from '../drone/causes.js';
import { progressParts } from './publications.js';

const BAR = 24;
/** How often a long hold prints a new line. */
const HOLDING_LINE_MS = 10_000;
const LINE_MS = 1000;
const REDRAW_MS = 200;

/**
 * @typedef {object} Progress
 * @property {'ramping' | 'holding'} phase
 * @property {number} asked
 * @property {number} elapsedMs of the phase
 * @property {number} holdMs
 * @property {number} openedPerSecond recently
 * @property {import('../crew.js').Summary} summary
 */

/** @param {Progress} progress @returns {string} '[#####-----] 45% 45,210 of 100,000, 1,980/s, …' */
export function progressLine(progress) {
  const { phase, asked, elapsedMs, holdMs, summary } = progress;
  const { counts, late } = summary;
  const share = Math.min(
    1,
    phase === 'ramping' ? counts.open / Math.max(1, asked) : elapsedMs / Math.max(1, holdMs),
  );
  const parts = phase === 'ramping' ? rampingParts(progress) : holdingParts(progress);
  const failed = sumOf(counts.failed);
  const lost = sumOf(counts.lost);
  if (failed > 0) parts.push(`failed ${formatCount(failed)} (${worst(counts.failed)})`);
  if (lost > 0) parts.push(`lost ${formatCount(lost)} (${worst(counts.lost)})`);
  if (counts.waiting > 0) parts.push(`${formatCount(counts.waiting)} waiting to retry`);
  if (late > 0) parts.push(`${late} of the drones late`);
  const full = Math.floor(share * BAR);
  return printable(`${phase} [${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${parts.join(', ')}`);
}

/** @param {Progress} progress */
function rampingParts({ asked, openedPerSecond, summary: { counts } }) {
  const left = asked - counts.open;
  const eta =
    openedPerSecond >= 1 && left > 0 ? [`${formatCount(Math.ceil(left / openedPerSecond))} s to go`] : [];
  return [
    `${formatCount(counts.open)} of ${formatCount(asked)} open`,
    `${formatCount(openedPerSecond)}/s`,
    `${formatCount(counts.inFlight)} in flight`,
    ...eta,
  ];
}

/** @param {Progress} progress */
function holdingParts({ elapsedMs, holdMs, summary: { counts, percentiles } }) {
  const { count, p99 } = percentiles.latenessMs;
  return [
    `${formatCount(elapsedMs / 1000)} of ${formatCount(holdMs / 1000)} s`,
    `${formatCount(counts.open)} open`,
    `${formatCount(counts.pings)} pings`,
    ...(count > 0 ? [`lateness p99 ${formatMs(p99)} ms`] : []),
    ...progressParts(counts, percentiles.deliveryMs, formatMs),
  ];
}

/** @param {Record<string, number>} causes @returns {string} the most frequent one */
function worst(causes) {
  return Object.entries(causes).reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}

export class ProgressView {
  /** @param {import('node:stream').Writable & { columns?: number }} out @param {boolean} isScreen */
  constructor(out, isScreen) {
    this.out = out;
    this.isScreen = isScreen;
    this.nextMs = 0;
    this.phase = '';
  }

  /** @param {Progress} progress */
  show(progress) {
    const nowMs = performance.now();
    if (nowMs < this.nextMs && progress.phase === this.phase) return;
    const isLongHold = progress.phase === 'holding' && progress.holdMs > 2 * HOLDING_LINE_MS;
    this.nextMs = nowMs + (this.isScreen ? REDRAW_MS : isLongHold ? HOLDING_LINE_MS : LINE_MS) * 0.95;
    this.phase = progress.phase;
    const line = progressLine(progress);
    if (!this.isScreen) this.out.write(`${line}\n`);
    else this.out.write(`\r\x1b[K${line.slice(0, Math.max(0, (this.out.columns ?? 80) - 1))}`);
  }

  /** Prints a line of its own. @param {string} line */
  note(line) {
    this.out.write(`${this.isScreen ? '\r\x1b[K' : ''}${line}\n`);
  }

  /** Clears the line, for what is printed next. */
  end() {
    if (this.isScreen) this.out.write('\r\x1b[K');
  }
}
