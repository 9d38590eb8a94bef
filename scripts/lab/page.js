/*
 * A page of docs/: the report of one experiment, with its charts in a folder of the same name, and the report as JSON, so
 * that the page can be written again without running the experiment again.
 */
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';
import { findingsOf, interpret } from './execute.js';
import { experimentNames, findExperiment } from './experiment.js';
import { reportText } from './report.js';

/** @typedef {import('./experiment.js').Experiment} Experiment */
/** @typedef {import('./report.js').Report} Report */

/**
 * @param {Experiment} experiment @param {Report} report @param {string} folder that has its charts
 * @param {string} file
 * @throws {HoldfastError} BAD_FILE
 */
export function writePage(experiment, report, folder, file) {
  const name = nameOf(file);
  try {
    if (report.charts.length > 0) makeFolder(join(dirname(file), name));
    for (const chart of report.charts) copyFileSync(join(folder, chart), join(dirname(file), name, chart));
    const charts = report.charts.map((chart) => `${name}/${chart}`);
    const moved = { ...report, charts };
    writeFileSync(file, pageText(experiment, moved));
    writeFileSync(join(dirname(file), `${name}.json`), `${JSON.stringify(moved, null, 2)}\n`);
  } catch (error) {
    throw new HoldfastError('BAD_FILE', `can't write --to ${file}: ${messageOf(error)}; give another file`);
  }
}

/**
 * Writes the pages of a folder again from their JSON, in today's words.
 * @param {string} folder @returns {Promise<string[]>} the files
 */
export async function rewritePages(folder) {
  const written = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.json'))) {
    const report = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    if (!experimentNames().includes(report.name)) continue; // not the JSON of a page
    const experiment = await findExperiment(report.name);
    const { question, figures } = experiment;
    const own = {
      ...report,
      question,
      figures: figures.map(({ name, text, unit }) => ({ name, text, unit })),
    };
    interpret(experiment, own);
    const file = join(folder, name.replace(/json$/, 'md'));
    writeFileSync(file, pageText(experiment, own));
    written.push(file);
  }
  return written;
}

/** @param {Experiment} experiment @param {Report} report @returns {string} */
function pageText(experiment, report) {
  return experiment.page?.(report, findingsOf(experiment, report)) ?? reportText(report);
}

/** @param {string} file */
function nameOf(file) {
  return basename(file).replace(/\.md$/, '');
}
