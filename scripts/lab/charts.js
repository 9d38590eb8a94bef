/*
 * Charts of the CSVs of an experiment, drawn by scripts/plot.js: the first repeat of each run, compared.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Clean, hasEnded } from './clean.js';
import { environment, ROOT } from './server.js';

const PLOT = join(ROOT, 'scripts', 'plot.js');
/** Nobody can tell more lines apart in one chart. */
const MOST_RUNS = 4;
const PLOT_MS = 120_000;
const POLL_MS = 50;

/**
 * @param {import('./lab.js').Lab} lab @param {import('./report.js').Report} report
 * @returns {Promise<string[]>} their names in the folder
 */
export async function drawCharts(lab, { runs }) {
  const files = runs.map(({ name }) => join(lab.folder, `${name}-1.csv`)).filter((path) => existsSync(path));
  if (files.length === 0) return [];
  const problem = existsSync(PLOT)
    ? await plot(lab, files.slice(0, MOST_RUNS))
    : 'scripts/plot.js is missing';
  if (problem) lab.note(`no charts: ${problem}`);
  return readdirSync(lab.folder)
    .filter((name) => name.endsWith('.svg'))
    .sort();
}

/** @param {import('./lab.js').Lab} lab @param {string[]} files @returns {Promise<string>} what went wrong; '' on success */
async function plot({ folder, signal }, files) {
  const clean = new Clean();
  const child = clean.spawn(process.execPath, [PLOT, ...files, '--out', folder, '--format', 'svg'], {
    cwd: ROOT,
    env: environment(),
  });
  let output = '';
  child.stdout?.resume();
  child.stderr?.on('data', (data) => {
    output += data;
  });
  const endMs = Date.now() + PLOT_MS;
  while (!hasEnded(child) && !signal.aborted && Date.now() < endMs)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  const isLate = !hasEnded(child);
  await clean.run();
  if (signal.aborted) return 'interrupted while drawing them';
  if (isLate) return `scripts/plot.js took longer than ${PLOT_MS / 1000} s`;
  return child.exitCode === 0 ? '' : (output.trim().split('\n').at(-1) ?? '');
}
