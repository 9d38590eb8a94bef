/*
 * A million streams on one machine, clients with it: opened, held and closed; then held by a bare epoll loop, which
 * has nothing to do but that. `npm run million` runs it, once the machine has been looked at.
 */
import { sumOf } from '../../fleet/drone/causes.js';
import { buildBare } from '../lab/bare.js';
import { figure, kernelBytes, latenessFigures } from '../lab/figures.js';
import { besideText } from '../lab/million/beside.js';
import { FLOOR, trialOfFloor } from '../lab/million/floor.js';
import { Pauses, quietTickMaxMs } from '../lab/million/pauses.js';
import { Probe } from '../lab/million/probe.js';
import { socketsNow, untilGone } from '../lab/million/sockets.js';
import { hasOwnNetwork, networkOfMany } from '../lab/namespace.js';
import { growth, last, median, Recorder } from '../lab/phases.js';
import { change, hold, rest } from '../lab/steps.js';
import { noHold } from '../lab/transports.js';
import { closeStage, leave, openStage } from '../lab/trial.js';
import { known } from '../lab/words.js';

const PING_INTERVAL_MS = 20_000;
/** The bare loop is held no longer: its CPU is the same each minute. */
const FLOOR_HOLD_S = 60;
/** What may be open beyond what was open before the first stream. */
const OTHER_SOCKETS = 50;

/** @typedef {import('../lab/experiment.js').Values} Values */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Does this machine hold so many streams, clients with it, and what do they take?',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 600, repeats: 1 },
  hasOwnNetwork: true,
  how: [
    `Each stream is pinged every ${PING_INTERVAL_MS / 1000} s. The ramp is what the clients try; what they reach is below.`,
    'Memory is PSS of all processes of the server, less what they had before the first stream where "excluded" is said.',
    'Ticks are of the worker that did worst, all of a phase together. Lateness is what the clients see, against the schedule.',
    ...(hasOwnNetwork()
      ? [
          'Server and clients had a network namespace of their own, whose table of sockets is as large as they need.',
        ]
      : []),
    `The floor: one process of a bare epoll loop for each descriptor table of the server, the same clients, the same pings, held for ${FLOOR_HOLD_S} s at most.`,
  ],
  runs: () => [
    {
      name: 'hold',
      text: 'our server; one worker, for its shards are threads, and each event loop more costs its ticks',
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
    figure('openRate', 'streams opened a second', '1/s'),
    figure('userBytes', 'user memory of the server a stream, its start excluded', 'bytes'),
    figure('allUserBytes', 'user memory of the server a stream, its start included', 'bytes'),
    figure('kernelBytes', 'kernel memory a socket', 'bytes'),
    figure('usedBytes', 'memory of the machine that is used, both ends', 'bytes'),
    figure('dronesBytes', 'user memory of the clients a stream', 'bytes'),
    ...tickFigures('held', 'held'),
    ...tickFigures('up', 'opening'),
    ...latenessFigures(),
    figure('cpuPercent', 'CPU of the server, held', '%'),
    figure('dronesPercent', 'CPU of the clients, held', '%'),
    figure('idlePercent', 'CPU of the machine that was idle, held', '%'),
    figure('pings', 'pings a second, held', '1/s'),
    figure('pingUs', 'CPU of the server a ping', 'µs'),
    figure('downS', 'time to close all, to the last socket', 's'),
    figure('answerMs', 'the longest that it took to answer while they closed', 'ms'),
    figure('unanswered', 'requests that it did not answer while they closed', 'count'),
    figure('pauseMs', 'the longest that the machine itself stood still, held', 'ms'),
    figure('pausedPercent', 'seconds in which it stood still for more than 5 ms, held', '%'),
    figure('quietTickMaxMs', 'tick max, held, in the other seconds', 'ms'),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, 'hold');
    const [ours, floor] = ['hold', FLOOR].map((run) => findings.of('pingUs', run)?.median);
    return [
      `${value('open')} streams were open, ${value('upS')} after the first (${value('openRate')}); ${value('failed')} failed, ${value('lost')} were lost.`,
      `A stream takes ${value('userBytes')} of the server's own memory, ${value('allUserBytes')} with all that the server takes for itself, and ${value('kernelBytes')} of the kernel's at each end.`,
      `Ticks while held: ${ticksText(value, 'held')}; while opening: ${ticksText(value, 'up')}.`,
      ...(findings.of('pauseMs', 'hold')
        ? [
            `Meanwhile the machine itself stood still for ${value('pauseMs')} at most, as a thread of the highest priority on each core saw it that only wakes; a tick that it falls into is 10 ms and that, and some more to catch up. In the seconds without such a pause the worst tick was ${value('quietTickMaxMs')}.`,
          ]
        : []),
      `Pings came ${value('latenessP99Ms')} late at p99, ${value('latenessMaxMs')} at most, ${value('pings')} of them.`,
      `Held, the server took ${value('cpuPercent')} of one core${ours && floor ? `, ${(ours / floor).toFixed(2)} times what the bare loop takes for the same pings` : ''}.`,
      `All were closed, to the last socket, in ${value('downS')}; meanwhile the server answered within ${value('answerMs')}, and left ${value('unanswered')} unanswered.`,
    ];
  },
  beside: besideText,
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
  return `${avg} in the mean, p90 ${p90}, p99 ${p99}, the worst ${max}`;
}

/** @param {import('../lab/experiment.js').Trial} trial @returns {Promise<Values>} */
async function trialOfServer(trial) {
  const { lab, plan, name } = trial;
  const stage = await openStage(trial, { network: networkOfMany() });
  const { server, load } = stage;
  const stopShowing = lab.view ? server.showTo(lab.view) : () => {};
  const recorder = new Recorder(server, load);
  const probe = new Probe(server.port, lab.signal);
  const pauses = new Pauses(lab);
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
    pauses.start();
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
    leave(trial, stage, recorder.spans);
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

/** Between the rows that bound it. @param {import('../lab/phases.js').Phase} phase */
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
