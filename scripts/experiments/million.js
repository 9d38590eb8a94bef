/*
 * A million streams on one machine, clients included: opened, held and closed; then the same with bare epoll loops.
 * `npm run million` checks the machine and runs it.
 */
import { buildBare } from '../lab/bare.js';
import { figure, latenessFigures } from '../lab/figures.js';
import { FLOOR, trialOfFloor } from '../lab/million/floor.js';
import { trialOfServer } from '../lab/million/server.js';
import { targetsText } from '../lab/million/targets.js';
import { hasOwnNetwork } from '../lab/namespace.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_MS = 20_000;
/** The bare loops need not hold longer: their CPU is the same every minute. */
const FLOOR_HOLD_S = 60;

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
