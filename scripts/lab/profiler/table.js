/*
 * From the findings about the profiler to its tables, charts and page. Pure, except for drawing the charts.
 */
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { figure } from '../figures.js';
import { capital, markdownTable, summaryText, valueText } from '../text.js';
import { SERVERS } from './attached.js';
import { GROUPS } from './groups.js';
import { nodesIn, nsText, sentencesOf, textIn } from './sentences.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('../bars.js').Bar} Bar */

const NOISE = 'noisePercent';
/** Less than this counts as nothing. */
const NOTHING_NS = 0.5;

export const FIGURES = [
  ...GROUPS.flatMap(({ cases }) => cases).map(({ name, text }) => figure(name, `${text}, ns`, 'count')),
  figure('floorNs', 'the empty loop, which is subtracted, ns', 'count'),
  figure(NOISE, 'distance between the quartiles of a case, median of all cases', '%'),
  figure('openUs', 'CPU to open a stream of the hub', 'µs'),
];

/** At most so much. The first is what the original microprofiler wanted. */
const TARGETS = [
  { name: 'measureAll', most: 1000, text: 'at most 1 µs' },
  { name: 'measureOff', most: NOTHING_NS, text: 'nothing' },
];
/** How much more CPU a server may need while one call in 16 is measured. */
const MOST_SHARE = 1.05;

/** @param {Findings} findings @returns {string} the targets in Markdown */
export function targetsText(findings) {
  const rows = TARGETS.flatMap(({ name, most, text }) =>
    nodesIn(findings).flatMap(({ run, title }) => {
      const found = findings.of(name, run);
      return found
        ? [[textIn(findings, name), title, nsText(found), `${text}: ${verdict(found.median <= most)}`]]
        : [];
    }),
  );
  return markdownTable(['figure', 'run', 'measured', 'to reach'], [...rows, ...serverRow(findings)]);
}

/** @param {Findings} findings @returns {string[][]} */
function serverRow(findings) {
  const [off, sampled] = ['server-off', 'server-16'].map((run) => findings.of('openUs', run));
  if (!off || !sampled) return [];
  const ratio = sampled.median / off.median;
  const isClear = ratio <= MOST_SHARE || sampled.least > off.most;
  const result = isClear ? verdict(ratio <= MOST_SHARE) : 'not clear, the values overlap';
  const text = `${valueText(sampled.median, 'µs')}, ${ratio.toFixed(2)} x without`;
  return [['CPU to open a stream', 'server-16', text, `at most ${MOST_SHARE} x: ${result}`]];
}

/** @param {boolean} isMet */
function verdict(isMet) {
  return isMet ? 'reached' : '**missed**';
}

/** @param {Findings} findings @returns {string} a table for each group */
function groupsText(findings) {
  const nodes = nodesIn(findings);
  const head = ['', ...nodes.map(({ title }) => title)];
  const tables = GROUPS.map(({ title, cases }) => {
    const rows = cases.map(({ name, text }) => [
      text.replaceAll('|', '\\|'),
      ...nodes.map(({ run }) => cellText(findings, name, run)),
    ]);
    return `### ${title}\n\n${markdownTable(head, rows)}`;
  });
  return tables.join('\n\n');
}

/** @param {Findings} findings @param {string} name @param {string} run */
function cellText(findings, name, run) {
  const found = findings.of(name, run);
  if (!found) return '-';
  if (found.median < NOTHING_NS) return `< ${NOTHING_NS} ns`;
  if (found.count === 1) return nsText(found);
  const range = [found.least, found.most].map((median) => nsText({ median: Math.max(median, NOTHING_NS) }));
  return `${nsText(found)} (${range.join(' to ')})`;
}

