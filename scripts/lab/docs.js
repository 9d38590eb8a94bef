/*
 * docs/experiments.md, from the newest whole report of each experiment. `docsText` is pure.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { Findings } from './findings.js';
import { tableOf } from './report.js';
import { capital } from './words.js';

/** @typedef {import('./report.js').Report} Report */

/** @param {string} folder of the folders of experiments @returns {Report[]} those that came to their end */
export function readReports(folder) {
  let names = [];
  try {
    names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  } catch (error) {
    throw new HoldfastError(
      'NO_REPORTS',
      `can't read ${folder}: ${messageOf(error)}; --out says where reports are`,
    );
  }
  return names
    .flatMap(({ name }) => readReport(join(folder, name, 'report.json')))
    .filter(({ end }) => end === 'whole');
}

/** @param {string} path @returns {Report[]} none where there is none */
function readReport(path) {
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

/** @param {Report[]} reports @returns {string} */
export function docsText(reports) {
  const sections = reports.map(sectionText);
  return `# Experiments

Written by \`node scripts/experiment.js docs\` from the newest whole run of each; \`node scripts/experiment.js NAME\` repeats one. Figures
are medians of the trials, and in brackets the least and the most.

${sections.join('\n\n')}
`;
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
    outcomes.length > 0 ? tableOf(new Findings(figures, names, outcomes)) : 'It could not be run here.',
    `\`${command}\`: ${size}, ${startedAt.slice(0, 10)}; ${facts.machine}.${notes.map((note) => ` ${capital(note)}.`).join('')}`,
  ];
  return parts.filter(Boolean).join('\n\n');
}

/** @param {string} folder @param {string} file @returns {number} how many experiments are in it */
export function writeDocs(folder, file) {
  const reports = newest(readReports(folder));
  if (reports.length === 0)
    throw new HoldfastError(
      'NO_REPORTS',
      `there is no whole report in ${folder}: run an experiment first, or give --out`,
    );
  writeFileSync(file, docsText(reports));
  return reports.length;
}
