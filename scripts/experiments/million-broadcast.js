/*
 * One publication to a million streams. `npm run million -- --broadcast` checks the machine and runs it.
 */
import { buildBare } from '../lab/bare.js';
import { figure } from '../lab/figures.js';
import { broadcastsIn, trialOfBroadcasts, trialOfFloorBroadcasts } from '../lab/million/broadcast.js';
import { timesChart } from '../lab/million/broadcastchart.js';
import { FLOOR } from '../lab/million/floor.js';
import { targetsText } from '../lab/million/targets.js';
import { BROADCAST_FIGURES, FAULT_FIGURES, TICK_FIGURES } from '../lab/million/times.js';
import { STREAM_FIGURES } from '../lab/million/values.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_MS = 20_000;
const RUN = 'hub';
/** The same without --idle-pings. */
const PINGS = 'pings';
/** The bare loops need not hold longer: their CPU is the same every minute. */
const FLOOR_HOLD_S = 20;
// biome-ignore format: an option and its value belong together
const ARGS = ['--transport', 'hold', '--workers', '1', '--ping-interval', String(PING_INTERVAL_MS), '--anonymous'];

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'failed / lost', figures: ['failed', 'lost'], target: '0 / 0', most: [0, 0] },
  { text: 'missing / duplicated / out of order', figures: ['missing', 'duplicated', 'outOfOrder'], target: '0 / 0 / 0', most: [0, 0, 0] },
  { text: 'until everyone has it, median / slowest', figures: ['allMs', 'allMaxMs'], target: '6 s', most: [6000, 6000], headline: 'received by every client within {} (median / slowest)' },
  { text: 'ping lateness p99 meanwhile, at the client', figures: ['latenessP99Ms'], target: '500 ms', most: [500], headline: 'pings {} late meanwhile (p99)' },
  { text: 'until 99 % have it, relative to the bare loops', figures: ['mostMs'], target: '-', over: FLOOR },
  { text: 'CPU of the server per delivery, relative to the bare loops', figures: ['deliveryUs'], target: '-', over: FLOOR },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How long does it take until everyone has a publication, and what becomes of pings meanwhile?',
  title: 'one publication to a million streams',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 60, repeats: 1 },
  small: { streams: 50_000, holdS: 12, ramp: 10_000 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream subscribes to the same topic of the hub and is pinged every ${PING_INTERVAL_MS / 1000} s. Once all are open, and have been held, it is published to the topic several times, each time after a whole second with at least half of the usual pings, which were on time (p99).`,
    'With --idle-pings a publication takes the place of the next ping of its stream, so most of the pings that are due meanwhile need no write of their own. Without, a ping that is due meanwhile and the publication on its way to the same stream are one write.',
    'Each client checks that it gets each publication once and in order, and measures how old it is when it is read. Lateness is of the pings, and of the publications that took the place of an overdue one, until everyone had it, and then until they were on time again. CPU is without that of the pings that were read meanwhile, which is known from the time before, in which nothing is published.',
    'The floor is one bare epoll loop per descriptor table of the server, each of which sends a text with as many bytes to all of its streams; it leaves out the pings that a publication took the place of; the clients are the same, and check it as text.',
  ],
  runs: () => [
    {
      name: RUN,
      text: 'our server; one worker, as in the run without publications',
      args: [...ARGS, '--idle-pings'],
      skip: noHold(),
    },
    { name: PINGS, text: 'the same without --idle-pings', args: ARGS, skip: noHold() },
    { name: FLOOR, text: 'bare epoll loops', mayFail: true, prepare: buildBare },
  ],
  trial: (trial) =>
    trial.run.name === FLOOR
      ? trialOfFloorBroadcasts(trial, PING_INTERVAL_MS, FLOOR_HOLD_S)
      : trialOfBroadcasts(trial, PING_INTERVAL_MS),
  trialSeconds: (plan) => {
    const { streams, ramp, idleS, holdS } = plan;
    const broadcasts = (broadcastsIn(plan) * PING_INTERVAL_MS) / 1000;
    return idleS + (1.5 * streams) / ramp + holdS + broadcasts + streams / 25_000;
  },
  figures: [
    ...STREAM_FIGURES,
    ...FAULT_FIGURES,
    ...BROADCAST_FIGURES,
    ...TICK_FIGURES,
    figure('downS', 'time to close all streams, to the last socket', 's'),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name, run = RUN) => known(findings, name, run);
    const pings = findings.of('allMs', PINGS) ? [pingsSentence((name) => value(name, PINGS))] : [];
    const floor = findings.of('mostMs', FLOOR) ? [floorSentence((name) => value(name, FLOOR))] : [];
    return [
      `${value('open')} streams were open; ${value('failed')} failed to open, ${value('lost')} were lost. ${value('missing')} publications were missing, ${value('duplicated')} came twice, ${value('outOfOrder')} out of order.`,
      `The first stream had a publication after ${value('firstMs')}, half of them after ${value('halfMs')}, 99 % after ${value('mostMs')}, and everyone after ${value('allMs')} (the slowest time ${value('allMaxMs')}): ${value('deliveriesPerSecond')}.`,
      `Meanwhile pings were ${value('latenessP99Ms')} late at p99, ${value('latenessMaxMs')} at most; the longest tick was ${value('tickMaxMs')}.`,
      `A delivery costs the server ${value('deliveryUs')} of CPU, and the clients, which share the machine, ${value('clientUs')}. Publications took the place of pings: ${value('pingPercent')} of the usual ones were read meanwhile.`,
      ...pings,
      ...floor,
    ];
  },
  comparison: (findings) => targetsText(TARGETS, findings, { run: RUN }),
  charts: timesChart,
};

/** @param {(name: string) => string} value of the run without --idle-pings */
function pingsSentence(value) {
  return `Without --idle-pings everyone had it after ${value('allMs')} (the slowest time ${value('allMaxMs')}), and pings were ${value('latenessP99Ms')} late at p99.`;
}

/** @param {(name: string) => string} value of the floor */
function floorSentence(value) {
  return `Bare loops that send as many bytes (${value('eventBytes')}) to the same clients need ${value('mostMs')} until 99 % have them, with ${value('deliveryUs')} of CPU per delivery, and ${value('clientUs')} at the clients: all cores together can't reach everyone in less than ${value('leastMs')}.`;
}
