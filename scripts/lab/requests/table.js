/*
 * From the findings about requests to the tables, the charts and the page. Pure, except for drawing the charts.
 */
import { formatCount } from '../../../lib/format.js';
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { figure } from '../figures.js';
import { capital, markdownTable, summaryText, valueText } from '../text.js';
import { isClientLimited, partsOf, runOf, sentencesOf, subjectsIn } from './sentences.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./start.js').Mode} Mode */

export const FIGURES = [
  figure('perSecond', 'requests per second', '1/s'),
  figure('cpuUs', 'CPU of the server per request', 'µs'),
  figure('avgMs', 'latency, average', 'ms'),
  figure('p50Ms', 'latency, p50', 'ms'),
  figure('p99Ms', 'latency, p99', 'ms'),
  figure('maxMs', 'latency, max', 'ms'),
  figure('aloneUs', 'latency of one connection, p50', 'µs'),
  figure('memoryBytes', 'memory of the server after the load (PSS)', 'bytes'),
  figure('serverPercent', 'CPU of the server', '%'),
  figure('clientPercent', 'CPU of wrk', '%'),
  figure('waiting', 'connections not accepted after a fifth of the time', 'count'),
  figure('errors', 'errors that wrk reported', 'count'),
];

/** @type {Record<Mode, string>} */
export const MODES = {
  one: 'one instance, pinned to a core; wrk on another core',
  cores: 'one instance per core; wrk shares the cores',
};

/** Those with a range; of the others the median says enough. */
const WITH_RANGE = ['perSecond', 'cpuUs'];
/** Problems: a column of zeros says nothing. */
const ONLY_IF_ANY = ['waiting', 'errors'];

/**
 * Requests per second in the original comparison: https://github.com/ishtms/learn-nodejs-hard-way, chapter 0. Express 4.18.2, Velocy
 * 0.0.12, Elysia on Bun 0.8.1 and axum 0.6.20 on an M1 Max; `cores` with two workers.
 * @type {Record<string, number>}
 */
const ORIGINAL = {
  'express-one': 28_923.88,
  'velocy-one': 83_689.19,
  'elysia-one': 149_047.56,
  'axum-one': 208_938.22,
  'express-cores': 50_275.21,
  'velocy-cores': 138_956.6,
};
const ORIGINAL_BASE = 'axum-one';

/** What is drawn. @type {Record<string, { title: string, figure: string, axis: string }>} */
const CHARTS = {
  'requests.svg': { title: 'Requests per second', figure: 'perSecond', axis: 'requests per second' },
  'cpu.svg': { title: 'CPU of the server per request', figure: 'cpuUs', axis: 'µs per request' },
  'p99.svg': { title: 'Latency, p99', figure: 'p99Ms', axis: 'ms' },
};

/** Colors of bars.js: Node, with a Hold, Bun, Rust. @type {Record<string, number>} */
const COLORS = { hold: 1, 'hold-pass': 1, elysia: 2, axum: 3, hyper: 3 };

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  const drawn = Object.entries(CHARTS).map(async ([name, chart]) => [
    name,
    await svgOf(specOf(findings, chart)),
  ]);
  return Object.fromEntries(await Promise.all(drawn));
}

/** @param {Findings} findings @param {(typeof CHARTS)[string]} chart @returns {import('../bars.js').Spec} */
export function specOf(findings, { title, figure: name, axis }) {
  const panels = modesIn(findings).map((mode) => ({
    title: MODES[mode],
    bars: barsOf(findings, name, mode),
  }));
  const isMarked = findings.runs.some((run) => markOf(findings, name, run) !== '');
  const subtitle = [
    'blue: Node; orange: with a Hold; violet: Bun; green: Rust',
    `medians; gray lines: smallest to largest value${isMarked ? '; *: wrk was the limit' : ''}`,
  ];
  return barSpec({ title, subtitle, axis, panels });
}

/** @param {Findings} findings @param {string} name @param {Mode} mode @returns {import('../bars.js').Bar[]} */
function barsOf(findings, name, mode) {
  const { unit } = findings.figure(name);
  return subjectsIn(findings).flatMap((subject) => {
    const run = runOf(subject, mode);
    const summary = findings.of(name, run);
    if (!summary) return [];
    const { median: value, least, most } = summary;
    const label = `${valueText(value, unit)}${markOf(findings, name, run)}`;
    return [{ name: subject, value, least, most, label, color: COLORS[subject] ?? 0 }];
  });
}

/** @param {Findings} findings @param {string} name @param {string} run @returns {string} '*' where the figure is the client's */
function markOf(findings, name, run) {
  return name !== 'cpuUs' && isClientLimited(findings, run) ? ' *' : '';
}

/** @param {Findings} findings @returns {Mode[]} */
function modesIn(findings) {
  const modes = findings.runs.map((run) => partsOf(run).mode);
  return /** @type {Mode[]} */ (Object.keys(MODES)).filter((mode) => modes.includes(mode));
}

/** @param {Findings} findings @param {Mode} mode @returns {string} a row per server */
export function modeTable(findings, mode) {
  const runs = findings.runs.filter((run) => partsOf(run).mode === mode);
  const figures = FIGURES.filter(({ name }) =>
    runs.some((run) => (ONLY_IF_ANY.includes(name) ? findings.of(name, run)?.most : findings.of(name, run))),
  );
  const cell = (/** @type {string} */ run, /** @type {string} */ name) => {
    const { unit } = findings.figure(name);
    const summary = findings.of(name, run);
    const text =
      WITH_RANGE.includes(name) || !summary ? summaryText(summary, unit) : valueText(summary.median, unit);
    return name === 'perSecond' ? text + markOf(findings, name, run) : text;
  };
  const rows = runs.map((run) => [partsOf(run).subject, ...figures.map(({ name }) => cell(run, name))]);
  return markdownTable(['server', ...figures.map(({ text }) => text)], rows);
}

