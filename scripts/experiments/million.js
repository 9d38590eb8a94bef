/*
 * A million streams on one machine, clients included: opened, held and closed; then the same with bare epoll loops.
 * `npm run million` checks the machine and runs it.
 */
import { sumOf } from '../../fleet/drone/causes.js';
import { buildBare } from '../lab/bare.js';
import { figure, kernelBytes, latenessFigures } from '../lab/figures.js';
import { FLOOR, trialOfFloor } from '../lab/million/floor.js';
import { PauseLog, quietTickMaxMs } from '../lab/million/pauses.js';
import { Probe } from '../lab/million/probe.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from '../lab/million/sockets.js';
import { targetsText } from '../lab/million/targets.js';
import { hasOwnNetwork, networkOfMany } from '../lab/namespace.js';
import { growth, last, median, Recorder } from '../lab/phases.js';
import { change, hold, rest } from '../lab/steps.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';
import { closeStage, describe, openStage } from '../lab/trial.js';

const PING_INTERVAL_MS = 20_000;
/** The bare loops need not hold longer: their CPU is the same every minute. */
const FLOOR_HOLD_S = 60;

/** @typedef {import('../lab/experiment.js').Values} Values */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Can this machine hold so many streams, clients included, and what do they cost?',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 600, repeats: 1 },
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream is pinged every ${PING_INTERVAL_MS / 1000} s. The ramp is what the clients try to reach.`,
    'Memory is PSS of all processes of the server, with or without what they had before the first stream.',
    'Ticks are of the worker with the worst ones, over a whole phase. Lateness is measured by the clients against the schedule.',
    ...(hasOwnNetwork()
      ? ['Server and clients ran in their own network namespace, with a socket table of the right size.']
      : []),
    `The floor is one bare epoll loop per descriptor table of the server, with the same clients and pings, held for ${FLOOR_HOLD_S} s at most.`,
  ],
  runs: () => [
    {
      name: 'hold',
      text: 'our server; one worker, because its shards are threads and every further event loop costs its own ticks',
      args: ['--transport', 'hold', '--workers', '1', '--ping-interval', String(PING_INTERVAL_MS)],
      skip: noHold(),
    },
    { name: FLOOR, text: 'bare epoll loops', mayFail: true, prepare: buildBare },
  ],
  trial: (trial) =>
    trial.run.name === FLOOR ? trialOfFloor(trial, PING_INTERVAL_MS, FLOOR_HOLD_S) : trialOfServer(trial),
  trialSeconds: ({ streams, ramp, idleS, holdS }) =>
    idleS + (1.5 * streams) / ramp + (holdS + Math.min(holdS, FLOOR_HOLD_S)) / 2 + streams / 50_000,
  figures: [
    figure('open', 'streams open at once', 'count'),
    figure('failed', 'streams that failed to open', 'count'),
    figure('lost', 'streams lost, opening or held', 'count'),
    figure('upS', 'time to open them', 's'),
    figure('openRate', 'streams opened per second', '1/s'),
    figure('userBytes', 'user memory of the server per stream, without that of the idle server', 'bytes'),
    figure('allUserBytes', 'user memory of the server per stream, with that of the idle server', 'bytes'),
    figure('kernelBytes', 'kernel memory per socket', 'bytes'),
    figure('usedBytes', 'memory in use on the machine, both ends', 'bytes'),
    figure('dronesBytes', 'user memory of the clients per stream', 'bytes'),
    ...tickFigures('held', 'held'),
    ...tickFigures('up', 'opening'),
    ...latenessFigures(),
    figure('cpuPercent', 'CPU of the server, held', '%'),
    figure('dronesPercent', 'CPU of the clients, held', '%'),
    figure('idlePercent', 'idle CPU of the machine, held', '%'),
    figure('pings', 'pings per second, held', '1/s'),
    figure('pingUs', 'CPU of the server per ping', 'µs'),
    figure('downS', 'time to close all streams, to the last socket', 's'),
    figure('answerMs', 'slowest answer to a request during close', 'ms'),
    figure('unanswered', 'unanswered requests during close', 'count'),
    figure('pauseMs', 'longest pause of the machine itself, held', 'ms'),
    figure('pausedPercent', 'seconds with a pause of more than 5 ms, held', '%'),
    figure('quietTickMaxMs', 'tick max, held, in seconds without such a pause', 'ms'),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, 'hold');
    const [ours, floor] = ['hold', FLOOR].map((run) => findings.of('pingUs', run)?.median);
    return [
      `${value('open')} streams were open after ${value('upS')} (${value('openRate')}); ${value('failed')} failed, ${value('lost')} were lost.`,
      `A stream takes ${value('userBytes')} of the server's memory (${value('allUserBytes')} including the idle server), and ${value('kernelBytes')} of kernel memory at each end.`,
      `Ticks while held: ${ticksText(value, 'held')}; while opening: ${ticksText(value, 'up')}.`,
      ...(findings.of('pauseMs', 'hold')
        ? [
            `Meanwhile the machine itself paused for up to ${value('pauseMs')}, measured on each core by a thread with the highest priority that only wakes up. A tick during a pause is longer by the pause, plus some time to catch up. In seconds without a pause the longest tick was ${value('quietTickMaxMs')}.`,
          ]
        : []),
      `Pings (${value('pings')}) were ${value('latenessP99Ms')} late at p99, ${value('latenessMaxMs')} at most.`,
      `While holding the streams, the server used ${value('cpuPercent')} of one core${ours && floor ? `, ${(ours / floor).toFixed(2)} times as much per ping as the bare loops` : ''}.`,
      `All streams were closed, to the last socket, in ${value('downS')}; meanwhile the server answered requests within ${value('answerMs')}, and left ${value('unanswered')} unanswered.`,
    ];
  },
  comparison: targetsText,
};

