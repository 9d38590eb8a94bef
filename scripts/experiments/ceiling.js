/*
 * How many streams: their number rises until something reaches its limit, and then as many as are well are held for long.
 * `npm run million -- --ceiling` checks the machine and runs it.
 */
import { native } from '../../native/index.js';
import { figure } from '../lab/figures.js';
import { CAUSES, MEMORY_PARTS, PING_INTERVAL_MS, trialOfCeiling } from '../lab/million/ceiling.js';
import { memoryChart } from '../lab/million/ceilingchart.js';
import { SPARE } from '../lab/million/room.js';
import { targetsText } from '../lab/million/targets.js';
import {
  CPU_FIGURES,
  LATENESS_FIGURES,
  MEMORY_FIGURES,
  PAUSE_FIGURES,
  tickFigures,
} from '../lab/million/values.js';
import { known } from '../lab/text.js';

const RUN = 'ceiling';
/** All of them with clients on other machines. */
const OTHERS = [
  'original, 2012',
  '[WhatsApp, 2012](https://blog.whatsapp.com/1-million-is-so-2011) (24 cores, 103 GB)',
  '[Phoenix, 2015](https://phoenixframework.org/blog/the-road-to-2-million-websocket-connections) (40 cores, 128 GB)',
  '[MigratoryData, 2013](https://migratorydata.com/blog/websockets-benchmark-12-million-concurrent-users/)',
];

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'streams held', figures: ['held'], target: '2,400,000', least: [2_400_000], headline: '{} streams held', others: ['1,000,000', '2,277,845', '2,000,000', '12,000,000'] },
  { text: 'lost while they were held', figures: ['heldLost'], target: '0', most: [0] },
  { text: 'ping lateness p99, at the client', figures: ['latenessP99Ms'], target: '200 ms', most: [200], headline: 'pings {} late (p99)' },
  { text: 'kernel memory per socket', figures: ['kernelBytes'], target: '-' },
  { text: 'CPU of the server per ping', figures: ['pingUs'], target: '-' },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How many streams can this machine hold, clients included, and what is the limit?',
  title: 'as many streams as the machine can hold',
  usual: { streams: 1_000_000, ramp: 20_000, holdS: 600, repeats: 1 },
  small: { streams: 15_000, most: 50_000, ramp: 10_000, holdS: 30 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  rises: true,
  how: [
    `The number of streams rises, in steps of half the room that is left, but at least 4 %; each number is held for a while before the next one. Streams are opened while pings are on time. When something reaches its limit, or would with the next step, the last number that was well is held for long; if something reaches its limit meanwhile, it is 4 % fewer instead. Streams are pinged every ${PING_INTERVAL_MS / 1000} s.`,
    `The limit can be memory (the next step would leave less than ${SPARE * 100} % free, judged by what each stream has taken so far), another limit that the tune check knows, CPU (less than 5 % of one core idle, most of it used by us), lateness (p99 above 200 ms at the client, or above 50 ms in each second of two minutes after streams were opened), ticks (p90 above 50 ms), or streams (some are refused, lost, or do not open in time). If it is CPU, lateness or ticks, a number is tried out once more before it counts as too many, because the machine may have paused.`,
    'Memory is PSS of all processes of the server, with or without what they had before the first stream. Lateness is measured by the clients against the schedule.',
  ],
  runs: () => [
    {
      name: RUN,
      text: 'our server; one worker, because its shards are threads',
      args: [
        ...(native ? ['--transport', 'hold', '--workers', '1'] : ['--transport', 'http']),
        '--ping-interval',
        String(PING_INTERVAL_MS),
      ],
    },
  ],
  trial: trialOfCeiling,
  trialSeconds: ({ streams, most, ramp, idleS, holdS }) =>
    idleS + (2.5 * (most || 2.5 * streams)) / ramp + 6 * (Math.min(holdS / 10, 20) + 3) + holdS,
  figures: [
    figure('held', 'streams held', 'count'),
    figure('limitAt', 'streams with which a limit was, or would be, reached', 'count'),
    ...Object.entries(CAUSES).map(([cause, name]) =>
      figure(
        name,
        `trials in which ${cause} ${cause === 'ticks' || cause === 'streams' ? 'were' : 'was'} the limit`,
        'count',
      ),
    ),
    figure('failed', 'streams that failed to open and were opened again', 'count'),
    figure('lost', 'streams lost, opening or held', 'count'),
    figure('heldLost', 'streams lost while they were held', 'count'),
    figure('heldLimits', 'limits reached while they were held', 'count'),
    ...MEMORY_FIGURES,
    figure('streamBytes', 'memory per stream, both ends, of the machine', 'bytes'),
    figure('idleUsedBytes', 'memory in use before the first stream', 'bytes'),
    figure('leftBytes', 'memory left', 'bytes'),
    figure('spareBytes', 'memory that has to stay free', 'bytes'),
    figure('nextBytes', 'memory that the next step needs', 'bytes'),
    ...tickFigures('held', 'held'),
    ...LATENESS_FIGURES,
    ...CPU_FIGURES,
    figure('downS', 'time to close all streams, to the last socket', 's'),
    ...PAUSE_FIGURES,
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    const has = (/** @type {string} */ name) => (findings.of(name, RUN)?.most ?? 0) > 0;
    const named = Object.entries(CAUSES).flatMap(([cause, name]) => (has(name) ? [cause] : []));
    const limit = named.join(' and ');
    if (!has('held')) return [`Even ${value('limitAt')} streams were too many here: the limit was ${limit}.`];
    const [kernel, user, clients] = MEMORY_PARTS.map(value);
    return [
      `${value('held')} streams were held; ${value('heldLost')} were lost meanwhile. Pings (${value('pings')}) were ${value('latenessP99Ms')} late at p99, ${value('latenessMaxMs')} at most, with ${value('idlePercent')} of CPU idle.`,
      has('heldLimits')
        ? 'While they were held, something was beyond its limit: see the notes.'
        : 'While they were held, nothing was beyond its limit.',
      named.length > 0
        ? `The next step would have been ${value('limitAt')} streams; what prevents it is ${limit}.`
        : 'No limit was reached: no more were asked for.',
      `${value('leftBytes')} of memory were left, of which ${value('spareBytes')} have to stay free${has('nextBytes') ? `, and the next step needs ${value('nextBytes')}` : ''}. A stream takes ${value('streamBytes')} of the machine's memory. Counted by themselves, that is ${kernel} in the kernel at each end, ${user} in the server and ${clients} in the clients.`,
    ];
  },
  comparison: (findings) =>
    `The targets are for 25 GB of memory.\n\n${targetsText(TARGETS, findings, { run: RUN, others: OTHERS })}`,
  charts: memoryChart,
};