/** @param {Findings} findings @returns {string} requests per second relative to axum, here and in the original; '' without axum */
export function originalTable(findings) {
  const base = findings.of('perSecond', ORIGINAL_BASE)?.median;
  if (!base) return '';
  const rows = Object.entries(ORIGINAL).flatMap(([run, original]) => {
    const own = findings.of('perSecond', run)?.median;
    if (!own) return [];
    const share = (/** @type {number} */ value, /** @type {number} */ of) =>
      `${((100 * value) / of).toFixed(0)} %`;
    const isMarked = [run, ORIGINAL_BASE].some((one) => isClientLimited(findings, one));
    const mark = isMarked ? ' *' : '';
    return [
      [run, share(own, base) + mark, share(original, ORIGINAL[ORIGINAL_BASE]), `${formatCount(original)}/s`],
    ];
  });
  return markdownTable(
    ['run', `share of ${ORIGINAL_BASE} here`, 'share in the original', 'requests per second in the original'],
    rows,
  );
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/requests.md */
export function pageText(report, findings) {
  const { plan, facts, command, notes, runs, charts, question } = report;
  const isLimited = findings.runs.some((run) => isClientLimited(findings, run));
  const mark = isLimited ? '\n\\* wrk was the limit, not the server.\n' : '';
  const json = charts[0]?.split('/')[0] ?? 'requests';
  const tables = modesIn(findings).map(
    (mode) => `${capital(MODES[mode])}:\n\n${modeTable(findings, mode)}\n`,
  );
  return `# How fast is Node with requests

${question} \`GET /bench/:name?id=10\` is answered with the name and the id as JSON. Written by \`${command}\`;
every single value is in [${json}.json](${json}.json).

${facts.machine}

${sentencesOf(findings)
  .map((sentence) => `- ${sentence}`)
  .join('\n')}

${tables.join('\n')}${mark}
${charts.map((path) => `![${titleOf(path)}](${encodeURI(path)})`).join('\n\n')}

The servers:

${serversText(runs)}

${originalText(findings)}## Method

${methodText(plan)}
${notes.map((note) => `- ${capital(note)}.\n`).join('')}`;
}

/** @param {string} path of a chart */
function titleOf(path) {
  return CHARTS[path.split('/').at(-1) ?? '']?.title ?? path;
}

/** @param {import('../report.js').Report['runs']} runs */
function serversText(runs) {
  const texts = new Map(runs.map(({ name, text }) => [partsOf(name).subject, text.split(';')[0]]));
  return [...texts].map(([subject, text]) => `- **${subject}**: ${text}`).join('\n');
}

/** @param {Findings} findings */
function originalText(findings) {
  const table = originalTable(findings);
  if (!table) return '';
  const mark = isClientLimited(findings, ORIGINAL_BASE)
    ? `\n\\* wrk was the limit with ${ORIGINAL_BASE}, so the shares of the others are smaller than they look.\n`
    : '';
  return `## Compared with the original

The [original](https://github.com/ishtms/learn-nodejs-hard-way) (chapter 0) used older versions on an M1 Max, and wrk on the same machine. Only the shares
can be compared.

${table}
${mark}
`;
}

/** @param {import('../plan.js').Plan} plan */
function methodText({ streams, holdS, repeats }) {
  return `- \`wrk -t1 -c${streams} -d${holdS}s --latency\`, as in the original, with keep-alive. Each server is started for each measurement, has a
  warm-up, and takes turns with the others; ${repeats} ${repeats === 1 ? 'repeat' : 'repeats'}. Figures are medians, with the smallest and the largest value in brackets.
- wrk is the client of the original: one thread in C, which reports errors and whose CPU is measured here. ${formatCount(streams)} requests are always under way,
  so latency is mostly their number divided by the requests per second. wrk's latency is not corrected for
  coordinated omission: a server that pauses gets no requests meanwhile, so few of them are slow.
- Before and after each measurement, four answers are compared byte by byte: with an id, without, percent-encoded, and random. Status,
  headers (their order and the case of their names are free) and body have to be the same: \`x-powered-by\`, \`content-type\`, \`content-length\`,
  \`date\`, \`connection: keep-alive\` and \`keep-alive: timeout=5\` (a Hold leaves out the last two, because HTTP/1.1 keeps connections anyway), as in the original, except for the charset in the content type, which Express and
  Fastify add to JSON. Then the bytes that wrk read have to be those of as many answers, and any status but 2xx and 3xx is a failure.
- A Hold whose policy answers (hold) and one that passes requests on (hold-pass) are next to node:http (http), which is there a second time with a
  connection for each request (http-close). wrk's latency starts when the connection is open.
- One instance: server and wrk each have a core (\`taskset\`), and Rust has one thread. One per core: as many workers of node:cluster (also for Hold and
  for Bun) or threads in Rust as there are cores, without \`taskset\`. wrk takes its share of them, so CPU per request is the figure to trust there.
- CPU is the run time of all threads of all processes of the server, divided by the requests that wrk counted. % are of one core, in the
  middle of the measurement. The client counts as the limit when wrk needs 90 % of a core and the server, if it has a core of its own,
  less than 90 % of that.`;
}
