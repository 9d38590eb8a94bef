/*
 * Figures that several experiments have, from the phases 'idle', 'up' and 'held' unless others are named.
 */
import { growth, last, max, median, minus, multiplied, of, per, rate, rise, times } from './phases.js';

/** @typedef {import('./experiment.js').Figure} Figure */
/** @typedef {import('./phases.js').Phases} Phases */
/** @typedef {import('./phases.js').Reader} Reader */

/** @param {string} [held] @returns {Figure[]} */
export function memoryFigures(held = 'held') {
  return [
    figure('heapBytes', 'JS heap per stream', 'bytes', streamBytes('heapPhysicalBytes', held)),
    figure('nativeBytes', 'native memory per stream', 'bytes', streamBytes('nativeBytes', held)),
    figure('kernelBytes', 'kernel memory per socket', 'bytes', kernelBytes('idle', held)),
    figure('rssBytes', 'resident memory of the workers', 'bytes', median(held, 'rssBytes')),
  ];
}

/** @param {string} field of the workers @param {string} held @returns {Reader} its growth since they were idle, per stream */
function streamBytes(field, held) {
  return per(minus(median(held, field), last('idle', field)), median(held, 'streams'));
}

/** @param {string} [held] @returns {Figure[]} */
export function tickFigures(held = 'held') {
  return [
    figure('upTickP90Ms', 'tick p90 while opening, worst second', 'ms', max('up', 'tickP90Ms')),
    figure('tickP90Ms', 'tick p90 while held, median second', 'ms', median(held, 'tickP90Ms')),
    figure('tickMaxMs', 'longest tick while held', 'ms', max(held, 'tickMaxMs')),
  ];
}

/** @param {string} [held] @returns {Figure[]} */
export function cpuFigures(held = 'held') {
  return [
    figure('openUs', 'CPU to open a stream', 'µs', openUs('idle', 'up')),
    figure('cpuPercent', 'CPU of the server while held', '%', median(held, 'processCpuPercent')),
  ];
}

/** @returns {Figure[]} */
export function gcFigures(held = 'held') {
  return [
    figure('upGcMs', 'time in garbage collection while opening', 'ms', growth('idle', 'up', 'gcMs')),
    figure('gcMs', 'time in garbage collection while held', 'ms', growth('up', held, 'gcMs')),
  ];
}

/** As the client sees it. @param {string} [held] @returns {Figure[]} */
export function latenessFigures(held = 'held') {
  const lateness = (/** @type {'p99' | 'max'} */ name) =>
    of(held, ({ latenessMs }) => (latenessMs.count > 0 ? latenessMs[name] : null));
  return [
    figure('latenessP99Ms', 'ping lateness p99, at the client', 'ms', lateness('p99')),
    figure('latenessMaxMs', 'worst ping lateness, at the client', 'ms', lateness('max')),
  ];
}

/** The figures of an experiment without special interests. @returns {Figure[]} */
export function usualFigures() {
  return [...memoryFigures(), ...cpuFigures(), ...tickFigures(), ...latenessFigures(), ...gcFigures()];
}

/** @param {string} name @param {string} text @param {Figure['unit']} unit @param {Figure['read']} [read] @returns {Figure} */
export function figure(name, text, unit, read) {
  return { name, text, unit, read };
}

/**
 * CPU of all processes of the server from the end of one phase to the end of the next, per stream that opened or closed.
 * Without what the server uses when idle, but with the pings of that time.
 * @param {string} before @param {string} during @param {'opened' | 'closed'} [what]
 * @returns {Reader}
 */
export function openUs(before, during, what = 'opened') {
  const idle = idleSeconds(growth(before, during, 'elapsedMs'));
  const seconds = minus(growth(before, during, 'processCpuSeconds'), idle);
  return per(times(seconds, 1e6), growth(before, during, what));
}

/** @param {Reader} ms a time @returns {Reader} CPU seconds that an idle server would have used in that time */
export function idleSeconds(ms) {
  return multiplied(rate('idle', 'processCpuSeconds'), times(ms, 0.001));
}

/** @param {string} from the phase before @param {string} phase @returns {Reader} bytes per socket, both ends alike */
export function kernelBytes(from, phase) {
  const grown = (/** @type {Phases} */ phases) => {
    const slab = growth(from, phase, 'slabBytes')(phases);
    const buffers = growth(from, phase, 'kernelSocketBytes')(phases);
    return slab === null || buffers === null ? null : slab + buffers;
  };
  return per(grown, growth(from, phase, 'tcpSockets'));
}

export { growth, last, max, median, minus, of, per, rate, rise, times };
