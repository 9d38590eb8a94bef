/*
 * The lines view: one line per frame on stdout; notes go to stderr.
 */
import {
  formatBytes,
  formatCount,
  formatElapsed,
  formatMs,
  formatNoun,
  formatSeconds,
} from '../lib/format.js';

/**
 * @param {import('./frame.js').Frame} frame
 * @returns {string}
 */
export function lineOf({ totals, workers, node, log }) {
  const n = (/** @type {string} */ name) => Number(totals[name] ?? 0);
  const ms = (/** @type {string} */ name) => formatMs(/** @type {number | null} */ (totals[name]));
  const late = workers.filter(({ state }) => state === 'late').map(({ id }) => id);
  const parts = [
    formatElapsed(n('elapsedMs')),
    `streams ${formatCount(n('streams'))} (+${formatCount(n('openedPerSecond'))} -${formatCount(n('closedPerSecond'))})/s`,
    `pings ${formatCount(n('pingsPerSecond'))}/s, late p99 ${ms('pingLatenessP99Ms')} ms`,
    `ticks avg ${ms('tickAvgMs')} p90 ${ms('tickP90Ms')} max ${ms('tickMaxMs')} ms`,
    `CPU ${n('processCpuPercent').toFixed(0)}%`,
    totals.rssBytes === null
      ? 'no worker'
      : `RSS ${formatBytes(n('rssBytes'))}, heap ${formatBytes(n('heapUsedBytes'))}`,
  ];
  const [memory, cpu] = [costText(totals), cpuText(totals)];
  if (memory) parts.push(`per stream ${memory}`);
  if (cpu) parts.push(`CPU to ${cpu}`);
  if (n('handshakes') + n('handshakeFailures') > 0) parts.push(`TLS ${handshakesText(n)}`);
  if (late.length > 0) parts.push(`late workers: ${late.join(', ')}`);
  if (node) parts.push(nodeText(node));
  if (log?.problem) parts.push(`CSV row dropped: ${log.problem}`);
  return parts.join(' | ');
}

/** @param {(name: string) => number} n a total @returns {string} '1,000 handshakes, 200 resumed, 3 failed' */
export function handshakesText(n) {
  const [resumed, failed] = [n('resumed'), n('handshakeFailures')].map(formatCount);
  return `${formatNoun(n('handshakes'), 'handshake')}, ${resumed} resumed, ${failed} failed`;
}

/** @param {import('./collect.js').NodeState} node @returns {string} */
export function nodeText({ isConnected, behind, lagMs, problem }) {
  const lag = lagMs > 0 ? `${formatSeconds(lagMs)} behind` : 'up to date';
  const missing = behind > 0 ? `, ${formatNoun(behind, 'publication')} missing` : '';
  return isConnected ? `NATS ${lag}${missing}` : `NATS not connected, ${lag}${problem && `: ${problem}`}`;
}

/** Kinds of memory, as in the names of fields. */
export const MEMORY_KINDS = /** @type {const} */ (['Heap', 'Native', 'Kernel']);
/** A value with a larger error is shown as its upper bound only. */
const PRECISE_SHARE = 0.2;

/** @typedef {Record<string, import('./fields.js').Value>} Totals */

/**
 * @param {Totals} totals @param {(typeof MEMORY_KINDS)[number]} kind
 * @returns {{ bytes: number, isMost: boolean } | null} the memory of a stream, or an upper bound of it; null if it is unknown
 */
export function costOf(totals, kind) {
  const [bytes, most] = [totals[`stream${kind}Bytes`], totals[`stream${kind}MostBytes`]].map(Number);
  if (totals[`stream${kind}MostBytes`] === null) return null;
  const isPrecise = bytes > 0 && most - bytes <= PRECISE_SHARE * bytes;
  return isPrecise ? { bytes, isMost: false } : { bytes: most, isMost: true };
}

/** @param {ReturnType<typeof costOf>} cost @returns {string} '4.1 KB'; '<4.1 KB' if that is an upper bound; '?' if it is unknown */
export function formatCost(cost) {
  return cost ? `${cost.isMost ? '<' : ''}${formatBytes(cost.bytes)}` : '?';
}

/** @param {ReturnType<typeof costOf>[]} costs by kind @returns {ReturnType<typeof costOf>} of a stream as a whole */
export function totalCost(costs) {
  let bytes = 0;
  let isMost = false;
  for (const cost of costs) {
    if (cost === null) return null;
    bytes += cost.bytes;
    isMost ||= cost.isMost;
  }
  return { bytes, isMost };
}

/** @param {Totals} totals @returns {string} the cost of a stream by kind of memory; '' if none is known */
export function costText(totals) {
  const costs = MEMORY_KINDS.map((kind) => ({ kind, cost: costOf(totals, kind) }));
  if (costs.every(({ cost }) => cost === null)) return '';
  return costs.map(({ kind, cost }) => `${formatCost(cost)} ${kind.toLowerCase()}`).join(' + ');
}

/** What costs CPU, and the field with its µs. */
export const CPU_KINDS = /** @type {const} */ ([
  { name: 'open', field: 'openCpuUs' },
  { name: 'ping', field: 'pingCpuUs' },
  { name: 'deliver', field: 'deliveryCpuUs' },
]);

/** @param {import('./fields.js').Value} us @returns {string} '4.9 µs' */
export function formatMicros(us) {
  return us === null ? '-' : `${Number(us).toFixed(Number(us) < 10 ? 1 : 0)} µs`;
}

/** @param {Totals} totals @returns {string} CPU to open, ping, deliver; '' if none is known */
export function cpuText(totals) {
  const known = CPU_KINDS.filter(({ field }) => totals[field] !== null);
  return known.map(({ name, field }) => `${name} ${formatMicros(totals[field])}`).join(', ');
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
