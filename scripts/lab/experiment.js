/*
 * What an experiment is, and where to find them: one file each in scripts/experiments/.
 */
import { readdirSync } from 'node:fs';
import { HoldfastError } from '../../lib/errors.js';

const FOLDER = new URL('../experiments/', import.meta.url);
/** A name further away than this was not meant. */
const MOST_EDITS = 4;

/**
 * One way to run the scenario. Runs are compared with each other.
 * @typedef {object} Run
 * @property {string} name letters, digits and -
 * @property {string} [text] what it is, if the name does not say
 * @property {string[]} [args] of the server
 * @property {string[]} [nodeFlags]
 * @property {Record<string, string>} [sysctls] set for this run
 * @property {boolean} [mayFail] then the failure is reported and the other runs go on
 * @property {string} [skip] why it can't run here
 * @property {(lab: import('./lab.js').Lab) => Promise<string>} [prepare] called once before the first trial; returns why the
 *   run has to be skipped, or ''
 *
 * @typedef {object} Figure
 * @property {string} name
 * @property {string} text
 * @property {'bytes' | 'ms' | 'µs' | 's' | '%' | '1/s' | 'count'} unit % of CPU is of one core
 * @property {import('./phases.js').Reader} [read] from the phases; a trial function returns the figure by name instead
 *
 * @typedef {Record<string, number | null>} Values by the name of the figure
 *
 * @typedef {object} Trial what a trial gets
 * @property {import('./lab.js').Lab} lab
 * @property {Experiment} experiment
 * @property {Run} run
 * @property {import('./plan.js').Plan} plan
 * @property {string} name of its files
 *
 * @typedef {object} Round what a round gets
 * @property {import('./lab.js').Lab} lab
 * @property {import('./plan.js').Plan} plan
 * @property {Run[]} runs that can run here
 * @property {string} name the number of the round, for the names of its files
 * @property {(run: string, values: Values) => void} record any number of times; a value may be missing
 *
 * @typedef {object} Experiment
 * @property {string} name that of the file
 * @property {string} question
 * @property {{ holdS: number, repeats: number, streams?: number, ramp?: number }} usual sizes with which it takes about three minutes
 * @property {string} [title] of its row in the README's table of results
 * @property {{ streams: number, holdS: number, ramp?: number, most?: number }} [small] sizes with which it takes about a minute, for
 *   npm run bench; `most`: as in the plan
 * @property {boolean} [rises] `streams` is where it begins
 * @property {import('./million/targets.js').Target[]} [targets] for the README's table, too
 * @property {boolean} [hasOwnNetwork] runs in its own network namespace if possible
 * @property {boolean} [hasOwnPage] has its own page in docs/, so docs/experiments.md leaves it out
 * @property {string[]} [how] sentences on what is done, in addition to the steps
 * @property {(plan: import('./plan.js').Plan) => Run[]} runs
 * @property {(plan: import('./plan.js').Plan) => import('./steps.js').Step[]} [steps]
 * @property {(trial: Trial) => Promise<Values>} [trial] instead of steps
 * @property {(plan: import('./plan.js').Plan) => number} [trialSeconds] about how long a trial takes
 * @property {(round: Round) => Promise<void>} [round] instead of trials: one repeat of all runs, which take turns within it
 * @property {(plan: import('./plan.js').Plan) => number} [roundSeconds] about how long a round takes
 * @property {Figure[]} figures
 * @property {(findings: import('./findings.js').Findings) => string[]} read turns figures into sentences
 * @property {(findings: import('./findings.js').Findings) => string} [comparison] a Markdown table: the findings beside targets, or
 *   beside what others found
 * @property {(findings: import('./findings.js').Findings) => Promise<Record<string, string>>} [charts] SVGs by the names of their
 *   files, in addition to those of the CSVs
 * @property {(report: import('./report.js').Report, findings: import('./findings.js').Findings) => string} [page] what --to writes
 *   instead of the whole report
 */

/** @returns {string[]} */
export function experimentNames() {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.js'));
  return files.map((name) => name.slice(0, -'.js'.length)).sort();
}

/**
 * @param {string} name @returns {Promise<Experiment>}
 * @throws {HoldfastError} NO_EXPERIMENT
 */
export async function findExperiment(name) {
  const names = experimentNames();
  if (!names.includes(name)) throw unknown(name, names);
  const { default: experiment } = await import(new URL(`${name}.js`, FOLDER).href);
  return { ...experiment, name };
}

/** @param {string} name @param {string[]} names */
function unknown(name, names) {
  const [near] = names
    .map((one) => ({ one, edits: editsBetween(name, one) }))
    .sort((one, other) => one.edits - other.edits);
  const isNear = near && (near.edits <= Math.min(MOST_EDITS, name.length / 2) || near.one.startsWith(name));
  const hint = isNear ? `did you mean ${near.one}? ` : '';
  return new HoldfastError(
    'NO_EXPERIMENT',
    `there is no experiment '${name}': ${hint}node scripts/experiment.js list shows all of them`,
  );
}

/**
 * Letters to change, add or remove (Levenshtein distance).
 * @param {string} one @param {string} other @returns {number}
 */
export function editsBetween(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + same));
    }
    row = next;
  }
  return row[other.length];
}
