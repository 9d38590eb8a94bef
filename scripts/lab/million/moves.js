/*
 * The floor of a takeover: bare epoll loops that move the same streams through Unix sockets. It shows what the kernel alone needs.
 */
import { coreCount } from '../cores.js';
import { figure } from '../figures.js';
import { cpuUs } from '../processes.js';
import { closeStreams, endFloors, openedValues, openFloors, reach, timed } from './floor.js';

/** Nobody counts these streams, so they need not open slowly. */
const RAMP = 20_000;
const REST_MS = 1000;
/** The longest interval: nobody is pinged while this is measured. */
const NEVER_MS = 86_400_000;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */

export const MOVE_FIGURES = [figure('moveUs', 'CPU per moved stream', 'µs')];

/** Pure. @param {number} cpuMs for all of them @param {number} moved @returns {Values} */
export function moveValues(cpuMs, moved) {
  return { moveUs: moved > 0 ? (1000 * cpuMs) / moved : null };
}

/**
 * The time that moving so many streams takes at least, because what they are used for has to go on. Pure.
 * @param {number} streams @param {number} moveUs of CPU for each @param {number} usedPercent of one core, by all that goes on @param {number} [cores]
 * @returns {number | null} seconds; null if nothing is left
 */
export function leastSeconds(streams, moveUs, usedPercent, cores = coreCount()) {
  const leftCores = cores - usedPercent / 100;
  return leftCores > 0 ? (streams * moveUs) / 1e6 / leftCores : null;
}

/** @param {Trial} trial @returns {Promise<Values>} */
export async function trialOfMoves(trial) {
  const { lab, name } = trial;
  const plan = { ...trial.plan, ramp: Math.max(RAMP, trial.plan.ramp) };
  const { floors, load, sockets } = await openFloors({ ...trial, plan }, NEVER_MS, { expect: 'any' });
  const { opened, ms } = await timed(() => reach(load, plan.streams));
  await lab.sleep(REST_MS);
  lab.status = () => `[${name}] moving: ${load.text()}`;
  const beforeUs = cpuUs(floors.pids());
  const moved = await floors.move();
  const cpuMs = (cpuUs(floors.pids()) - beforeUs) / 1000;
  const { counts } = await load.pollCounts().then(() => load.total());
  await closeStreams(lab, { load, sockets });
  await endFloors({ floors, load });
  return { ...openedValues(counts, { opened, ms }), ...moveValues(cpuMs, moved) };
}
