/*
 * A million streams, each in a room of 100 and on a topic of its own, and as many publications as they get on time.
 * `npm run million -- --rooms` checks the machine and runs it.
 */

import { buildBare, tryBuildBare } from '../lab/bare.js';
import { barSpec } from '../lab/bars.js';
import { figure } from '../lab/figures.js';
import { FLOOR } from '../lab/million/floor.js';
import { DELIVERY_FIGURES, FAULT_FIGURES, HUB_ARGS, ROOM } from '../lab/million/publications.js';
import { COLUMNS, GOOD, MAX_PRESENCE, trialOfRooms } from '../lab/million/rooms.js';
import { SEND_FIGURES, trialOfSpread } from '../lab/million/spread.js';
import { cellsOf, stepsIn } from '../lab/million/steps.js';
import { targetsText } from '../lab/million/targets.js';
import {
  CPU_FIGURES,
  LATENESS_FIGURES,
  MEMORY_FIGURES,
  PAUSE_FIGURES,
  STREAM_FIGURES,
  tickFigures,
} from '../lab/million/values.js';
import { known, markdownTable, valueText } from '../lab/text.js';
import { noHold } from '../lab/transports.js';
import { svgOf } from '../plot/picture.js';

const PING_INTERVAL_MS = 20_000;
const RUN = 'rooms';
const CHART = 'steps.svg';
/** Streams of the same kind (a million WebSockets, each with a channel of its own and one of 10), on 20 servers with Redis. */
const OTHERS = [
  '[Centrifugo, 2020](https://centrifugal.dev/blog/2020/02/10/million-connections-with-centrifugo): 20 servers, 5 Redis',
];
/** The bare loops need not send for longer: their CPU is the same every minute. */
const FLOOR_HOLD_S = 30;

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'deliveries per second, held', figures: ['deliveryRate'], target: '100,000/s', least: [100_000], headline: '{} deliveries', others: ['about 500,000/s'] },
  { text: 'from publishing to the client, p99', figures: ['deliveryP99Ms'], target: '100 ms', most: [100], headline: '{} from publisher to client (p99)', others: ['200 ms'] },
  { text: 'publications lost / duplicated / out of order', figures: ['undelivered', 'duplicated', 'outOfOrder'], target: '0 / 0 / 0', most: [0, 0, 0], headline: '{} lost, duplicated, out of order' },
  { text: 'streams failed / lost', figures: ['failed', 'lost'], target: '0 / 0', most: [0, 0] },
  { text: 'presence counts of the rooms that were asked for', figures: ['leastPresent', 'mostPresent'], target: `${ROOM} / ${ROOM}`, least: [ROOM, ROOM], most: [ROOM, ROOM] },
  { text: 'ping lateness p99, at the client', figures: ['latenessP99Ms'], target: '-' },
  { text: 'CPU of server and clients per delivery or ping, relative to the bare loops', figures: ['sendUs'], target: '-', over: FLOOR },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: `How many publications per second reach so many streams on time, each in a room of ${ROOM} and on its own topic?`,
  title: 'a million streams in rooms of 100, with presence',
  usual: { streams: 1_000_000, ramp: 4000, holdS: 600, repeats: 1 },
  small: { streams: 15_000, ramp: 3000, holdS: 20 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream is pinged every ${PING_INTERVAL_MS / 1000} s, and subscribes to its room and to a topic of its own; the streams of a room are spread over the whole table. Publications go to a room and to a single stream in turn, 10 per request, so two of them are ${ROOM + 1} deliveries. Their data are about 70 bytes. They are numbered, and each client checks that it gets each of its own once and in order.`,
    `The rate rises by a quarter from step to step until a step fails twice; two more steps are between the last good rate and that one. A step is good if delivery takes at most ${GOOD.deliveryP99Ms} ms (p99), pings are at most ${GOOD.latenessP99Ms} ms late (p99), ticks take at most ${GOOD.tickP99Ms} ms (p99; 10 ms of it are their interval), at least ${GOOD.keptPercent} % of what was due was published, and everything arrived. It lasts until its last publication has arrived. Then 95 % of the best rate is held; if that turns out to be too much, 10 % less is held instead, and then once more.`,
    'With --idle-pings a publication takes the place of the next ping of its stream.',
    'With --subscriptions the server knows who is subscribed to what, and announces every change. At the end it is asked for the lists of some rooms.',
  ],
  runs: () => [
    {
      name: RUN,
      text: 'our server; one worker, as in the run without rooms',
      // biome-ignore format: a line
      args: ['--transport', 'hold', '--workers', '1', '--ping-interval', String(PING_INTERVAL_MS), '--idle-pings', ...HUB_ARGS, '--subscriptions', '--max-presence', String(MAX_PRESENCE)],
      skip: noHold(),
      prepare: tryBuildBare,
    },
    {
      name: FLOOR,
      text: 'bare epoll loops that send texts of the same length, without any check; how many per second is given, only their CPU counts',
      mayFail: true,
      prepare: buildBare,
    },
  ],
  trial: (trial) => (trial.run.name === FLOOR ? trialOfSpread(trial, FLOOR_HOLD_S) : trialOfRooms(trial)),
  trialSeconds: ({ streams, ramp, idleS, holdS }) => idleS + streams / ramp + 1.5 * holdS,
  figures: [
    ...STREAM_FIGURES,
    figure('bestRate', 'best rate of the steps, deliveries', '1/s'),
    ...DELIVERY_FIGURES,
    ...FAULT_FIGURES,
    figure('leastPresent', 'presence count of the rooms asked for, smallest', 'count'),
    figure('mostPresent', 'the same, largest', 'count'),
    figure('presenceMs', 'slowest answer to that', 'ms'),
    ...LATENESS_FIGURES,
    ...tickFigures('held', 'held'),
    ...tickFigures('up', 'opening'),
    ...MEMORY_FIGURES,
    ...CPU_FIGURES.filter(({ name }) => name !== 'pingUs'),
    ...SEND_FIGURES,
    figure('publisherPercent', 'CPU of the publisher, held', '%'),
    ...PAUSE_FIGURES,
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      `${value('open')} streams got ${value('deliveryRate')} deliveries (${value('publicationRate')} publications), ${value('deliveryP50Ms')} after they were sent (p50), p99 ${value('deliveryP99Ms')}, at most ${value('deliveryMaxMs')}.`,
      `${value('undelivered')} of all deliveries were lost, ${value('duplicated')} duplicated, ${value('outOfOrder')} out of order.`,
      `${findings.of('latenessP99Ms', RUN) ? `Pings were ${value('latenessP99Ms')} late at p99` : 'Publications took the place of all pings'}; the server used ${value('cpuPercent')} of one core, the clients ${value('dronesPercent')}, the publisher ${value('publisherPercent')}, and ${value('idlePercent')} was idle.`,
      ...floorSentences(findings),
      `A stream with two subscriptions takes ${value('userBytes')} of the server's memory, its presence included.`,
    ];
  },
  comparison: (findings) =>
    `${targetsText(TARGETS, findings, { run: RUN, others: OTHERS })}\n\n${stepsText(findings)}`,
  charts: chartsOf,
};