/** @type {Record<string, { title: string, groups: string[] }>} */
const CHARTS = {
  'measuring.svg': { title: 'What measuring costs', groups: ['Reading a clock', 'Measuring'] },
  'answers.svg': {
    title: 'Buffers against strings: an answer as bytes',
    groups: ['Putting an answer together'],
  },
  'sockets.svg': {
    title: 'Concatenation against separate writes',
    groups: ['Writing an answer to a socket, with its request'],
  },
};

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  if (nodesIn(findings).length === 0) return {};
  const drawn = Object.entries(CHARTS).map(async ([name, chart]) => [
    name,
    await svgOf(specOf(findings, chart)),
  ]);
  return Object.fromEntries(await Promise.all(drawn));
}

/** @param {Findings} findings @param {{ title: string, groups: string[] }} chart @returns {import('../bars.js').Spec} */
export function specOf(findings, { title, groups }) {
  const cases = GROUPS.filter((group) => groups.includes(group.title)).flatMap((group) => group.cases);
  const panels = nodesIn(findings).map(({ run, title: node }, color) => ({
    title: node,
    bars: cases.flatMap((one) => barOf(findings, one, run, color)),
  }));
  return barSpec({ title, subtitle: ['medians; gray lines: smallest to largest value'], axis: 'ns', panels });
}

/** @param {Findings} findings @param {{ name: string, text: string }} one @param {string} run @param {number} color @returns {Bar[]} */
function barOf(findings, { name, text }, run, color) {
  const found = findings.of(name, run);
  if (!found) return [];
  const [value, least, most] = [found.median, found.least, found.most].map((ns) => Math.max(0, ns));
  const label = value < NOTHING_NS ? 'nothing' : nsText(found);
  return [{ name: text, value, least, most, label, color }];
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/profiler.md */
export function pageText({ question, command, facts, plan, runs, notes, charts }, findings) {
  return `# What measuring costs, and what it finds

${question} ${cellsText(plan)} Written by
\`${command}\`; every single value is in [profiler.json](profiler.json).

${facts.machine}

${targetsText(findings)}

${sentencesOf(findings)
  .map((sentence) => `- ${sentence}`)
  .join('\n')}

${charts.map((path) => `![${CHARTS[path.split('/').at(-1) ?? '']?.title ?? path}](${encodeURI(path)})`).join('\n\n')}

## The profiler in a server

${serverText(findings)}

## All cases

${groupsText(findings)}

## Method

${runs.map(({ name, text }) => `- **${name}**: ${text}`).join('\n')}
${methodText(findings)}
${notes.map((note) => `- ${capital(note)}.\n`).join('')}`;
}

/** @param {import('../plan.js').Plan} plan */
function cellsText({ repeats }) {
  if (repeats === 1) return 'Each cell shows the value of one process.';
  return `Each cell shows the median of ${repeats} processes, and in brackets the smallest and the largest value.`;
}

/** @param {Findings} findings */
function serverText(findings) {
  const rows = Object.keys(SERVERS).flatMap((run) => {
    const found = findings.of('openUs', run);
    return found ? [[run, summaryText(found, 'µs')]] : [];
  });
  return rows.length > 0 ? markdownTable(['run', 'CPU to open a stream'], rows) : 'It could not run here.';
}

/** @param {Findings} findings */
function methodText(findings) {
  const floors = nodesIn(findings).map(
    ({ run, title }) => `${title} ${nsText(findings.of('floorNs', run) ?? { median: 0 })}`,
  );
  const noise = nodesIn(findings).map(
    ({ run, title }) => `${title} ${summaryText(findings.of(NOISE, run), '%')}`,
  );
  return `- A case is a loop that is compiled for it alone. It works on sixteen inputs in turn, and what it returns is checked, so that V8 can
  neither compute anything only once nor leave it out.
- Each case is warmed up for at least 25 ms, then all cases take turns of about 4 ms. The median of 11 turns is the value of a process.
- The empty loop is subtracted: ${floors.join(', ')}. What is below ${NOTHING_NS} ns can't be told from it.
- The noise within a process, as the distance between the quartiles: ${noise.join(', ')}.
- Numbers in strings that were parsed before cost less, because V8 keeps the number with the string.
- An answer on a socket includes its request and the work of both ends, which are in one process.`;
}
