/*
 * New servers take over a million live streams. `npm run million -- --handover` checks the machine and runs it.
 */

import { buildBare, tryBuildBare } from '../lab/bare.js';
import { barSpec } from '../lab/bars.js';
import { FLOOR } from '../lab/million/floor.js';
import { BATCH, HANDOVER_FIGURES, PER_SECOND, TAKEOVERS, trialOfHandover } from '../lab/million/handover.js';
import { leastSeconds, MOVE_FIGURES, trialOfMoves } from '../lab/million/moves.js';
import { targetsText } from '../lab/million/targets.js';
import { LATENESS_FIGURES, MEMORY_FIGURES, STREAM_FIGURES, tickFigures } from '../lab/million/values.js';
import { known, valueText } from '../lab/text.js';
import { noHold } from '../lab/transports.js';
import { svgOf } from '../plot/picture.js';

/** Or the time between two takeovers, so that each stream is pinged in it. */
const PING_INTERVAL_S = 20;
const RUN = 'handover';
const [TAKEOVER_S, MOVED_PER_SECOND, DELIVERY_S] = [4, 100_000, 3];

/** @param {string} name @returns {string[]} the figures of both takeovers */
const both = (name) => TAKEOVERS.map((takeover) => `${takeover}${name}`);

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'first / second takeover: from the command until the old server is gone', figures: both('TookS'), target: '10 s', most: [10, 10], headline: 'taken over in {}' },
  { text: 'streams closed / publications lost / duplicated / out of order', figures: ['closedStreams', 'missing', 'duplicated', 'disordered'], target: '0 / 0 / 0 / 0', most: [0, 0, 0, 0], headline: 'closed / lost / duplicated / out of order: {}' },
  { text: 'latest ping in or after a takeover', figures: both('LatenessMaxMs'), target: '1 s', most: [1000, 1000], headline: 'latest ping {}' },
  { text: 'longest time from publishing to the client in or after a takeover', figures: both('PauseMs'), target: '-' },
  { text: 'streams moved per second', figures: both('PerSecond'), target: '-' },
  { text: 'CPU per moved stream, relative to the bare loops', figures: ['moveUs'], target: '-', over: FLOOR },
];

