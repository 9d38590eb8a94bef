/*
 * From the findings about takeovers to the table, the chart and the page. Pure, except for drawing the chart.
 */
import { formatCount } from '../../../lib/format.js';
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { figure } from '../figures.js';
import { capital, markdownTable, summaryText, valueText } from '../text.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('../bars.js').Bar} Bar */

export const FIGURES = [
  figure('movedPerSecond', 'streams moved per second', '1/s'),
  figure('movedMs', 'until all streams have moved, without starting the new server', 'ms'),
  figure('pauseMs', 'longest time from publishing to the client during a takeover', 'ms'),
  figure('usualMs', 'the same without a takeover', 'ms'),
  figure('latenessMs', 'latest ping during a takeover', 'ms'),
  figure('usualLatenessMs', 'the same without a takeover', 'ms'),
  figure('tookMs', 'from the command until the old server is gone', 'ms'),
  figure('descriptors', 'descriptors of a generation', 'count'),
  figure('memoryBytes', 'resident memory of a generation', 'bytes'),
  figure('faults', 'streams closed; publications lost, repeated or out of order', 'count'),
];

const CHART = 'pauses.svg';
/** What is shown for each number of streams. @type {{ name: string, text: string }[]} */
const BARS = [
  { name: 'movedMs', text: 'all streams have moved' },
  { name: 'pauseMs', text: 'longest wait for a publication' },
  { name: 'latenessMs', text: 'latest ping' },
];

/** @param {Findings} findings @returns {string} in Markdown */
export function tableText(findings) {
  const rows = findings.figures.map(({ name, text, unit }) => [
    text,
    ...findings.runs.map((run) => summaryText(findings.of(name, run), unit)),
  ]);
  return markdownTable(['figure', ...findings.runs.map(titleOf)], rows);
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  return findings.runs.flatMap((run) => {
    const [rate, pause] = ['movedPerSecond', 'pauseMs'].map((name) => findings.of(name, run));
    const faults = findings.of('faults', run);
    if (!pause || !faults) return [];
    const moved = rate ? `${valueText(rate.median, '1/s').replace('/s', '')} per second moved, and ` : '';
    return [
      `${titleOf(run)}: ${moved}no client waited longer than ${valueText(pause.most, 'ms')}; ${formatCount(faults.most)} faults in ${pause.count} takeovers.`,
    ];
  });
}

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  const panels = findings.runs.map((run, color) => ({
    title: titleOf(run),
    bars: BARS.flatMap((bar) => barOf(findings, bar, run, color)),
  }));
  if (panels.every(({ bars }) => bars.length === 0)) return {};
  const subtitle = ['medians of all takeovers; gray lines: smallest to largest value'];
  return { [CHART]: await svgOf(barSpec({ title: 'What a takeover takes', subtitle, axis: 'ms', panels })) };
}

/** @param {Findings} findings @param {{ name: string, text: string }} row @param {string} run @param {number} color @returns {Bar[]} */
function barOf(findings, { name, text }, run, color) {
  const found = findings.of(name, run);
  if (!found) return [];
  const { median: value, least, most } = found;
  return [{ name: text, value, least, most, label: valueText(value, 'ms'), color }];
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/handover.md */
export function pageText({ command, facts, notes, charts }, findings) {
  return `# Taking over live streams

A new server (\`node server.js --takeover\`) takes over all streams of the running one, while 1,000 publications per second go on. Each cell
shows the median of all takeovers, and in brackets the smallest and the largest value. Written by \`${command}\`; every single value is in
[handover.json](handover.json).

${facts.machine}

${tableText(findings)}

${charts.map((path) => `![What a takeover takes](${encodeURI(path)})`).join('\n\n')}

- Each server is \`server.js\` with two workers. Servers, publishers and clients share the machine. Every stream is one of the hub, with its
  own topic; the native core of the fleet checks that each publication arrives once and in order, and that no stream is closed. If not, there is no
  report.
- Publishers use HTTP connections that stay open. Those end with the old server: what was not answered is published again with
  the same id, on a new connection to the new server. The longest wait includes that.
- Descriptors are those in all tables of all processes; memory is their resident memory. Both are read when the old server is gone, so they
  would grow from takeover to takeover if something leaked: compare the smallest value with the largest. (Memory grows at first, as the
  history of 10,000 publications fills up.)
- nginx, for comparison, starts new workers on \`reload\` that accept new connections, while the old ones keep the streams that they have until these
  end by themselves, or until \`worker_shutdown_timeout\` closes them. Old workers and old configurations live on for as long
  as the longest stream. That is described here, not measured.
${notes.map((note) => `- ${capital(note)}.\n`).join('')}`;
}

/** @param {string} run */
function titleOf(run) {
  return `${formatCount(Number(run))} streams`;
}
