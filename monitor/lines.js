/*
 * The lines view: one line per frame on stdout; notes go to stderr.
 */
import { formatBytes, formatCount, formatElapsed, formatMs } from '../lib/format.js';

/**
 * @param {import('./frame.js').Frame} frame
 * @returns {string}
 */
export function lineOf({ totals, workers, log }) {
  const n = (/** @type {string} */ name) => Number(totals[name] ?? 0);
  const ms = (/** @type {string} */ name) => formatMs(/** @type {number | null} */ (totals[name]));
  const late = workers.filter(({ state }) => state === 'late').map(({ id }) => id);
  const parts = [
    formatElapsed(n('elapsedMs')),
    `streams ${formatCount(n('streams'))} (+${formatCount(n('openedPerSecond'))} -${formatCount(n('closedPerSecond'))})/s`,
    `pings ${formatCount(n('pingsPerSecond'))}/s, late p99 ${ms('pingLatenessP99Ms')} ms`,
    `ticks ${['Avg', 'P90', 'P99', 'Max'].map((figure) => ms(`tick${figure}Ms`)).join('/')} ms`,
    `CPU ${n('processCpuPercent').toFixed(0)}%`,
    totals.rssBytes === null
      ? 'no worker'
      : `RSS ${formatBytes(n('rssBytes'))}, heap ${formatBytes(n('heapUsedBytes'))}`,
  ];
  if (totals.streamHeapBytes !== null) parts.push(`per stream ${costText(totals)}`);
  const cpu = cpuText(totals);
  if (cpu) parts.push(`µs open/ping/delivery ${cpu}`);
  if (late.length > 0) parts.push(`late workers: ${late.join(', ')}`);
  if (log?.problem) parts.push(`CSV row dropped: ${log.problem}`);
  return parts.join(' | ');
}

/** @param {Record<string, import('./fields.js').Value>} totals @returns {string} the cost of a stream by kind of memory */
export function costText(totals) {
  const kinds = /** @type {const} */ (['Heap', 'Native', 'Kernel']);
  return kinds
    .map((kind) => `${formatBytes(Number(totals[`stream${kind}Bytes`] ?? 0))} ${kind.toLowerCase()}`)
    .join(' + ');
}

/** @param {Record<string, import('./fields.js').Value>} totals @returns {string} µs of CPU to open, ping, deliver; '' if none is known */
export function cpuText(totals) {
  const all = [totals.openCpuUs, totals.pingCpuUs, totals.deliveryCpuUs];
  if (all.every((us) => us === null)) return '';
  return all.map((us) => (us === null ? '-' : Number(us).toFixed(Number(us) < 10 ? 1 : 0))).join('/');
}

export class Lines {
  /** @param {import('node:stream').Writable} out @param {import('node:stream').Writable} notes */
  constructor(out, notes) {
    this.out = out;
    this.notes = notes;
  }

  /** @param {import('./frame.js').Frame} frame */
  show(frame) {
    if (this.out.writableNeedDrain) return; // nobody reads, so keep nothing in memory
    this.out.write(`${lineOf(frame)}\n`);
  }

  /** @param {string} line */
  note(line) {
    this.notes.write(`holdfast: ${line}\n`);
  }

  close() {}
}

/** Shows notes but no frames: for --dashboard off. */
export class Notes extends Lines {
  show() {}
}
