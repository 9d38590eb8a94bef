/*
 * From what was found to the report in Markdown. Pure.
 */
import { formatCount } from '../../lib/format.js';
import { factsText } from './facts.js';
import { Findings } from './findings.js';
import { capital, summaryText } from './words.js';

/**
 * @typedef {object} Report as report.json has it
 * @property {string} name
 * @property {string} question
 * @property {string} command
 * @property {string} startedAt
 * @property {import('./facts.js').Facts} facts
 * @property {import('./plan.js').Plan} plan
 * @property {string[]} how
 * @property {{ name: string, text: string }[]} steps
 * @property {RunOfReport[]} runs
 * @property {string[]} order of the trials
 * @property {{ name: string, text: string, unit: import('./experiment.js').Figure['unit'] }[]} figures
 * @property {import('./findings.js').Outcome[]} outcomes
 * @property {string[]} sentences
 * @property {string} [beside] a table: what was found beside what others found
 * @property {string[]} notes
 * @property {string[]} charts
 * @property {'whole' | 'interrupted' | 'failed'} end
 * @property {string} problem where it failed
 *
 * @typedef {Required<Pick<import('./experiment.js').Run, 'name' | 'text' | 'args' | 'nodeFlags' | 'sysctls'>>} RunOfReport
 */

/** @param {Report} report @returns {string} */
export function reportText(report) {
  const parts = [
    `# Experiment: ${report.name}`,
    report.question,
    endText(report),
    '## What was done',
    doneText(report),
    '## What was found',
    foundText(report),
    besideText(report),
    chartsText(report),
    '## How sure it is',
    sureText(report),
    '## The machine',
    factsText(report.facts),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

/** @param {Report} report */
function endText({ end, problem, outcomes }) {
  const kept =
    outcomes.length > 0 ? 'the figures are those of the trials that were over' : 'no trial was over';
  if (end === 'interrupted') return `**It was ended early: ${kept}.**`;
  return end === 'failed' ? `**It failed: ${problem}; ${kept}.**` : '';
}

/** @param {Report} report */
function doneText({ command, plan, how, steps, runs, order, notes, startedAt }) {
  const size = `${formatCount(plan.streams)} streams, held for ${formatCount(plan.holdS)} s, ${formatCount(plan.ramp)} opened a second`;
  const lines = [
    `\`${command}\`, begun ${startedAt.slice(0, 16).replace('T', ' ')} UTC: ${size}.`,
    ...(how.length > 0 ? ['', how.join(' ')] : []),
    ...(steps.length > 0 ? ['', ...steps.map(({ name, text }, i) => `${i + 1}. ${name}: ${text}`)] : []),
    '',
    ...runs.map(runLine),
    ...(order.length > 0 ? ['', `Order of the trials: ${order.join(', ')}.`] : []),
    ...notes.map((note) => `\n${capital(note)}.`),
  ];
  return lines.join('\n');
}

/** @param {Report['runs'][number]} run */
function runLine({ name, text, args, nodeFlags, sysctls }) {
  const words = [...nodeFlags, ...args];
  const settings = Object.entries(sysctls).map(([key, value]) => `\`${key} = ${value}\``);
  const parts = [text, words.length > 0 ? `\`${words.join(' ')}\`` : '', ...settings].filter(Boolean);
  return `- **${name}**${parts.length > 0 ? `: ${parts.join('; ')}` : ''}`;
}

/** @param {Report} report */
function foundText({ figures, runs, outcomes, sentences, end }) {
  if (outcomes.length === 0)
    return end === 'whole' ? 'Nothing: none of it can be run here, as said above.' : 'Nothing yet.';
  const names = runs.map(({ name }) => name);
  const findings = new Findings(figures, names, outcomes);
  const said = sentences.map((sentence) => `- ${sentence}`).join('\n');
  return [tableOf(findings), said].filter(Boolean).join('\n\n');
}

/**
 * Figures down, runs across; the other way round where there are many runs.
 * @param {Findings} findings @returns {string}
 */
export function tableOf(findings) {
  const { runs } = findings;
  const figures = findings.figures.filter(({ name }) => runs.some((run) => findings.of(name, run)));
  const cell = (/** @type {string} */ figure, /** @type {string} */ run) =>
    summaryText(findings.of(figure, run), findings.figure(figure).unit);
  const isWide = runs.length > 4 && runs.length > figures.length;
  const rows = isWide
    ? runs.map((run) => [run, ...figures.map(({ name }) => cell(name, run))])
    : figures.map(({ name, text }) => [text, ...runs.map((run) => cell(name, run))]);
  const head = isWide ? ['run', ...figures.map(({ text }) => text)] : ['figure', ...runs];
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** @param {Report} report */
function besideText({ beside }) {
  return beside ? `## Beside others\n\n${beside}` : '';
}

/** @param {Report} report */
function chartsText({ charts }) {
  return charts.map((name) => `![${name.replace(/\.svg$/, '')}](${encodeURI(name)})`).join('\n\n');
}

/** @param {Report} report */
function sureText({ plan, outcomes, runs }) {
  const { repeats } = plan;
  const counts = runs.map(({ name }) => outcomes.filter(({ run }) => run === name).length);
  const least = counts.length > 0 ? Math.min(...counts) : 0;
  const planned =
    repeats === 1
      ? 'One trial of each run was planned'
      : `${repeats} trials of each run were planned, in turn`;
  const over =
    least < repeats ? `; ${least === 0 ? 'of some none' : `of some only ${least}`} came to its end` : '';
  const spread =
    least > 1
      ? 'Figures are medians of the trials, and in brackets the least and the most. Where those of two runs overlap, the difference is called within the spread.'
      : 'With one trial there is no spread: a difference may be chance, and `--repeats 3` tells more.';
  return `${planned}${over}. ${spread} Server and clients shared the machine: a client takes CPU that the server can't have.`;
}