/** @param {string} phase @param {string} text @returns {import('../lab/experiment.js').Figure[]} */
function tickFigures(phase, text) {
  return ['Avg', 'P90', 'P99', 'Max'].map((name) =>
    figure(`${phase}Tick${name}Ms`, `tick ${name.toLowerCase()}, ${text}`, 'ms'),
  );
}

/** @param {(name: string) => string} value @param {string} phase */
function ticksText(value, phase) {
  const [avg, p90, p99, max] = ['Avg', 'P90', 'P99', 'Max'].map((name) => value(`${phase}Tick${name}Ms`));
  return `${avg} on average, p90 ${p90}, p99 ${p99}, max ${max}`;
}

/** @param {import('../lab/experiment.js').Trial} trial @returns {Promise<Values>} */
async function trialOfServer(trial) {
  const { lab, plan, name } = trial;
  const stage = await openStage(trial, { network: networkOfMany() });
  const { server, load } = stage;
  const stopShowing = lab.view ? server.showTo(lab.view) : () => {};
  const recorder = new Recorder(server, load);
  const probe = new Probe(server.port, lab.signal);
  const pauses = new PauseLog(lab);
  const during = (/** @type {string} */ phase, /** @type {() => Promise<unknown>} */ act) => {
    lab.status = () => `[${name}] ${phase}: ${load.text()}`;
    if (lab.view) lab.say(phase);
    return recorder.during(phase, act);
  };
  let ownBytes = 0;
  let isGone = false;
  try {
    await during('idle', () => rest('idle', plan.idleS).run(stage));
    ownBytes = recorder.spans.idle.serverPssBytes;
    const sockets = socketsNow();
    await during('up', () => change(stage, plan.streams));
    await pauses.start();
    await during('held', () => hold('held', plan.holdS).run(stage));
    await pauses.stop(`${name}-pauses`);
    probe.start();
    await during('down', async () => {
      await change(stage, 0);
      isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
    });
  } finally {
    probe.stop();
    stopShowing();
    describe(trial, stage, recorder.spans);
  }
  const phases = recorder.phases();
  await closeStage(stage);
  const { up, held, down } = phases;
  const pings = (growth('up', 'held', 'pings')(phases) ?? 0) / seconds(held);
  const cpuPercent = held.serverCpuPercent;
  const paused = pauses.figures();
  return {
    open: held.load.counts.open,
    failed: sumOf(held.load.counts.failed),
    lost: sumOf(held.load.counts.lost),
    upS: up.tookMs / 1000,
    openRate: up.load.counts.opened / (up.tookMs / 1000),
    userBytes: (held.serverPssBytes - ownBytes) / plan.streams,
    allUserBytes: held.serverPssBytes / plan.streams,
    kernelBytes: kernelBytes('idle', 'held')(phases),
    usedBytes: last('held', 'memoryUsedBytes')(phases),
    dronesBytes: held.dronesPssBytes / plan.streams,
    ...ticksOf('held', held),
    ...ticksOf('up', up),
    latenessP99Ms: held.latenessMs.count > 0 ? held.latenessMs.p99 : null,
    latenessMaxMs: held.latenessMs.count > 0 ? held.latenessMs.max : null,
    cpuPercent,
    dronesPercent: held.dronesCpuPercent,
    idlePercent: median('held', 'cpuIdlePercent')(phases),
    pings,
    pingUs: pings > 0 ? (cpuPercent * 1e4) / pings : null,
    downS: isGone ? down.tookMs / 1000 : null,
    pauseMs: paused.worstMs,
    pausedPercent: paused.sharePercent,
    quietTickMaxMs: quietTickMaxMs(held.rows, pauses.seconds),
    answerMs: probe.worstMs,
    unanswered: probe.unanswered,
  };
}

/** Between its first and last row. @param {import('../lab/phases.js').Phase} phase */
function seconds({ beginMs, endMs }) {
  return (endMs - beginMs) / 1000;
}

/** @param {string} phase @param {import('../lab/phases.js').Phase} span @returns {Values} */
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
