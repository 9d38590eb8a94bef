/*
 * The trial of our server in the million run: opens all streams, holds them, and closes them all at once.
 */
import { change, hold, rest } from '../steps.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from './sockets.js';
import { onStage } from './stage.js';
import { cpuValues, latenessValues, memoryValues, pauseValues, streamValues, tickValues } from './values.js';

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */

/**
 * @param {Trial} trial
 * @param {{ args?: string[], params?: import('../../../fleet/texts.js').Texts }} [how] more arguments of the server, and parameters of the drones
 * @returns {Promise<Values>}
 */
export async function trialOfServer(trial, how = {}) {
  const { plan } = trial;
  let isGone = false;
  const { phases, watch } = await onStage(trial, how, async (watch) => {
    isGone = await runPhases(watch, plan);
  });
  return {
    ...streamValues(phases),
    ...memoryValues(phases, plan.streams),
    ...tickValues('held', phases.held),
    ...tickValues('up', phases.up),
    ...cpuValues(phases),
    ...latenessValues(phases.held),
    ...pauseValues(phases.held, watch.pauses),
    downS: isGone ? phases.down.tookMs / 1000 : null,
    answerMs: watch.probe.worstMs,
    unanswered: watch.probe.unanswered,
  };
}

/** @param {import('./stage.js').Watch} watch @param {import('../plan.js').Plan} plan @returns {Promise<boolean>} whether the last socket was seen to close */
async function runPhases(watch, plan) {
  const { lab, stage, probe } = watch;
  await watch.during('idle', () => rest('idle', plan.idleS).run(stage));
  const sockets = socketsNow();
  await watch.during('up', () => change(stage, plan.streams));
  await watch.duringWatched('held', () => hold('held', plan.holdS).run(stage));
  probe.start();
  let isGone = false;
  await watch.during('down', async () => {
    await change(stage, 0);
    isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
  });
  return isGone;
}
