/*
 * The table of results in the README, from the reports of the million runs. Everything but the last function is pure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findingsOf } from '../execute.js';
import { experimentNames, findExperiment } from '../experiment.js';
import { insertBetween } from '../insert.js';
import { alignedTable, capital } from '../text.js';
import { pageOf, RUNS } from './runs.js';
import { verdictOf } from './targets.js';

const NAME = 'results';

/** @typedef {import('../experiment.js').Experiment} Experiment */
/** @typedef {import('../report.js').Report} Report */
/** @typedef {{ experiment: Experiment, report: Report, page: string }} Result */

/** @param {Result[]} results @returns {string} in Markdown */
export function resultsText(results) {
  const rows = results.map(({ experiment, report, page }) => {
    const targets = (experiment.targets ?? []).filter(({ headline }) => headline);
    const findings = findingsOf(experiment, report);
    const said = targets.map((target) => {
      const { values, isReached } = verdictOf(target, findings, report.runs[0].name);
      const miss = isReached === false ? ` (target: ${target.target})` : '';
      return `${target.headline?.replace('{}', values)}${miss}`;
    });
    return [`[${capital(experiment.title ?? report.name)}](${page})`, said.join('; ')];
  });
  return `${alignedTable(['on 2 cores, with the clients on them', 'result'], rows)}\n\n${machinesText(results)}`;
}

/** @param {Result[]} results */
function machinesText(results) {
  const machines = new Set(results.map(({ report }) => report.facts.machine.replace(/, commit \S+$/, '')));
  return `${[...machines].join('; ')}; each page has its commit. Each row is written by the run that its page describes.`;
}

/** Writes the table again from the pages there are. @param {string} root of the project */
export async function writeResults(root) {
  /** @type {Result[]} */
  const results = [];
  for (const run of RUNS) {
    const page = pageOf(run, false);
    const file = join(root, page.replace(/md$/, 'json'));
    if (!existsSync(file) || !experimentNames().includes(run.experiment)) continue;
    const report = JSON.parse(readFileSync(file, 'utf8'));
    results.push({ experiment: await findExperiment(run.experiment), report, page });
  }
  const readme = join(root, 'README.md');
  const text = insertBetween(readFileSync(readme, 'utf8'), NAME, resultsText(results));
  if (text !== null) writeFileSync(readme, text);
}
