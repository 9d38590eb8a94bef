/*
 * Figures that several experiments take, from the phases 'idle', 'up' and 'held' unless others are named.
 */
import { growth, last, max, median, minus, of, per, times } from './phases.js';

/** @typedef {import('./experiment.js').Figure} Figure */
/** @typedef {import('./phases.js').Phases} Phases */

/** @param {string} [held] @returns {Figure[]} */
export function memoryFigures(held = 'held') {
  return [
    figure('heapBytes', 'JS heap a stream', 'bytes', streamBytes('heapPhysicalBytes', held)),
    figure('nativeBytes', 'native memory a stream', 'bytes', streamBytes('nativeBytes', held)),
    figure('kernelBytes', 'kernel memory a socket', 'bytes', kernelBytes('idle', held)),
    figure('rssBytes', 'resident memory of the workers', 'bytes', median(held, 'rssBytes')),
  ];
}

/** @param {string} field of the workers @param {string} held @returns {import('./phases.js').Reader} what it grew since they were idle, by streams */
function streamBytes(field, held) {
  return per(minus(median(held, field), last('idle', field)), median(held, 'streams'));
}

/** @param {string} [held] @returns {Figure[]} */
export function tickFigures(held = 'held') {
  return [
    figure('upTickP90Ms', 'tick p90 while streams open, worst second', 'ms', max('up', 'tickP90Ms')),
    figure('tickP90Ms', 'tick p90 while held, median second', 'ms', median(held, 'tickP90Ms')),
    figure('tickMaxMs', 'tick while held, the worst', 'ms', max(held, 'tickMaxMs')),
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
    figure('upGcMs', 'time in garbage collections while streams open', 'ms', growth('idle', 'up', 'gcMs')),
    figure('gcMs', 'time in garbage collections while held', 'ms', growth('up', held, 'gcMs')),
  ];
}

/** As the client sees it. @param {string} [held] @returns {Figure[]} */
export function latenessFigures(held = 'held') {
  const lateness = (/** @type {'p99' | 'max'} */ name) =>
    of(held, ({ latenessMs }) => (latenessMs.count > 0 ? latenessMs[name] : null));
  return [
    figure('latenessP99Ms', 'ping lateness p99, at the client', 'ms', lateness('p99')),
    figure('latenessMaxMs', 'ping lateness, the worst, at the client', 'ms', lateness('max')),
  ];
}

/** What an experiment looks at that has no reason to look elsewhere. @returns {Figure[]} */
export function usualFigures() {
  return [...memoryFigures(), ...cpuFigures(), ...tickFigures(), ...latenessFigures(), ...gcFigures()];
}

/** @param {string} name @param {string} text @param {Figure['unit']} unit @param {Figure['read']} [read] @returns {Figure} */
export function figure(name, text, unit, read) {
  return { name, text, unit, read };
}

/**
 * CPU of all processes of the server from the end of one phase to the end of the next, by the streams that opened or
 * closed meanwhile; what it takes for itself when idle is not in it, pings of that time are.
 * @param {string} before @param {string} during @param {'opened' | 'closed'} [what]
 * @returns {import('./phases.js').Reader}
 */
export function openUs(before, during, what = 'opened') {
  const seconds = minus(growth(before, during, 'processCpuSeconds'), idleSeconds(before, during));
  return per(times(seconds, 1e6), growth(before, during, what));
}

/** What it would have taken meanwhile, had it stayed idle. @param {string} before @param {string} during @returns {import('./phases.js').Reader} */
function idleSeconds(before, during) {
  const ms = growth(before, during, 'elapsedMs');
  const percent = median('idle', 'processCpuPercent');
  return (phases) => ((ms(phases) ?? 0) * (percent(phases) ?? 0)) / 100_000;
}

/** @param {string} phase @param {string} from the phase before it @returns {import('./phases.js').Reader} bytes a socket, both ends alike */
export function kernelBytes(from, phase) {
  const grown = (/** @type {Phases} */ phases) => {
    const slab = growth(from, phase, 'slabBytes')(phases);
    const buffers = growth(from, phase, 'kernelSocketBytes')(phases);
    return slab === null || buffers === null ? null : slab + buffers;
  };
  return per(grown, growth(from, phase, 'tcpSockets'));
}

export { growth, last, max, median, minus, of, per, times };
