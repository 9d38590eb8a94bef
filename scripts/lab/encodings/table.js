/*
 * From the findings about formats to the tables, the charts and the page. Pure, except for drawing the charts.
 */
import { formatCount } from '../../../lib/format.js';
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { figure } from '../figures.js';
import { capital, markdownTable, summaryText, valueText } from '../text.js';
import { sizesOf } from '../tls/sizes.js';
import { CONNECTIONS } from './rate.js';
import { highestOf, kindOf } from './subjects.js';

/** @typedef {import('../findings.js').Findings} Findings */

export const FIGURES = [
  figure('memoryBytes', 'user memory per stream', 'bytes'),
  figure('openUs', 'CPU to open a stream', 'µs'),
  figure('pingUs', 'CPU per ping', 'µs'),
  figure('deliveryUs', 'CPU per delivered message', 'µs'),
  figure('perSecond', 'requests per second', '1/s'),
  figure('requestUs', 'CPU per request', 'µs'),
  figure('answerBytes', 'bytes of an answer', 'count'),
];
const OF_STREAMS = ['memoryBytes', 'openUs', 'pingUs', 'deliveryUs'];
const OF_REQUESTS = ['perSecond', 'requestUs', 'answerBytes', 'memoryBytes'];
/** What differs in these tables. @type {Record<string, string>} */
const TEXT_OF = { memoryBytes: 'user memory per idle connection' };

/** Columns and bars, in this order. @type {Record<string, string>} */
const STREAMS = {
  events: 'events',
  ndjson: 'NDJSON',
  websocket: 'WebSocket',
  ws: 'WebSocket: ws',
  bun: 'WebSocket: Bun',
  uwebsockets: 'WebSocket: uWebSockets',
  poll: 'poll',
  'node-http-poll': 'poll: node:http',
};
/** @type {Record<string, string>} */
const REQUESTS = {
  answer: 'Hold, answer',
  refusal: 'Hold, 404',
  'node-http': 'node:http',
  'bun-http': 'Bun',
  'uwebsockets-http': 'uWebSockets',
};
const OURS = ['events', 'ndjson', 'websocket', 'poll', 'answer', 'refusal'];

/**
 * What one run must not exceed: `times` the same figure of another one.
 * @typedef {{ name: string, run: string, than: string, times: number }} Target
 */

/** @type {Target[]} */
const TARGETS = [
  ...OF_STREAMS.map((name) => ({ name, run: 'websocket', than: 'events', times: 1.15 })),
  ...['bun', 'uwebsockets'].map((than) => ({ name: 'memoryBytes', run: 'websocket', than, times: 1 / 3 })),
  { name: 'deliveryUs', run: 'poll', than: 'node-http-poll', times: 1 / 10 },
];

/** @type {Record<string, { title: string, axis: string, figure: string, runs: Record<string, string> }>} */
const CHARTS = {
  'memory.svg': { title: 'User memory per stream', axis: 'bytes', figure: 'memoryBytes', runs: STREAMS },
  'openings.svg': {
    title: 'CPU of the server to open a stream',
    axis: 'µs',
    figure: 'openUs',
    runs: STREAMS,
  },
  'pings.svg': { title: 'CPU of the server per ping', axis: 'µs', figure: 'pingUs', runs: STREAMS },
  'deliveries.svg': {
    title: 'CPU of the server per delivered message',
    axis: 'µs',
    figure: 'deliveryUs',
    runs: STREAMS,
  },
  'requests.svg': {
    title: 'Requests per second on one core, kept connections',
    axis: 'requests per second',
    figure: 'perSecond',
    runs: REQUESTS,
  },
};

/** @typedef {Target & { ratio: number | null, isMet: boolean }} Judged `ratio`: null if one of them is not known, or makes no sense */

/** @param {Findings} findings @returns {Judged[]} */
export function judge(findings) {
  return TARGETS.map((target) => {
    const [value, base] = [target.run, target.than].map((run) => findings.of(target.name, run)?.median ?? 0);
    // With few streams, memory and CPU get lost in noise, and may even be negative.
    const ratio = value > 0 && base > 0 ? value / base : null;
    return { ...target, ratio, isMet: ratio !== null && ratio <= target.times };
  });
}

/** @param {number} ratio @returns {string} '1.15 times', 'a tenth of' */
function shareText(ratio) {
  if (ratio === 1 / 3) return 'a third of';
  return ratio === 1 / 10 ? 'a tenth of' : `${ratio} times`;
}

/** @param {Findings} findings @returns {string} in Markdown */
export function tableText(findings) {
  return [
    tableOf(findings, STREAMS, OF_STREAMS),
    tableOf(findings, REQUESTS, OF_REQUESTS, TEXT_OF),
    targetTable(findings),
  ]
    .filter(Boolean)
    .join('\n\n');
}

/**
 * @param {Findings} findings @param {Record<string, string>} titles by run @param {string[]} names of figures
 * @param {Record<string, string>} [texts]
 */
function tableOf(findings, titles, names, texts = {}) {
  const runs = Object.keys(titles).filter((run) => findings.runs.includes(run));
  if (runs.length === 0) return '';
  const rows = names.map((name) => {
    const { text, unit } = findings.figure(name);
    return [texts[name] ?? text, ...runs.map((run) => summaryText(findings.of(name, run), unit))];
  });
  return markdownTable(['figure', ...runs.map((run) => titles[run])], rows);
}

