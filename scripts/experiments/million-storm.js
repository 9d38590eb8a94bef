/*
 * A third of a million clients is cut off at once, and comes back for what it missed. `npm run million -- --storm` checks the
 * machine and runs it.
 */
import { tryBuildBare } from '../lab/bare.js';
import { figure } from '../lab/figures.js';
import { DELIVERY_FIGURES, FAULT_FIGURES, HUB_ARGS, ROOM } from '../lab/million/publications.js';
import { PER_SECOND, PER_SECOND_AWAY, trialOfStorm } from '../lab/million/storm.js';
import { targetsText } from '../lab/million/targets.js';
import { LATENESS_FIGURES, PAUSE_FIGURES, tickFigures } from '../lab/million/values.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_MS = 20_000;
const RUN = 'storm';
/** The history that clients need: those who have heard nothing since their last ping ask for this and for the time they were away. */
const HISTORY = ['--history-count', '500000', '--history-bytes', '268435456'];

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'from the return of 300,000 until all are open / have got all they missed', figures: ['openS', 'recoveredS'], target: '40 s / 40 s', most: [40, 40], headline: 'open and recovered in {}' },
  { text: 'publications lost / duplicated / out of order', figures: ['undelivered', 'duplicated', 'outOfOrder'], target: '0 / 0 / 0', most: [0, 0, 0], headline: '{} lost, duplicated, out of order' },
  { text: 'streams that came back without their cursor / gaps reported / other streams lost', figures: ['restarted', 'gaps', 'lost'], target: '0 / 0 / 0', most: [0, 0, 0] },
  { text: 'ping lateness p99 of the streams that stayed, meanwhile', figures: ['latenessP99Ms'], target: '100 ms', most: [100], headline: 'pings of the others {} late (p99)' },
  { text: 'from publishing to the streams that stayed, p99, meanwhile', figures: ['deliveryP99Ms'], target: '-' },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'What happens when nearly a third of all clients is cut off at once, and all come back for what they missed?',
  title: '300,000 of a million streams are cut off and come back',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 30, repeats: 1 },
  small: { streams: 15_000, ramp: 3000, holdS: 25 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream is pinged every ${PING_INTERVAL_MS / 1000} s, and subscribes to a room of ${ROOM} and to a topic of its own. ${PER_SECOND} publications per second go on all the time, to a room and to a single stream in turn. They are numbered, and each client checks that it gets each of its own once and in order.`,
    `The connections of 30 % of the clients, some of each room, are reset, all at once, by processes that have a third of the usual share of CPU until they come back, because in reality they are on other machines. When the server has closed its ends, they stay away until each room has got a publication, for which ${PER_SECOND_AWAY} per second are made; then all come back with their cursors, as fast as the ramp allows. They have recovered when the last publication arrives that was sent while its client was away; that none is missing is checked at the end, publication by publication.`,
    'Lateness and delivery are those of the streams that stayed, from the cut until the last one has recovered; ticks and CPU are of the same time.',
  ],
  runs: () => [
    {
      name: RUN,
      text: 'our server; one worker, as in the run without publications',
      // biome-ignore format: a line
      args: ['--transport', 'hold', '--workers', '1', '--ping-interval', String(PING_INTERVAL_MS), ...HUB_ARGS, ...HISTORY],
      skip: noHold(),
      prepare: tryBuildBare,
    },
  ],
  trial: (trial) => trialOfStorm(trial, PING_INTERVAL_MS),
  trialSeconds: ({ streams, ramp, idleS, holdS }) => idleS + (1.3 * streams) / ramp + 2 * holdS,
  figures: [
    figure('open', 'streams open at the end', 'count'),
    figure('cut', 'streams that were cut off', 'count'),
    figure('failed', 'attempts to open a stream that failed', 'count'),
    figure('lost', 'streams lost, other than those that were cut off', 'count'),
    figure('upS', 'time to open all streams at first', 's'),
    figure('cutS', 'time until all were cut off', 's'),
    figure('noticedS', 'time until the server had closed its ends, after that', 's'),
    figure('awayS', 'time they were away after that', 's'),
    figure('openS', 'from the return until all were open again', 's'),
    figure('recoveredS', 'from the return until they had got all they missed', 's'),
    figure('recovered', 'deliveries that they had missed and got', 'count'),
    figure('resumed', 'streams that came back with their cursor', 'count'),
    figure('restarted', 'streams that came back without a cursor', 'count'),
    ...FAULT_FIGURES,
    ...LATENESS_FIGURES,
    figure('beforeLatenessP99Ms', 'ping lateness p99, before the storm', 'ms'),
    ...DELIVERY_FIGURES.filter(({ unit }) => unit === 'ms'),
    figure('beforeDeliveryP99Ms', 'from publishing to the client, p99, before the storm', 'ms'),
    ...tickFigures('storm', 'storm'),
    figure('cpuPercent', 'CPU of the server, storm', '%'),
    figure('dronesPercent', 'CPU of the clients, storm', '%'),
    figure('publisherPercent', 'CPU of the publisher, storm', '%'),
    figure('userBytes', 'user memory of the server per stream, without that of the idle server', 'bytes'),
    figure('dronesBytes', 'user memory of the clients per stream', 'bytes'),
    ...PAUSE_FIGURES,
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      `${value('cut')} of ${value('open')} streams were cut off within ${value('cutS')}. The server had closed its ends ${value('noticedS')} later, and they stayed away for another ${value('awayS')}. ${value('openS')} after they began to come back all were open, and after ${value('recoveredS')} they had got all they missed: ${value('recovered')} publications.`,
      `${value('undelivered')} of all deliveries were lost, ${value('duplicated')} duplicated, ${value('outOfOrder')} out of order.`,
      `Pings of the others were ${value('latenessP99Ms')} late at p99 (before: ${value('beforeLatenessP99Ms')}), ${value('latenessMaxMs')} at most; publications took ${value('deliveryP99Ms')} at p99 (before: ${value('beforeDeliveryP99Ms')}).`,
    ];
  },
  comparison: (findings) => targetsText(TARGETS, findings, { run: RUN }),
};
