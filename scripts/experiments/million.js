/*
 * A million streams on one machine, clients included: opened, held and closed; then the same with bare epoll loops.
 * `npm run million` checks the machine and runs it.
 */
import { buildBare } from '../lab/bare.js';
import { figure } from '../lab/figures.js';
import { FLOOR, trialOfFloor } from '../lab/million/floor.js';
import { trialOfServer } from '../lab/million/server.js';
import { targetsText } from '../lab/million/targets.js';
import {
  CPU_FIGURES,
  LATENESS_FIGURES,
  MEMORY_FIGURES,
  PAUSE_FIGURES,
  STREAM_FIGURES,
  tickFigures,
} from '../lab/million/values.js';
import { hasOwnNetwork } from '../lab/namespace.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_MS = 20_000;
/** The bare loops need not hold longer: their CPU is the same every minute. */
const FLOOR_HOLD_S = 60;

/** Figures for 1,000,000 streams (the original of 2012: as many on one server, with 40 client machines). */
const OTHERS = ['prototype', 'original, 2012', 'best published'];

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'failed / lost', figures: ['failed', 'lost'], target: '0 / 0', most: [0, 0], others: ['0 / 0', '-', '-'] },
  { text: 'ramp', figures: ['upS'], target: '80 s', most: [80], headline: 'opened in {}', others: ['82 s (loud ticks), 136 s (quiet ticks)', '-', '-'] },
  { text: 'user memory of the server per stream, without / with the memory of the idle server', figures: ['userBytes', 'allUserBytes'], target: '45 B / 95 B', most: [45, 95], headline: '{} of user memory per stream, without / with the idle server', others: ['- / 59 B', '6.3 KB', '11.6 KB (Centrifugo, 2026), 290 to 580 B (uWebSockets, 2016)'] },
  { text: 'kernel memory per socket', figures: ['kernelBytes'], target: '-', others: ['-', '3.8 KB', 'about 4 KB (Centrifugo, 2026)'] },
  { text: 'ticks while held: avg / p90 / p99', figures: ['heldTickAvgMs', 'heldTickP90Ms', 'heldTickP99Ms'], target: '10.3 / 10.6 / 11 ms', most: [10.3, 10.6, 11], others: ['10.2 / 10.3 / 11.5 ms', '-', '-'] },
  { text: 'longest tick while held', figures: ['heldTickMaxMs'], target: '20 ms', most: [20], others: ['12 ms', '-', '-'] },
  { text: 'ticks while opening: p90 / p99', figures: ['upTickP90Ms', 'upTickP99Ms'], target: '12 / 30 ms', most: [12, 30], others: ['11.3 / 20 ms (in 136 s)', '-', '-'] },
  { text: 'ping lateness p99 / max, at the client', figures: ['latenessP99Ms', 'latenessMaxMs'], target: '50 / 500 ms', most: [50, 500], headline: 'pings {} late (p99 / worst)' },
  { text: 'closing all streams, to the last socket', figures: ['downS'], target: '20 s', most: [20], others: ['16 s', '-', '-'] },
  { text: 'CPU of the server per ping, relative to the bare loop', figures: ['pingUs'], target: '1.15', most: [1.15], over: FLOOR },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Can this machine hold so many streams, clients included, and what do they cost?',
  title: 'a million streams, each pinged every 20 s',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 600, repeats: 1 },
  small: { streams: 50_000, holdS: 60 },
  targets: TARGETS,
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
    ...STREAM_FIGURES,
    ...MEMORY_FIGURES,
    ...tickFigures('held', 'held'),
    ...tickFigures('up', 'opening'),
    ...LATENESS_FIGURES,
    ...CPU_FIGURES,
    figure('downS', 'time to close all streams, to the last socket', 's'),
    figure('answerMs', 'slowest answer to a request during close', 'ms'),
    figure('unanswered', 'unanswered requests during close', 'count'),
    ...PAUSE_FIGURES,
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
  comparison: (findings) =>
    `The figures of others are for 1,000,000 streams, too.\n\n${targetsText(TARGETS, findings, { run: 'hold', others: OTHERS })}`,
};

/** @param {(name: string) => string} value @param {string} phase */
function ticksText(value, phase) {
  const [avg, p90, p99, max] = ['Avg', 'P90', 'P99', 'Max'].map((name) => value(`${phase}Tick${name}Ms`));
  return `${avg} on average, p90 ${p90}, p99 ${p99}, max ${max}`;
}
