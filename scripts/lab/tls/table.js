/*
 * From the findings about TLS to the table, the charts and the page. Pure, except for drawing the charts.
 */
import { formatCount } from '../../../lib/format.js';
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { figure } from '../figures.js';
import { capital, known, markdownTable, summaryText, valueText } from '../text.js';
import { CIPHER } from './cipher.js';
import { PAUSE_MS, sizesOf } from './sizes.js';

/** @typedef {import('../findings.js').Findings} Findings */

const OUR_RUN = 'tls';
/** What `more` is compared with. */
const WITHOUT = 'plain';

/** What `tls` must reach: `most` by itself, or `more` than without TLS. @type {Record<string, { most: number } | { more: number }>} */
const TARGETS = {
  memoryBytes: { most: 180 },
  openUs: { most: 200 },
  resumedUs: { most: 120 },
  pingUs: { more: 0.6 },
  stormTickP99Ms: { most: 15 },
  stormLatenessP99Ms: { most: 50 },
};

export const FIGURES = [
  figure('memoryBytes', 'user memory per stream', 'bytes'),
  figure('openUs', 'CPU to open a stream, full handshake', 'µs'),
  figure('resumedUs', 'CPU to open a stream, resumed', 'µs'),
  figure('resumedPercent', 'share of handshakes that were resumed in it', '%'),
  figure('pingUs', 'CPU per ping', 'µs'),
  figure('stormTickP99Ms', 'JS tick p99 while many connect at once', 'ms'),
  figure('stormTickMaxMs', 'longest JS tick meanwhile', 'ms'),
  figure('stormLatenessP99Ms', 'ping lateness p99 of held streams meanwhile', 'ms'),
  figure('stormPerSecond', 'streams opened per second meanwhile', '1/s'),
  figure('stormBusyPercent', 'CPU of the server meanwhile', '%'),
  figure('pauseMs', 'longest pause of the machine meanwhile', 'ms'),
  figure('leftOutMs', 'the same in storms that were left out', 'ms'),
];
/** Said in the text, not in the table. */
const NOT_IN_TABLE = ['leftOutMs'];

/** Columns and bars, in this order. @type {Record<string, string>} */
const TITLES = {
  plain: 'Holdfast without TLS',
  tls: 'Holdfast with TLS',
  'node-http': 'node:https',
  bun: 'Bun',
  go: 'Go net/http',
  nchan: 'nginx with nchan',
};

/** Below this, what is called resumed is a mixture. */
const LEAST_RESUMED_PERCENT = 99;

/** What is drawn. @type {Record<string, { title: string, axis: string, panels: { figure: string, title: string }[] }>} */
const CHARTS = {
  'memory.svg': {
    title: 'User memory per stream',
    axis: 'bytes',
    panels: [{ figure: 'memoryBytes', title: '' }],
  },
  'openings.svg': {
    title: 'CPU of the server to open a stream',
    axis: 'µs',
    panels: [
      { figure: 'openUs', title: 'full handshake' },
      { figure: 'resumedUs', title: 'resumed with a ticket' },
    ],
  },
  'pings.svg': { title: 'CPU of the server per ping', axis: 'µs', panels: [{ figure: 'pingUs', title: '' }] },
  'storm.svg': {
    title: 'Ping lateness of held streams while many connect at once',
    axis: 'ms',
    panels: [{ figure: 'stormLatenessP99Ms', title: 'p99' }],
  },
};

/**
 * @typedef {object} Judged a figure against its target
 * @property {string} name
 * @property {string} target
 * @property {boolean} isMet
 */

/** @param {Findings} findings @returns {Judged[]} */
export function judge(findings) {
  return Object.entries(TARGETS).map(([name, target]) => {
    const { unit } = findings.figure(name);
    const value = findings.of(name, OUR_RUN)?.median;
    if ('most' in target) {
      // With few streams, memory and CPU get lost in noise, and may even be negative.
      const isMet = value !== undefined && value > 0 && value <= target.most;
      return { name, target: valueText(target.most, unit), isMet };
    }
    const base = findings.of(name, WITHOUT)?.median;
    const isMet = value !== undefined && base !== undefined && value <= base + target.more;
    return { name, target: `without TLS + ${valueText(target.more, unit)}`, isMet };
  });
}

/** @param {Findings} findings @returns {string} in Markdown */
export function tableText(findings) {
  const judged = judge(findings);
  const runs = runsIn(findings);
  const rows = findings.figures
    .filter(({ name }) => !NOT_IN_TABLE.includes(name))
    .map(({ name, text, unit }) => {
      const found = judged.find((one) => one.name === name);
      const verdict = found ? `${found.target}: ${found.isMet ? 'reached' : '**missed**'}` : '';
      return [text, ...runs.map((run) => summaryText(findings.of(name, run), unit)), verdict];
    });
  return markdownTable(['figure', ...runs.map((run) => TITLES[run]), 'target for TLS'], rows);
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  const missed = judge(findings).filter(({ isMet }) => !isMet);
  const list = missed.map(
    ({ name, target }) =>
      `${findings.figure(name).text} (${known(findings, name, OUR_RUN)}, target ${target})`,
  );
  return [
    missed.length === 0 ? 'Every target was reached.' : `Targets missed: ${list.join('; ')}.`,
    memorySentence(findings),
    mixedSentence(findings),
  ].filter(Boolean);
}