/** @param {Findings} findings */
function targetTable(findings) {
  const rows = judge(findings).map(({ name, run, than, times, ratio, isMet }) => [
    `${findings.figure(name).text}: ${STREAMS[run]}`,
    `at most ${shareText(times)} ${STREAMS[than]}`,
    ratio === null ? 'not measured' : `${ratio.toFixed(2)} times`,
    isMet ? 'reached' : '**missed**',
  ]);
  return markdownTable(['target', 'limit', 'measured', ''], rows);
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  const missed = judge(findings).filter(({ isMet }) => !isMet);
  const list = missed.map(({ name, run, than, times, ratio }) => {
    const measured = ratio === null ? 'not measured' : `${ratio.toFixed(2)} times`;
    return `${findings.figure(name).text} of ${STREAMS[run]} (${measured}, at most ${shareText(times)} ${STREAMS[than]})`;
  });
  return [
    missed.length === 0 ? 'Every target was reached.' : `Targets missed: ${list.join('; ')}.`,
    ratesSentence(findings),
  ].filter(Boolean);
}

/** @param {Findings} findings */
function ratesSentence(findings) {
  const own = findings.of('perSecond', 'answer')?.median;
  if (own === undefined) return '';
  const parts = Object.entries(REQUESTS).flatMap(([run, title]) => {
    const value = findings.of('perSecond', run)?.median;
    return run === 'answer' || value === undefined ? [] : [`${title} ${valueText(value, '1/s')}`];
  });
  const others = parts.length > 0 ? `; ${parts.join(', ')}` : '';
  return `On one core and ${CONNECTIONS} kept connections, a Hold whose policy answers each request has answered ${valueText(own, '1/s')}${others}.`;
}

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  const drawn = Object.entries(CHARTS).flatMap(([name, chart]) => {
    const bars = barsOf(findings, chart);
    if (bars.length === 0) return [];
    const subtitle = ['medians; gray lines: smallest to largest value'];
    const spec = barSpec({ title: chart.title, subtitle, axis: chart.axis, panels: [{ title: '', bars }] });
    return [svgOf(spec).then((svg) => [name, svg])];
  });
  return Object.fromEntries(await Promise.all(drawn));
}

/** @param {Findings} findings @param {(typeof CHARTS)[string]} chart @returns {import('../bars.js').Bar[]} */
function barsOf(findings, chart) {
  const { unit } = findings.figure(chart.figure);
  return Object.entries(chart.runs).flatMap(([run, name]) => {
    const found = findings.of(chart.figure, run);
    if (!found) return [];
    const { median: value, least, most } = found;
    return [{ name, value, least, most, label: valueText(value, unit), color: OURS.includes(run) ? 1 : 0 }];
  });
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/encodings.md */
export function pageText({ plan, command, facts, notes, charts }, findings) {
  const { low, high, restMs } = sizesOf(plan);
  const more = highestOf(plan, kindOf('events'));
  const [lowText, highText, moreText] = [low, high, more].map(formatCount);
  return `# What a stream costs in each format

All servers in one run, with the same pings and messages and the same clients. Each cell shows the median, and in brackets the smallest and the
largest value. Written by \`${command}\`; every single value is in [encodings.json](encodings.json).

${facts.machine}

${tableText(findings)}

${sentencesOf(findings)
  .map((sentence) => `- ${sentence}`)
  .join('\n')}

${charts.map((path) => `![${capital(path.replace(/^.*\/|\.svg$/g, ''))}](${encodeURI(path)})`).join('\n\n')}

- Ours is \`server.js\` with two workers; requests are answered by a Hold with a policy in JS. The others are a few lines each
  ([servers](../scripts/lab/encodings/servers)), in one process. Servers and clients share the machine.
- Memory is PSS of all processes of the server: its growth from ${lowText} to ${highText} streams (of ours to ${moreText}, because they are so small), after a
  rest of ${restMs / 1000} s, in a server that has opened and closed ${lowText} before. Ours collects garbage every second, the others as they do by default. A poll counts while it waits. What the
  kernel takes for a socket comes on top of it, for all of them.
- CPU is the run time of all threads of the server, minus what it used while idle. Servers take turns. ${highText} streams open as fast as the clients can,
  and get messages of 64 bytes, each to all of them. The first climbs and messages don't count. Of a poll, a delivered message is a whole turn: the answer, and the
  next request until it waits.
- uWebSockets.js is not on npm; the PyPI package socketify contains uWebSockets, compiled, with a C interface, so a C program stands for it, without JS.
  It closes idle HTTP connections after 10 s, so these have no memory figure.
- Pings are one per second to each of ${highText} streams: a comment of events, an empty line, or a frame. Of four frames, three are pongs that
  nobody answers, and one is a ping that the client answers.
- Requests come from wrk with one thread and ${CONNECTIONS} connections, on another core than the server. Headers are alike (Content-Type, Content-Length
  or chunks, Date).
${notes.map((note) => `- ${capital(note)}\n`).join('')}`;
}
