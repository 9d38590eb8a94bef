/*
 * From the CSVs of runs to charts: the work of scripts/plot.js, as a function.
 */
import { writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';
import { specOf } from './charts.js';
import { figureTable, tableText } from './compare.js';
import { pageOf } from './page.js';
import { readRun } from './read.js';
import { chartsOf } from './series.js';

/** @typedef {'svg' | 'png' | 'html'} Format */
/** @typedef {import('./read.js').Run} Run */
export const FORMATS = /** @type {const} */ (['svg', 'png', 'html']);

/**
 * @param {string[]} paths of CSVs; several are compared with each other
 * @param {object} [options]
 * @param {string} [options.out] folder, created if necessary; default: that of the first CSV
 * @param {Format[]} [options.formats]
 * @returns {Promise<{ written: string[], notes: string[], table: string }>} paths of the charts; a line for each thing that the
 *   CSVs lack; the key figures as text
 * @throws {HoldfastError} NO_FILE, NOT_CSV, CANT_WRITE
 */
export async function plot(paths, { out = dirname(paths[0]), formats = ['svg', 'html'] } = {}) {
  const runs = await readRuns(paths);
  const notes = runs.flatMap(({ path, notes }) => notes.map((note) => `${path}: ${note}`));
  const charts = chartsOf(runs);
  const stem = join(out, stemOf(runs));
  /** @type {Map<string, string | Buffer>} */
  const files = new Map();
  if (formats.some((format) => format !== 'html')) {
    const { svgOf, pngOf, hasFont } = await import('./picture.js');
    if (formats.includes('png') && !hasFont()) {
      notes.push(
        'no font was found, so the PNGs have no text: install one (Debian: fonts-dejavu-core), or use svg',
      );
    }
    for (const chart of charts) {
      const svg = await svgOf(specOf(chart, runs));
      if (formats.includes('svg')) files.set(`${stem}.${chart.id}.svg`, svg);
      if (formats.includes('png')) files.set(`${stem}.${chart.id}.png`, pngOf(svg));
    }
  }
  if (formats.includes('html')) files.set(`${stem}.html`, pageOf(runs, charts));
  await writeAll(out, files);
  return { written: [...files.keys()], notes, table: tableText(figureTable(runs)) };
}

/** Reads one after the other, to need memory for one of them only. @param {string[]} paths @returns {Promise<Run[]>} */
async function readRuns(paths) {
  const runs = [];
  for (const path of paths) runs.push(await readRun(path));
  for (const run of runs) {
    const isAlone = runs.filter(({ path }) => basename(path) === basename(run.path)).length === 1;
    if (!isAlone) run.name = `${basename(dirname(resolve(run.path)))}-${run.name}`;
  }
  return runs;
}

/** @param {Run[]} runs @returns {string} how the names of the files begin */
function stemOf([first, ...others]) {
  if (others.length === 0) return first.name;
  return others.length === 1
    ? `${first.name}-vs-${others[0].name}`
    : `${first.name}-vs-${others.length}-others`;
}

/** @param {string} folder @param {Map<string, string | Buffer>} files */
async function writeAll(folder, files) {
  try {
    makeFolder(folder);
    for (const [path, content] of files) await writeFile(path, content);
  } catch (error) {
    const why = codeOf(error) === 'EEXIST' ? 'it is a file, not a folder' : messageOf(error);
    throw new HoldfastError('CANT_WRITE', `can't write to ${folder}: ${why}; give another --out`);
  }
}
