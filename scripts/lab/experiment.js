/*
 * What an experiment is, and where those that there are lie: a file each in scripts/experiments/.
 */
import { readdirSync } from 'node:fs';
import { HoldfastError } from '../../lib/errors.js';

const FOLDER = new URL('../experiments/', import.meta.url);
/** A name that is further off was not meant. */
const MOST_EDITS = 4;

/**
 * One way to run the scenario: they are compared.
 * @typedef {object} Run
 * @property {string} name letters, digits and -
 * @property {string} [text] what it is, where the name does not say
 * @property {string[]} [args] of the server
 * @property {string[]} [nodeFlags]
 * @property {Record<string, string>} [sysctls] set for this run
 * @property {boolean} [mayFail] then it is said, and the others go on
 * @property {string} [skip] why it can't be run here
 * @property {(lab: import('./lab.js').Lab) => Promise<string>} [prepare] once, before the first; says why it has to be skipped, or ''
 *
 * @typedef {object} Figure
 * @property {string} name
 * @property {string} text
 * @property {'bytes' | 'ms' | 'µs' | 's' | '%' | '1/s' | 'count'} unit % of CPU is of one core
 * @property {import('./phases.js').Reader} [read] from the phases; a trial of its own gives the figure by name
 *
 * @typedef {Record<string, number | null>} Values by the name of the figure
 *
 * @typedef {object} Trial what a trial is given
 * @property {import('./lab.js').Lab} lab
 * @property {Experiment} experiment
 * @property {Run} run
 * @property {import('./plan.js').Plan} plan
 * @property {string} name of its files
 *
 * @typedef {object} Experiment
 * @property {string} name that of the file
 * @property {string} question
 * @property {{ holdS: number, repeats: number, streams?: number, ramp?: number }} usual so that it takes about three minutes
 * @property {boolean} [hasOwnNetwork] whether it is run in a network namespace, where there can be one
 * @property {string[]} [how] sentences on what is done, beyond the steps
 * @property {(plan: import('./plan.js').Plan) => Run[]} runs
 * @property {(plan: import('./plan.js').Plan) => import('./steps.js').Step[]} [steps]
 * @property {(trial: Trial) => Promise<Values>} [trial] in place of steps
 * @property {(plan: import('./plan.js').Plan) => number} [trialSeconds] about how long that takes
 * @property {Figure[]} figures
 * @property {(findings: import('./findings.js').Findings) => string[]} read from figures to sentences
 * @property {(findings: import('./findings.js').Findings) => string} [beside] a table in Markdown: what was found beside what others found
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
    `there is no experiment '${name}': ${hint}node scripts/experiment.js list says which there are`,
  );
}

/**
 * Letters to change, add or leave out (Levenshtein's distance).
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
