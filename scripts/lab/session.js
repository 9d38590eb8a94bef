/*
 * One experiment as a command runs it: a folder of its own, signals, what is said before and after.
 */
import { mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { abortOnSignals } from '../../fleet/signals.js';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { makeFolder } from '../../lib/folder.js';
import { formatCount } from '../../lib/format.js';
import { conduct } from './conduct.js';
import { Lab } from './lab.js';
import { planOf, secondsOf } from './plan.js';
import { ROOT } from './server.js';

/** @typedef {import('./experiment.js').Experiment} Experiment */

/**
 * What has the terminal while an experiment runs, such as the dashboard.
 * @typedef {object} View
 * @property {(frame: any) => void} show
 * @property {(line: string) => void} note
 * @property {() => void} close
 */

/**
 * @param {Experiment} experiment
 * @param {import('./plan.js').Wish & { out: string }} given
 * @param {{ command: string, openView?: (quit: () => void) => Promise<View> }} how
 * @returns {Promise<{ report: import('./report.js').Report, folder: string, status: number }>} the status to exit with
 * @throws {HoldfastError} FAILED, where it did
 */
export async function runExperiment(experiment, given, { command, openView }) {
  const plan = planOf(experiment, given);
  const folder = newFolder(outOf(given.out), experiment.name);
  const ending = abortOnSignals();
  const lab = new Lab({ folder, signal: ending.signal });
  announce(experiment, plan, lab);
  if (openView) lab.view = await openView(() => process.kill(process.pid, 'SIGINT'));
  const report = await conduct(experiment, plan, lab, command);
  for (const sentence of report.sentences) process.stdout.write(`- ${sentence}\n`);
  process.stdout.write(`report: ${shown(join(folder, 'report.md'))}\n`);
  if (report.problem) throw new HoldfastError('FAILED', `${experiment.name} failed: ${report.problem}`);
  return { report, folder, status: ending.status() };
}

/** Says what will happen. @param {Experiment} experiment @param {import('./plan.js').Plan} plan @param {Lab} lab */
function announce(experiment, plan, lab) {
  const runs = experiment.runs(plan);
  lab.aboutS = secondsOf(experiment, plan);
  const names = runs.map(({ name }) => name).join(', ');
  const turns = plan.repeats > 1 ? ` ${plan.repeats} times in turn` : '';
  lab.say(`${experiment.name}: ${experiment.question}`);
  lab.say(
    `  ${formatCount(plan.streams)} streams, held for ${formatCount(plan.holdS)} s; ${names}${turns}: ${timeText(lab.aboutS)}`,
  );
  lab.say(`  into ${shown(lab.folder)}; Ctrl-C ends it and keeps what was measured`);
}

/** @param {string} out @param {string} name @returns {string} a new folder; a second one of a day gets a number */
function newFolder(out, name) {
  const base = join(out, `${new Date().toISOString().slice(0, 10)}-${name}`);
  try {
    makeFolder(out);
    for (let i = 1; ; i++) {
      const folder = i === 1 ? base : `${base}-${i}`;
      if (tryFolder(folder)) return folder;
    }
  } catch (error) {
    throw new HoldfastError('BAD_FOLDER', `can't write to --out ${out}: ${messageOf(error)}; give another`);
  }
}

/** @param {string} folder @returns {boolean} false where there is one */
function tryFolder(folder) {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} out @returns {string} the default is that of the project, wherever it is called from */
export function outOf(out) {
  return out === 'logs' ? join(ROOT, 'logs') : resolve(out);
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
