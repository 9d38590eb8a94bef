/*
 * One experiment as a command runs it: its own folder, signals, and what is printed before and after.
 */
import { mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { abortOnSignals } from '../../fleet/signals.js';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';
import { formatCount } from '../../lib/format.js';
import { execute } from './execute.js';
import { Lab } from './lab.js';
import { writePage } from './page.js';
import { planOf, secondsOf } from './plan.js';
import { ROOT } from './server.js';

/** @typedef {import('./experiment.js').Experiment} Experiment */

/**
 * What occupies the terminal while an experiment runs, such as the dashboard.
 * @typedef {object} View
 * @property {(frame: any) => void} show
 * @property {(line: string) => void} note
 * @property {() => void} close
 *
 * @typedef {import('./plan.js').Wish & { out: string, to: string }} Given options: `out` is the folder for the folder of the
 *   run, `to` a page of docs/ to write ('' for none)
 */

/**
 * @param {Experiment} experiment @param {Given} given
 * @param {{ command: string, openView?: (quit: () => void) => Promise<View> }} how
 * @returns {Promise<number>} the status to exit with
 * @throws {HoldfastError} FAILED
 */
export async function runExperiment(experiment, given, { command, openView }) {
  const plan = planOf(experiment, given);
  const folder = newFolder(outOf(given.out), experiment.name);
  const ending = abortOnSignals();
  const lab = new Lab({ folder, signal: ending.signal });
  announce(experiment, plan, lab);
  if (openView) lab.view = await openView(() => process.kill(process.pid, 'SIGINT'));
  const report = await execute(experiment, plan, lab, command);
  for (const sentence of report.sentences) process.stdout.write(`- ${sentence}\n`);
  process.stdout.write(`report: ${shown(join(folder, 'report.md'))}\n`);
  if (report.problem) throw new HoldfastError('FAILED', `${experiment.name} failed: ${report.problem}`);
  if (given.to && report.end === 'whole') {
    const file = pathIn(given.to);
    writePage(experiment, report, folder, file);
    process.stdout.write(`report: ${shown(file)}\n`);
  }
  return ending.status();
}

/** Says what will happen. @param {Experiment} experiment @param {import('./plan.js').Plan} plan @param {Lab} lab */
function announce(experiment, plan, lab) {
  const runs = experiment.runs(plan);
  lab.expectedS = secondsOf(experiment, plan);
  const names = runs.map(({ name }) => name).join(', ');
  const turns = plan.repeats > 1 ? ` ${plan.repeats} times in turn` : '';
  lab.say(`${experiment.name}: ${experiment.question}`);
  lab.say(
    `  ${formatCount(plan.streams)} streams, held for ${formatCount(plan.holdS)} s; ${names}${turns}: ${timeText(lab.expectedS)}`,
  );
  lab.say(`  writing to ${shown(lab.folder)}; Ctrl-C stops it and keeps what was measured so far`);
}

/** @param {string} out @param {string} name @returns {string} a new folder; a second one on the same day gets a number */
function newFolder(out, name) {
  const base = join(out, `${new Date().toISOString().slice(0, 10)}-${name}`);
  try {
    makeFolder(out);
    for (let i = 1; ; i++) {
      const folder = i === 1 ? base : `${base}-${i}`;
      if (tryFolder(folder)) return folder;
    }
  } catch (error) {
    throw new HoldfastError(
      'BAD_FOLDER',
      `can't write to --out ${out}: ${messageOf(error)}; give another folder`,
    );
  }
}

/** @param {string} folder @returns {boolean} false when it exists already */
function tryFolder(folder) {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} out @returns {string} the default is in the project, wherever the command is called from */
export function outOf(out) {
  return out === 'logs' ? join(ROOT, 'logs') : resolve(out);
}

/** @param {string} file @returns {string} a page of docs/ is in the project, too */
export function pathIn(file) {
  return file.startsWith('docs/') ? join(ROOT, file) : resolve(file);
}

/** @param {string} path */
export function shown(path) {
  const near = relative(process.cwd(), path);
  return near.startsWith('..') ? path : near;
}

/** @param {number} seconds */
export function timeText(seconds) {
  return seconds < 90 ? `about ${seconds} s` : `about ${Math.round(seconds / 60)} minutes`;
}