/** @param {import('../lab/findings.js').Findings} findings @returns {import('../lab/million/steps.js').Step[]} of the first trial */
function stepsOf({ outcomes }) {
  const [first] = outcomes;
  return first ? stepsIn(first.values) : [];
}

/** @param {import('../lab/findings.js').Findings} findings @returns {string[]} */
function floorSentences(findings) {
  if (!findings.of('sendUs', FLOOR)) return [];
  const value = (/** @type {string} */ name, run = RUN) => known(findings, name, run);
  return [
    `A delivery or ping takes ${value('sendUs')} of CPU, both ends, and ${value('sendUs', FLOOR)} with bare loops and the same clients: so this machine can make at most ${value('mostSends', FLOOR)}, whatever the server does.`,
  ];
}

/** @param {import('../lab/findings.js').Findings} findings @returns {Promise<Record<string, string>>} */
async function chartsOf(findings) {
  const bars = stepsOf(findings).map(barOf);
  if (bars.length === 0) return {};
  const title = 'From publishing to the client';
  const subtitle = [
    'p99 of each step, in their order, by deliveries per second; those in the second color were not good',
  ];
  const panels = [{ title: '', bars }];
  return { [CHART]: await svgOf(barSpec({ title, subtitle, axis: 'ms', panels })) };
}

/** @param {import('../lab/findings.js').Findings} findings */
function stepsText(findings) {
  const head = [...COLUMNS.map(({ text }) => text), 'good'];
  const rows = stepsOf(findings).map((step) => [...cellsOf(step, COLUMNS), step.good ? 'yes' : 'no']);
  return markdownTable(head, rows);
}

/** @param {import('../lab/million/steps.js').Step} step @param {number} i @returns {import('../lab/bars.js').Bar} */
function barOf({ wanted, deliveryP99Ms, good }, i) {
  const value = deliveryP99Ms ?? 0;
  const name = `${i + 1}: ${valueText(wanted ?? 0, '1/s')}`;
  return { name, value, least: value, most: value, label: valueText(value, 'ms'), color: good ? 0 : 1 };
}
