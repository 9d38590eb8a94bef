/*
 * The trial of our server in the million run: opens all streams, holds them, and closes them all at once.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { kernelBytes } from '../figures.js';
import { networkOfMany } from '../namespace.js';
import { growth, last, median, Recorder } from '../phases.js';
import { change, hold, rest } from '../steps.js';
import { closeStage, describe, openStage } from '../trial.js';
import { PauseLog, quietTickMaxMs } from './pauses.js';
import { Probe } from './probe.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from './sockets.js';

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../phases.js').Phase} Phase */
/** @typedef {import('../phases.js').Phases} Phases */

/**
 * @typedef {object} Watch what observes a trial from outside
 * @property {Recorder} recorder
 * @property {Probe} probe
 * @property {PauseLog} pauses
 */

/** @param {Trial} trial @returns {Promise<Values>} */
export async function trialOfServer(trial) {
  const { lab, plan } = trial;
  const stage = await openStage(trial, { network: networkOfMany() });
  const { server, load } = stage;
  const stopShowing = lab.view ? server.showTo(lab.view) : () => {};
  const recorder = new Recorder(server, load);
  const watch = { recorder, probe: new Probe(server.port, lab.signal), pauses: new PauseLog(lab) };
  let isGone = false;
  try {
    isGone = await runPhases(trial, stage, watch);
  } finally {
    watch.probe.stop();
    stopShowing();
    describe(trial, stage, recorder.spans);
  }
  const phases = recorder.phases();
  await closeStage(stage);
  return {
    ...streamValues(phases),
    ...memoryValues(phases, plan.streams),
    ...ticksOf('held', phases.held),
    ...ticksOf('up', phases.up),
    ...cpuValues(phases),
    downS: isGone ? phases.down.tookMs / 1000 : null,
    ...watchValues(phases, watch),
  };
}

/** @param {Trial} trial @param {import('../steps.js').Stage} stage @param {Watch} watch @returns {Promise<boolean>} whether the last socket was seen to close */
async function runPhases({ lab, plan, name }, stage, { recorder, probe, pauses }) {
  const during = (/** @type {string} */ phase, /** @type {() => Promise<unknown>} */ act) => {
    lab.status = () => `[${name}] ${phase}: ${stage.load.text()}`;
    if (lab.view) lab.say(phase);
    return recorder.during(phase, act);
  };
  await during('idle', () => rest('idle', plan.idleS).run(stage));
  const sockets = socketsNow();
  await during('up', () => change(stage, plan.streams));
  await pauses.start();
  await during('held', () => hold('held', plan.holdS).run(stage));
  await pauses.stop(`${name}-pauses`);
  probe.start();
  let isGone = false;
  await during('down', async () => {
    await change(stage, 0);
    isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
  });
  return isGone;
}

/** @param {Phases} phases @returns {Values} */
function streamValues({ up, held }) {
  const { open, failed, lost } = held.load.counts;
  const upS = up.tookMs / 1000;
  return { open, failed: sumOf(failed), lost: sumOf(lost), upS, openRate: up.load.counts.opened / upS };
}

/** @param {Phases} phases @param {number} streams @returns {Values} */
function memoryValues(phases, streams) {
  const { idle, held } = phases;
  return {
    userBytes: (held.serverPssBytes - idle.serverPssBytes) / streams,
    allUserBytes: held.serverPssBytes / streams,
    kernelBytes: kernelBytes('idle', 'held')(phases),
    usedBytes: last('held', 'memoryUsedBytes')(phases),
    dronesBytes: held.dronesPssBytes / streams,
  };
}

/** @param {Phases} phases @returns {Values} */
function cpuValues(phases) {
  const { held } = phases;
  const seconds = (held.endMs - held.beginMs) / 1000;
  const pings = (growth('up', 'held', 'pings')(phases) ?? 0) / seconds;
  return {
    cpuPercent: held.serverCpuPercent,
    dronesPercent: held.dronesCpuPercent,
    idlePercent: median('held', 'cpuIdlePercent')(phases),
    pings,
    pingUs: pings > 0 ? (held.serverCpuPercent * 1e4) / pings : null,
  };
}

/** @param {Phases} phases @param {Watch} watch @returns {Values} */
function watchValues({ held }, { probe, pauses }) {
  const isKnown = held.latenessMs.count > 0;
  const { worstMs, sharePercent } = pauses.figures();
  return {
    latenessP99Ms: isKnown ? held.latenessMs.p99 : null,
    latenessMaxMs: isKnown ? held.latenessMs.max : null,
    pauseMs: worstMs,
    pausedPercent: sharePercent,
    quietTickMaxMs: quietTickMaxMs(held.rows, pauses.seconds),
    answerMs: probe.worstMs,
    unanswered: probe.unanswered,
  };
}

/** @param {string} phase @param {Phase} span @returns {Values} */
function ticksOf(phase, { ticks }) {
  if (!ticks) return {};
  const { avgMs, p90Ms, p99Ms, maxMs } = ticks;
  return {
    [`${phase}TickAvgMs`]: avgMs,
    [`${phase}TickP90Ms`]: p90Ms,
    [`${phase}TickP99Ms`]: p99Ms,
    [`${phase}TickMaxMs`]: maxMs,
  };
}
