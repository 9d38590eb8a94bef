/*
 * Three nodes of one hub on NATS, and one of them is killed. `npm run million -- --nodes` checks the machine and runs it.
 */
import { NODE_FIGURES, NODES, PER_SECOND, trialOfNodes } from '../lab/million/nodes.js';
import { targetsText } from '../lab/million/targets.js';
import { MEMORY_FIGURES, STREAM_FIGURES, tickFigures } from '../lab/million/values.js';
import { natsVersion } from '../lab/nodes/nats.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_S = 20;
const RUN = 'nodes';

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'answered publications: deliveries that did not arrive / arrived again / out of order', figures: ['missing', 'duplicated', 'disordered'], target: '0 / 0 / 0', most: [0, 0, 0], headline: 'lost / duplicated / out of order: {}' },
  { text: 'publications that were never answered with 200', figures: ['unpublished'], target: '0', most: [0] },
  { text: 'streams of the killed node / back at the others', figures: ['killed', 'moved'], target: '-', headline: 'streams of the killed node / back at the others: {}' },
  { text: 'streams of other nodes that were lost', figures: ['lost'], target: '0', most: [0] },
  { text: 'until all are back / have everything', figures: ['backS', 'recoveredS'], target: '-', headline: 'all are back, and have everything, after {}' },
  { text: 'false alarms', figures: ['gaps'], target: '0', most: [0] },
  { text: 'publishing to the client, p99: before the kill / once all are back', figures: ['beforeP99Ms', 'afterP99Ms'], target: '-' },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What happens to clients and publications if one of three nodes is killed?',
  title: 'three nodes on NATS with 100,000 streams each; one is killed with -9',
  usual: { streams: 300_000, ramp: 10_000, holdS: 30, repeats: 1 },
  small: { streams: 15_000, ramp: 5000, holdS: 10 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `${NODES} servers with one worker each are nodes of one hub on one server of NATS ${natsVersion() || '(not installed)'} with JetStream. Each has a third of the streams, with room for half of them, in rooms of 100 that are spread over all nodes. Streams are pinged every ${PING_INTERVAL_S} s. The charts are those of the first node.`,
    `${PER_SECOND} publications per second go to the rooms in turn, over 16 connections that are spread over all nodes. A publication that is not answered with 200 is sent again with the same id, to the next node.`,
    'While that goes on, all processes of one node are killed at once (SIGKILL). Its clients come back at the other two, as fast as the ramp allows, with the cursors that they have. Each stream checks that it gets everything that was answered with 200, once and in order.',
    'Memory is PSS of all nodes, without NATS; ticks are those of the worst worker.',
  ],
  runs: ({ holdS }) => [
    {
      name: RUN,
      text: 'our server',
      args: [
        ...['--transport', 'hold', '--workers', '1'],
        ...['--ping-interval', String(1000 * Math.min(PING_INTERVAL_S, holdS))],
      ],
      skip: noHold() || (natsVersion() === '' ? 'nats-server is not installed' : ''),
    },
  ],
  trial: trialOfNodes,
  trialSeconds: ({ streams, ramp, idleS, holdS }) => 20 + idleS + (1.5 * streams) / ramp + 2 * holdS,
  figures: [
    ...NODE_FIGURES,
    ...STREAM_FIGURES,
    ...MEMORY_FIGURES,
    ...tickFigures('held', 'held'),
    ...tickFigures('killed', 'from the kill until all have everything'),
    ...tickFigures('after', 'once all are back'),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      `The killed node had ${value('killed')} streams. All of them were open at the other nodes after ${value('backS')}, and had everything after ${value('recoveredS')}: ${value('recovered')} deliveries were made up for.`,
      `Of ${value('expected')} deliveries of ${value('accepted')} answered publications ${value('missing')} did not arrive, ${value('duplicated')} arrived again, and ${value('disordered')} out of order. ${value('gaps')} answers were false alarms.`,
      `${value('retried')} requests were sent again (${value('refused')} were refused, ${value('unanswered')} had no answer); ${value('unpublished')} publications were never answered with 200.`,
      `From publishing to the client, p99 was ${value('beforeP99Ms')} before the kill and ${value('afterP99Ms')} once all were back.`,
    ];
  },
  comparison: (findings) => targetsText(TARGETS, findings, { run: RUN }),
};