/** @param {Findings} findings */
function memorySentence(findings) {
  const [own, base] = [OUR_RUN, WITHOUT].map((run) => findings.of('memoryBytes', run)?.median);
  if (own === undefined || base === undefined) return '';
  const others = runsIn(findings).flatMap((run) => {
    const value = findings.of('memoryBytes', run)?.median;
    if (run === OUR_RUN || run === WITHOUT || value === undefined) return [];
    return [`${TITLES[run]} ${valueText(value, 'bytes')}`];
  });
  const rest = others.length > 0 ? ` Others with TLS: ${others.join(', ')}.` : '';
  const more = `With TLS, a stream took ${valueText(own - base, 'bytes')} more user memory than without.`;
  return `${more} Its session is 100 B; a server that has memory left from earlier streams grows by less.${rest}`;
}

/** @param {Findings} findings */
function mixedSentence(findings) {
  const list = runsIn(findings).flatMap((run) => {
    const share = findings.of('resumedPercent', run)?.median;
    return share !== undefined && share < LEAST_RESUMED_PERCENT
      ? [`${TITLES[run]} ${valueText(share, '%')}`]
      : [];
  });
  if (list.length === 0) return '';
  return `Not all handshakes that were meant to be resumed were: ${list.join(', ')}. Their CPU is that of the mixture.`;
}

/** @param {Findings} findings @returns {string[]} in the order of the table */
function runsIn({ runs }) {
  return Object.keys(TITLES).filter((run) => runs.includes(run));
}

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  const drawn = Object.entries(CHARTS).flatMap(([name, chart]) => {
    const spec = specOf(findings, chart);
    return spec ? [svgOf(spec).then((svg) => [name, svg])] : [];
  });
  return Object.fromEntries(await Promise.all(drawn));
}

/** @param {Findings} findings @param {(typeof CHARTS)[string]} chart @returns {import('../bars.js').Spec | null} null if there is nothing to draw */
function specOf(findings, { title, axis, panels }) {
  const all = panels.map((panel) => ({ title: panel.title, bars: barsOf(findings, panel.figure) }));
  const some = all.filter(({ bars }) => bars.length > 0);
  if (some.length === 0) return null;
  const subtitle = ['medians; gray lines: smallest to largest value'];
  return barSpec({ title, subtitle, axis, panels: some });
}

/** @param {Findings} findings @param {string} name @returns {import('../bars.js').Bar[]} */
function barsOf(findings, name) {
  const { unit } = findings.figure(name);
  return runsIn(findings).flatMap((run) => {
    const found = findings.of(name, run);
    if (!found) return [];
    const { median: value, least, most } = found;
    const color = run === OUR_RUN || run === WITHOUT ? 1 : 0;
    return [{ name: TITLES[run], value, least, most, label: valueText(value, unit), color }];
  });
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/tls.md */
export function pageText({ plan, command, facts, notes, charts }, findings) {
  const { low, high, held, restMs } = sizesOf(plan);
  const [lowText, highText, heldText] = [low, high, held].map(formatCount);
  const disturbed = findings.runs.reduce((sum, run) => sum + findings.valuesOf('leftOutMs', run).length, 0);
  return `# What TLS costs

All servers in one run, with the same certificate (ECDSA P-256), the same cipher (TLS 1.3, ${CIPHER}) and the same clients. Each cell shows
the median, and in brackets the smallest and the largest value. Written by \`${command}\`; every single value is in [tls.json](tls.json).

${facts.machine}

${tableText(findings)}

${sentencesOf(findings)
  .map((sentence) => `- ${sentence}`)
  .join('\n')}

${charts.map((path) => `![${capital(path.replace(/^.*\/|\.svg$/g, ''))}](${encodeURI(path)})`).join('\n\n')}

- Ours is \`server.js\` with two workers. The others are a few lines each ([peers](../scripts/lab/peers)): node:https and Bun in one process, Go on all
  cores, nginx with one worker. Servers and clients share the machine.
- Memory is PSS of all processes of the server: its growth from ${lowText} to ${highText} streams, after a rest of ${restMs / 1000} s, in a server that has
  opened and closed ${lowText} before. Ours collects garbage every second, the others as they do by default. What the kernel takes for a socket comes on top of it,
  for all of them.
- CPU is the run time of all threads of the server, minus what it used while idle. ${highText} streams open as fast as the clients can; the first climb doesn't
  count. Then they close, and open again with the tickets they got. Pings are one per second to each of ${highText} streams.
- In a storm, ${highText} clients connect as fast as they can, with full handshakes, while ${heldText} held streams get a ping every second. How late these are is what the
  client sees; ticks are those of the worker with the worst ones, due every 10 ms. On each core a thread with the highest priority watches the machine itself:
  storms in which it was delayed by more than ${PAUSE_MS} ms are left out (${disturbed} here). The first storm doesn't count.
${notes.map((note) => `- ${capital(note)}.\n`).join('')}`;
}
