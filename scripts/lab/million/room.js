/*
 * How many streams the memory of this machine has room for, judged by those that it holds. There may be no swap: when memory runs
 * out, the kernel kills processes at random. So nothing may be tried that doesn't fit. Pure, except for `readMemory`.
 */
import { readFileSync } from 'node:fs';
import { readMachine } from '../../../limits/kernel.js';
import { limitOfTcpPages } from '../namespace.js';

/** This share of the memory stays free. */
export const SPARE = 0.03;
/** If less than this share is free, streams are closed at once. */
export const DANGER = 0.015;
/** No stream takes less, both ends: while few are held, what they seem to take is chance. */
export const LEAST_STREAM_BYTES = 8000;
/** The step that is large enough, and the one that is small enough, as shares of what is held. */
const MOST_STEP = 0.5;
const LEAST_STEP = 0.04;
const DIGITS = 3;

/**
 * @typedef {object} Memory
 * @property {number} totalBytes of the machine, or of the control group if that has less
 * @property {number} availableBytes likewise
 * @property {number} reclaimableBytes kernel objects that the kernel says it can free. It counts those of sockets, and can't free them
 * @property {number} tcpPages buffers of all TCP sockets
 *
 * @typedef {object} Room
 * @property {number} freeBytes
 * @property {number} usedBytes since the machine was idle
 * @property {number} streamBytes what another stream will take on this machine, whoever has it
 * @property {number} fits how many streams fit, with those that are held
 * @property {'memory' | 'TCP memory'} what is used up first
 */

/** @param {import('../../../limits/kernel.js').Machine} machine @returns {number} more streams than its memory has room for, both ends */
export function mostInMemory({ memory, group }) {
  const availableBytes = Math.min(memory.availableBytes, group.memoryFreeBytes ?? Number.POSITIVE_INFINITY);
  return Math.floor(availableBytes / LEAST_STREAM_BYTES);
}

/** @returns {Memory} */
export function readMemory() {
  const { memory, group } = readMachine();
  const availableBytes = Math.min(memory.availableBytes, group.memoryFreeBytes ?? Number.POSITIVE_INFINITY);
  const meminfo = readFileSync('/proc/meminfo', 'utf8');
  const sockstat = readFileSync('/proc/net/sockstat', 'utf8');
  return {
    totalBytes: Math.min(memory.totalBytes, group.memoryBytes ?? Number.POSITIVE_INFINITY),
    availableBytes,
    reclaimableBytes: Number(/^SReclaimable:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? 0) * 1024,
    tcpPages: Number(/^TCP:.* mem (\d+)/m.exec(sockstat)?.[1] ?? 0),
  };
}

/** @param {Memory} idle before the first stream @param {Memory} now @param {number} held streams @param {number} mostPages of TCP @returns {Room} */
export function roomIn(idle, now, held, mostPages = limitOfTcpPages()) {
  const freeBytes = freeBytesIn(idle, now);
  const usedBytes = Math.max(0, idle.availableBytes - freeBytes);
  const streamBytes = Math.max(LEAST_STREAM_BYTES, held > 0 ? usedBytes / held : 0);
  const spareBytes = now.totalBytes * SPARE;
  const byMemory = held + (freeBytes - spareBytes) / streamBytes;
  const pages = Math.max(0, now.tcpPages - idle.tcpPages);
  const byPages =
    pages > 0 && held > 0 ? ((mostPages - idle.tcpPages) * held) / pages : Number.POSITIVE_INFINITY;
  const fits = Math.floor(Math.min(byMemory, byPages));
  return { freeBytes, usedBytes, streamBytes, fits, what: byPages < byMemory ? 'TCP memory' : 'memory' };
}

/** @param {Memory} idle @param {Memory} now @returns {number} without what only seems to be available */
export function freeBytesIn(idle, now) {
  return now.availableBytes - Math.max(0, now.reclaimableBytes - idle.reclaimableBytes);
}

/**
 * The next number of streams to try: half of the room that is left, but no more than half of what is held, and no less than 4 % of it.
 * @param {number} held @param {number} fits @param {number} most 0 for as many as fit
 * @returns {number | null} null if no more are wanted
 */
export function nextTarget(held, fits, most) {
  if (most > 0 && held >= most) return null;
  const step = Math.max(LEAST_STEP * held, Math.min(MOST_STEP * held, (fits - held) / 2));
  const target = Math.max(held + 1, rounded(held + step));
  return most > 0 ? Math.min(target, most) : target;
}

/** @param {number} streams that were too many for long @returns {number} the smallest step down */
export function fewer(streams) {
  return Math.max(1, rounded((1 - LEAST_STEP) * streams));
}

/** @param {number} streams @returns {number} down to three digits */
function rounded(streams) {
  const unit = 10 ** Math.max(0, String(Math.floor(streams)).length - DIGITS);
  return Math.floor(streams / unit) * unit;
}