/** `perSecond`: what the figure is a multiple of. @type {{ figure: string, text: string, perSecond?: number }[]} */
const BARS = [
  { figure: 'StartS', text: 'the new server starts' },
  { figure: 'MovedS', text: 'streams move' },
  { figure: 'TookS', text: 'all of it, until the old one is gone' },
  { figure: 'PauseMs', text: 'longest wait for a publication', perSecond: 1000 },
  { figure: 'LatenessMaxMs', text: 'latest ping', perSecond: 1000 },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How long do new servers take to take over so many live streams, and what do clients notice?',
  title: 'a new server takes over a million streams, twice, under 1,000 publications per second',
  usual: { streams: 1_000_000, ramp: 10_000, holdS: 30, repeats: 1 },
  small: { streams: 15_000, ramp: 3000, holdS: 10 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream is one of the hub, with a topic of its own, and is pinged every ${PING_INTERVAL_S} s (or as long as streams are held between two takeovers, if that is shorter). ${PER_SECOND} publications per second, ${BATCH} per request, go to topics that are spread evenly over all streams; each has a number and an id, and what was not answered when a takeover closed the connection is published again.`,
    'Twice, a new server is started with `--takeover`, on the same cores as the old one and the clients, and everything is held in between. Clients check that each publication arrives once and in order.',
    'The latest ping and the longest publication count until the end of the time that follows the takeover. Memory is PSS.',
  ],
  runs: ({ holdS }) => [
    {
      name: RUN,
      text: 'our server; one worker, as in the run without takeovers',
      args: [
        '--transport',
        'hold',
        '--workers',
        '1',
        '--ping-interval',
        String(1000 * Math.min(PING_INTERVAL_S, holdS)),
      ],
      skip: noHold(),
      prepare: tryBuildBare,
    },
    {
      name: FLOOR,
      text: 'bare epoll loops that move the same streams, and do nothing else',
      mayFail: true,
      prepare: buildBare,
    },
  ],
  trial: (trial) => (trial.run.name === FLOOR ? trialOfMoves(trial) : trialOfHandover(trial)),
  trialSeconds: ({ streams, ramp, idleS, holdS }) =>
    idleS +
    streams / ramp +
    3 * holdS +
    TAKEOVERS.length * (TAKEOVER_S + streams / MOVED_PER_SECOND) +
    DELIVERY_S,
  figures: [
    ...HANDOVER_FIGURES,
    ...MOVE_FIGURES,
    ...STREAM_FIGURES,
    ...MEMORY_FIGURES,
    ...tickFigures('held', 'held'),
    ...LATENESS_FIGURES,
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      ...TAKEOVERS.map(
        (name) =>
          `The ${name} takeover took ${value(`${name}TookS`)}: the new server was ready for streams after ${value(`${name}StartS`)}, ${value(`${name}Moved`)} of them moved in ${value(`${name}MovedS`)} (${value(`${name}PerSecond`)}), and then the old one ended. The servers used ${value(`${name}CpuS`)} of CPU for it.`,
      ),
      ...floorSentences(findings),
      `No client waited longer than ${value('firstPauseMs')} or ${value('secondPauseMs')} for a publication (${value('usualPauseMs')} before the takeovers), and no ping was later than ${value('firstLatenessMaxMs')} or ${value('secondLatenessMaxMs')} (${value('usualLatenessMaxMs')}).`,
      `Of ${value('published')} publications ${value('missing')} were lost, ${value('duplicated')} arrived again and ${value('disordered')} out of order; ${value('closedStreams')} streams were closed.`,
    ];
  },
  comparison: (findings) => targetsText(TARGETS, findings, { run: RUN }),
  charts: chartsOf,
};

/** @param {import('../lab/findings.js').Findings} findings @returns {string[]} */
function floorSentences(findings) {
  const median = (/** @type {string} */ name, run = RUN) => findings.of(name, run)?.median ?? null;
  const value = (/** @type {string} */ name, run = RUN) => known(findings, name, run);
  const [floorUs, moved] = [median('moveUs', FLOOR), median('firstMoved')];
  if (floorUs === null || moved === null) return [];
  const usedPercent = (median('cpuPercent') ?? 0) + (median('dronesPercent') ?? 0);
  const least = leastSeconds(moved, floorUs, usedPercent);
  return [
    `A stream took ${value('moveUs')} of CPU to move, the start of the new server included, and ${value('moveUs', FLOOR)} with bare loops: epoll, a Unix socket and \`close\`, without anything that a server knows about a stream. Pings and publications used ${value('cpuPercent')} of one core at the server and ${value('dronesPercent')} at the clients before the takeovers${least === null || least < 1 ? '' : `, so even those loops would have needed ${valueText(least, 's')} on this machine`}.`,
  ];
}

/** What each takeover consists of, and what clients notice. @param {import('../lab/findings.js').Findings} findings */
async function chartsOf(findings) {
  const panels = TAKEOVERS.map((name, color) => ({
    title: `${name} takeover`,
    bars: BARS.flatMap(({ figure, text, perSecond = 1 }) => {
      const found = findings.of(`${name}${figure}`, RUN);
      if (!found) return [];
      const [value, least, most] = [found.median, found.least, found.most].map((one) => one / perSecond);
      return [{ name: text, value, least, most, label: valueText(value, 's'), color }];
    }),
  }));
  const subtitle = ['all of it under publications; clients and both servers share the cores'];
  return {
    'takeovers.svg': await svgOf(barSpec({ title: 'What a takeover takes', subtitle, axis: 's', panels })),
  };
}
