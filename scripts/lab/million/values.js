/*
 * From the phases of a million run to its figures. Pure. `held` is the phase in which all streams are held, `up` the one in which they
 * open, unless others are named.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { figure, kernelBytes, latenessFigures } from '../figures.js';
import { growth, last, median } from '../phases.js';
import { quietTickMaxMs } from './pauses.js';

/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../experiment.js').Figure} Figure */
/** @typedef {import('../phases.js').Phase} Phase */
/** @typedef {import('../phases.js').Phases} Phases */

export const STREAM_FIGURES = [
  figure('open', 'streams open at once', 'count'),
  figure('failed', 'streams that failed to open', 'count'),
  figure('lost', 'streams lost, opening or held', 'count'),
  figure('upS', 'time to open them', 's'),
  figure('openRate', 'streams opened per second', '1/s'),
];

/** @param {Phases} phases @returns {Values} */
export function streamValues({ up, held }) {
  const { open, failed, lost } = held.load.counts;
  const upS = up.tookMs / 1000;
  return { open, failed: sumOf(failed), lost: sumOf(lost), upS, openRate: up.load.counts.opened / upS };
}

export const MEMORY_FIGURES = [
  figure('userBytes', 'user memory of the server per stream, without that of the idle server', 'bytes'),
  figure('allUserBytes', 'user memory of the server per stream, with that of the idle server', 'bytes'),
  figure('kernelBytes', 'kernel memory per socket', 'bytes'),
  figure('usedBytes', 'memory in use on the machine, both ends', 'bytes'),
  figure('dronesBytes', 'user memory of the clients per stream', 'bytes'),
];

/** @param {Phases} phases @param {number} streams @returns {Values} */
export function memoryValues(phases, streams) {
  const { idle, held } = phases;
  return {
    userBytes: (held.serverPssBytes - idle.serverPssBytes) / streams,
    allUserBytes: held.serverPssBytes / streams,
    kernelBytes: kernelBytes('idle', 'held')(phases),
    usedBytes: last('held', 'memoryUsedBytes')(phases),
    dronesBytes: held.dronesPssBytes / streams,
  };
}

/** @param {string} phase @param {string} text @returns {Figure[]} */
export function tickFigures(phase, text) {
  return ['Avg', 'P90', 'P99', 'Max'].map((name) =>
    figure(`${phase}Tick${name}Ms`, `tick ${name.toLowerCase()}, ${text}`, 'ms'),
  );
}

/** @param {string} phase @param {Phase} span @returns {Values} */
export function tickValues(phase, { ticks }) {
  if (!ticks) return {};
  const { avgMs, p90Ms, p99Ms, maxMs } = ticks;
  return {
    [`${phase}TickAvgMs`]: avgMs,
    [`${phase}TickP90Ms`]: p90Ms,
    [`${phase}TickP99Ms`]: p99Ms,
    [`${phase}TickMaxMs`]: maxMs,
  };
}

export const LATENESS_FIGURES = latenessFigures();

/** @param {Pick<Phase, 'latenessMs'>} phase @returns {Values} */
export function latenessValues({ latenessMs }) {
  const isKnown = latenessMs.count > 0;
  return {
    latenessP99Ms: isKnown ? latenessMs.p99 : null,
    latenessMaxMs: isKnown ? latenessMs.max : null,
  };
}

export const CPU_FIGURES = [
  figure('cpuPercent', 'CPU of the server, held', '%'),
  figure('dronesPercent', 'CPU of the clients, held', '%'),
  figure('idlePercent', 'idle CPU of the machine, held', '%'),
  figure('pings', 'pings per second, held', '1/s'),
  figure('pingUs', 'CPU of the server per ping', 'µs'),
];

/** @param {Phases} phases @param {string} [before] the phase before `held` @returns {Values} */
export function cpuValues(phases, before = 'up') {
  const { held } = phases;
  const seconds = (held.endMs - held.beginMs) / 1000;
  const pings = (growth(before, 'held', 'pings')(phases) ?? 0) / seconds;
  return {
    cpuPercent: held.serverCpuPercent,
    dronesPercent: held.dronesCpuPercent,
    idlePercent: median('held', 'cpuIdlePercent')(phases),
    pings,
    pingUs: pings > 0 ? (held.serverCpuPercent * 1e4) / pings : null,
  };
}

export const PAUSE_FIGURES = [
  figure('pauseMs', 'longest pause of the machine itself, held', 'ms'),
  figure('pausedPercent', 'seconds with a pause of more than 5 ms, held', '%'),
  figure('quietTickMaxMs', 'tick max, held, in seconds without such a pause', 'ms'),
];

/** @param {Phase} held @param {import('./pauses.js').PauseLog} pauses @returns {Values} */
export function pauseValues(held, pauses) {
  const { worstMs, sharePercent } = pauses.figures();
  return {
    pauseMs: worstMs,
    pausedPercent: sharePercent,
    quietTickMaxMs: quietTickMaxMs(held.rows, pauses.seconds),
  };
}
