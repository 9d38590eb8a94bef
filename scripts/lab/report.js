/*
 * From what was found to the report in Markdown. Pure.
 */
import { formatCount } from '../../lib/format.js';
import { factsText } from './facts.js';
import { Findings } from './findings.js';
import { capital, markdownTable, summaryText } from './text.js';

/**
 * @typedef {object} Report the content of report.json
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
 * @property {string} [comparison] a table: the findings beside targets or other findings
 * @property {string[]} notes
 * @property {string[]} charts
 * @property {'whole' | 'interrupted' | 'failed'} end
 * @property {string} problem if it failed
 *
 * @typedef {Required<Pick<import('./experiment.js').Run, 'name' | 'text' | 'args' | 'nodeFlags' | 'sysctls'>>} RunOfReport
 */

/** @param {Report} report @returns {string} */
export function reportText(report) {
  const parts = [
    `# Experiment: ${report.name}`,
    report.question,
    endText(report),
    '## Method',
    methodText(report),
    '## Results',
    resultsText(report),
    comparisonText(report),
    chartsText(report),
    '## Reliability',
    reliabilityText(report),
    '## The machine',
    factsText(report.facts),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

/** @param {Report} report */
function endText({ end, problem, outcomes }) {
  const kept =
    outcomes.length > 0 ? 'the figures are from the trials that had finished' : 'no trial had finished';
  if (end === 'interrupted') return `**Ended early: ${kept}.**`;
  return end === 'failed' ? `**Failed: ${problem}; ${kept}.**` : '';
}

/** @param {Report} report */
function methodText({ command, plan, how, steps, runs, order, notes, startedAt }) {
  const size = `${formatCount(plan.streams)} streams, held for ${formatCount(plan.holdS)} s, ${formatCount(plan.ramp)} opened per second`;
  const lines = [
    `\`${command}\`, started ${startedAt.slice(0, 16).replace('T', ' ')} UTC: ${size}.`,
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
  const words = [...nodeFlags, ...args].map((word) => (/\s/.test(word) ? `'${word}'` : word));
  const settings = Object.entries(sysctls).map(([key, value]) => `\`${key} = ${value}\``);
  const parts = [text, words.length > 0 ? `\`${words.join(' ')}\`` : '', ...settings].filter(Boolean);
  return `- **${name}**${parts.length > 0 ? `: ${parts.join('; ')}` : ''}`;
}

/** @param {Report} report */
function resultsText({ figures, runs, outcomes, sentences, end }) {
  if (outcomes.length === 0)
    return end === 'whole' ? 'None: no part of it can run here, for the reasons above.' : 'None yet.';
  const names = runs.map(({ name }) => name);
  const findings = new Findings(figures, names, outcomes);
  const said = sentences.map((sentence) => `- ${sentence}`).join('\n');
  return [tableOf(findings), said].filter(Boolean).join('\n\n');
}

/**
 * A row per figure and a column per run; the other way round if there are many runs.
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
  return markdownTable(head, rows);
}

/** @param {Report} report */
function comparisonText({ comparison }) {
  return comparison ? `## Comparison\n\n${comparison}` : '';
}

/** @param {Report} report */
function chartsText({ charts }) {
  return charts.map((name) => `![${name.replace(/\.svg$/, '')}](${encodeURI(name)})`).join('\n\n');
}

/** @param {Report} report */
function reliabilityText({ plan, outcomes, runs }) {
  const { repeats } = plan;
  const counts = runs.map(({ name }) => outcomes.filter(({ run }) => run === name).length);
  const least = counts.length > 0 ? Math.min(...counts) : 0;
  const planned =
    repeats === 1
      ? 'One trial of each run was planned'
      : `${repeats} trials of each run were planned, in turn`;
  const finished =
    least < repeats ? `; ${least === 0 ? 'some runs finished none' : `some finished only ${least}`}` : '';
  const spread =
    least > 1
      ? 'Figures are medians, with the smallest and the largest value in brackets. If the ranges of two runs overlap, the difference is called within the spread.'
      : 'One trial shows no spread, so a difference may be chance; `--repeats 3` shows more.';
  return `${planned}${finished}. ${spread} Server and clients shared the machine: CPU that the clients use is not available to the server.`;
}
