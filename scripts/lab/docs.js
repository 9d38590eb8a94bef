/*
 * Writes docs/experiments.md from the newest complete report of each experiment. The reports are kept beside it as JSON, so that
 * one experiment can be run again without the others. Sections whose report is not known any more stay as they are.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { interpret } from './execute.js';
import { experimentNames, findExperiment } from './experiment.js';
import { Findings } from './findings.js';
import { tableOf } from './report.js';
import { capital } from './text.js';

/** @typedef {import('./report.js').Report} Report */

/** @param {string} folder that contains the folders of experiments @returns {Report[]} the complete ones */
export function readReports(folder) {
  let names = [];
  try {
    names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  } catch (error) {
    throw new HoldfastError(
      'NO_REPORTS',
      `can't read ${folder}: ${messageOf(error)}; set --out to the folder with the reports`,
    );
  }
  return names
    .flatMap(({ name }) => readJson(join(folder, name, 'report.json')))
    .filter(({ end }) => end === 'whole');
}

/** @param {string} path @returns {any[]} its content; empty when it can't be read */
function readJson(path) {
  try {
    return [JSON.parse(readFileSync(path, 'utf8'))];
  } catch {
    return [];
  }
}

/** @param {Report[]} reports @returns {Report[]} the newest of each experiment, by name */
export function newest(reports) {
  const byName = new Map();
  for (const report of reports) {
    const known = byName.get(report.name);
    if (!known || known.startedAt < report.startedAt) byName.set(report.name, report);
  }
  return [...byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** @param {Report[]} reports @param {Map<string, string>} [others] sections of other experiments, by name @returns {string} */
export function docsText(reports, others = new Map()) {
  const own = new Map(reports.map((report) => [report.name, sectionText(report)]));
  const sections = [...new Map([...others, ...own])].sort(([one], [other]) => (one < other ? -1 : 1));
  return `# Experiments

Written by \`node scripts/experiment.js docs\` from the newest complete run of each experiment; \`node scripts/experiment.js NAME\` repeats one.
Figures are medians of the trials, with the smallest and the largest value in brackets. With 15,000 streams, what a process
needs anyway is a larger part of the memory per stream than with [a million](million.md).

${sections.map(([, section]) => section).join('\n\n')}
`;
}

/** @param {string} text of docs/experiments.md @returns {Map<string, string>} its sections by name */
export function sectionsOf(text) {
  const sections = text.split(/^(?=## )/m).slice(1);
  return new Map(sections.map((section) => [section.slice(3, section.indexOf('\n')), section.trim()]));
}

/** @param {Report} report */
function sectionText({
  name,
  question,
  command,
  plan,
  facts,
  runs,
  figures,
  outcomes,
  sentences,
  notes,
  startedAt,
}) {
  const names = runs.map((run) => run.name);
  const repeats = plan.repeats === 1 ? 'one trial' : `${plan.repeats} trials in turn`;
  const size = `${formatCount(plan.streams)} streams held for ${formatCount(plan.holdS)} s, ${repeats} of each run`;
  const parts = [
    `## ${name}`,
    question,
    sentences.map((sentence) => `- ${sentence}`).join('\n'),
    outcomes.length > 0 ? tableOf(new Findings(figures, names, outcomes)) : 'It could not run here.',
    `\`${command}\`: ${size}, ${startedAt.slice(0, 10)}; ${facts.machine}.${notes.map((note) => ` ${capital(note)}.`).join('')}`,
  ];
  return parts.filter(Boolean).join('\n\n');
}

/**
 * @param {string} folder with the reports of experiments @param {string} file
 * @returns {Promise<Report[]>} what it is made of
 * @throws {HoldfastError} NO_REPORTS
 */
export async function writeDocs(folder, file) {
  const jsonFile = file.replace(/(\.md)?$/, '.json');
  const kept = readJson(jsonFile).flat();
  const reports = newest([...kept, ...readReports(folder)]);
  if (reports.length === 0)
    throw new HoldfastError(
      'NO_REPORTS',
      `there is no complete report in ${folder}: run an experiment first, or set --out`,
    );
  const own = [];
  for (const report of reports) if (await refresh(report)) own.push(report);
  const others = existsSync(file) ? sectionsOf(readFileSync(file, 'utf8')) : new Map();
  for (const { name } of reports) others.delete(name);
  writeFileSync(file, docsText(own, others));
  writeFileSync(jsonFile, `${JSON.stringify(own, null, 1)}\n`);
  return own;
}

/** Puts a report into today's words. @param {Report} report @returns {Promise<boolean>} false when it has its own page */
async function refresh(report) {
  if (!experimentNames().includes(report.name)) return true;
  const experiment = await findExperiment(report.name);
  if (experiment.hasOwnPage) return false;
  report.question = experiment.question;
  report.figures = experiment.figures.map(({ name, text, unit }) => ({ name, text, unit }));
  interpret(experiment, report);
  return true;
}
