/*
 * From publications to everyone to their figures. Pure.
 */
import { coreCount } from '../cores.js';
import { figure } from '../figures.js';
import { max, medianOf } from '../phases.js';

/** @typedef {import('./everyone.js').Broadcast} Broadcast */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../phases.js').Phases} Phases */

export const FAULT_FIGURES = [
  figure('missing', 'publications that did not reach a stream', 'count'),
  figure('duplicated', 'publications that reached a stream twice', 'count'),
  figure('outOfOrder', 'publications that reached a stream after a later one', 'count'),
  figure('gaps', 'streams that were told that something may be missing', 'count'),
];

/**
 * @param {import('../../../fleet/ask.js').Counts} counts @param {number} expected how many should have arrived at streams
 * @returns {Values}
 */
export function faultValues({ delivered, duplicated, outOfOrder, gaps }, expected) {
  return { missing: expected - delivered, duplicated, outOfOrder, gaps };
}

/** In which nearly everyone has a publication, whatever became of a few. */
const MOST = 0.99;

/** The clock of what the clients read, in parts of all streams. */
export const TIME_FIGURES = [
  figure('firstMs', 'until the first stream has it', 'ms'),
  figure('halfMs', 'until half of them have it', 'ms'),
  figure('mostMs', 'until 99 % of them have it', 'ms'),
  figure('allMs', 'until everyone has it', 'ms'),
  figure('allMaxMs', 'until everyone has it, the slowest time', 'ms'),
];

export const BROADCAST_FIGURES = [
  ...TIME_FIGURES,
  figure(
    'leastMs',
    'what all cores together need at least for this CPU, and that of the pings read meanwhile',
    'ms',
  ),
  figure('deliveriesPerSecond', 'deliveries per second, until everyone has it', '1/s'),
  figure('latenessP99Ms', 'ping lateness p99 meanwhile, at the client, the worst time', 'ms'),
  figure('latenessMaxMs', 'worst ping lateness meanwhile', 'ms'),
  figure('heldLatenessP99Ms', 'ping lateness p99 before', 'ms'),
  figure('pingPercent', 'pings read meanwhile, of those in so long a time without a publication', '%'),
  figure('deliveryUs', 'CPU of the server per delivery', 'µs'),
  figure('clientUs', 'CPU of the clients per delivery', 'µs'),
  figure('eventBytes', 'bytes of a publication on the wire', 'bytes'),
];

/**
 * @param {Broadcast[]} all at least one
 * @param {{ serverPercent: number, clientsPercent: number }} held CPU of one core without publications, which is subtracted for the pings that were
 *   read meanwhile
 * @param {number} [cores] of the machine
 * @returns {Values} times and rates are medians of the publications; those of one that did not reach everyone are not known
 */
export function broadcastValues(all, { serverPercent, clientsPercent }, cores = coreCount()) {
  const isWhole = all.every(({ delivered, streams }) => delivered >= streams);
  const hasMost = all.every(({ delivered, streams }) => delivered > MOST * streams);
  const medianFor = (/** @type {(one: Broadcast) => number} */ read) => medianOf(all.map(read));
  const worst = (/** @type {(one: Broadcast) => number} */ read) => Math.max(...all.map(read));
  const pings = all.reduce((sum, { lateness }) => sum + lateness.count, 0);
  const deliveryUs = medianFor((one) => (one.serverUs - pingsUs(one, serverPercent)) / one.streams);
  const clientUs = medianFor((one) => (one.clientsUs - pingsUs(one, clientsPercent)) / one.streams);
  return {
    firstMs: medianFor(({ delivery }) => delivery.in('ms', delivery.min)),
    halfMs: medianFor(({ delivery }) => delivery.percentile(0.5, 'ms')),
    mostMs: hasMost ? medianFor(({ delivery }) => delivery.percentile(MOST, 'ms')) : null,
    allMs: isWhole ? medianFor(({ delivery }) => delivery.maximum('ms')) : null,
    allMaxMs: isWhole ? worst(({ delivery }) => delivery.maximum('ms')) : null,
    deliveriesPerSecond: isWhole ? medianFor((one) => one.streams / one.delivery.maximum('s')) : null,
    latenessP99Ms: pings > 0 ? worst(({ lateness }) => lateness.percentile(0.99, 'ms')) : null,
    latenessMaxMs: pings > 0 ? worst(({ lateness }) => lateness.maximum('ms')) : null,
    leastMs: medianFor(({ serverUs, clientsUs }) => (serverUs + clientsUs) / 1000 / cores),
    pingPercent: medianFor(({ pings, usualPings }) => (100 * pings) / usualPings),
    deliveryUs,
    clientUs,
  };
}

/** @param {Broadcast} one @param {number} percent of one core that the usual pings take @returns {number} what those took that were read meanwhile */
function pingsUs({ tookMs, pings, usualPings }, percent) {
  return percent * 10 * tookMs * Math.min(1, pings / usualPings);
}

export const TICK_FIGURES = [
  figure('tickMaxMs', 'longest tick meanwhile', 'ms'),
  figure('socketBytes', 'socket buffers of the kernel meanwhile, at most', 'bytes'),
];

/** @param {Phases} phases @param {string} prefix of the names of those in which it was published @returns {Values} */
export function ticksValues(phases, prefix) {
  const names = Object.keys(phases).filter((name) => name.startsWith(prefix));
  const ticks = names.flatMap((name) => phases[name].ticks?.maxMs ?? []);
  const buffers = names.flatMap((name) => max(name, 'kernelSocketBytes')(phases) ?? []);
  return {
    tickMaxMs: ticks.length > 0 ? Math.max(...ticks) : null,
    socketBytes: buffers.length > 0 ? Math.max(...buffers) : null,
  };
}

/** @param {Broadcast[]} all @param {number} pingBytes of each of the pings that were read meanwhile @returns {number} bytes of a publication */
export function eventBytesOf(all, pingBytes) {
  return Math.round(medianOf(all.map(({ bytes, pings, streams }) => (bytes - pings * pingBytes) / streams)));
}

/** @param {number} bytes of a chunk, with its size in hexadecimal digits and the ends of both lines @returns {number} of its text */
export function textLengthOf(bytes) {
  const ENDS = '\r\n\r\n'.length;
  for (let digits = 1; ; digits++) {
    const length = bytes - digits - ENDS;
    if (length.toString(16).length <= digits) return length;
  }
}
