/*
 * The HOLDFAST_ environment variables. A mistyped one would be ignored silently, so programs print a warning about those that
 * nobody reads.
 */
import { FAIL_STEPS } from './failat.js';
import { nearest } from './nearest.js';
import { variableOf } from './options.js';

const PREFIX = 'HOLDFAST_';

/** Variables that are not options, and their meaningful values; null for any. @type {Map<string, string[] | null>} */
const SWITCHES = new Map([
  ['HOLDFAST_NATIVE', ['on', 'off']],
  ['HOLDFAST_BUILD', null],
  ['HOLDFAST_UNSHARE', ['off']],
  ['HOLDFAST_TOKEN', null],
  ['HOLDFAST_FLEET_DIR', null],
  ['HOLDFAST_ON', null],
  ['HOLDFAST_SKIPS', null],
  ['HOLDFAST_OWN_NETWORK', null],
  ['HOLDFAST_TCP_MEMORY', null],
  ['HOLDFAST_FAIL_AT', FAIL_STEPS.map(({ step }) => step)],
]);

/**
 * @param {import('./options.js').Option[]} options whose variables are known. A fleet passes those of the server too, because it
 *   is usually started in the same shell. Without any, there is a warning only about names that are close to a switch
 * @param {Record<string, string | undefined>} env
 * @returns {string[]} a line about each variable that has no effect
 */
export function variableWarnings(options, env) {
  const known = [...options.map(({ flag }) => variableOf(flag)), ...SWITCHES.keys()];
  return Object.entries(env).flatMap(([name, value]) => {
    if (!name.startsWith(PREFIX)) return [];
    if (known.includes(name)) return switchWarning(name, value ?? '');
    return strangerWarning(name, known, options.length > 0);
  });
}

/** @param {string} name @param {string} value @returns {string[]} */
function switchWarning(name, value) {
  const values = SWITCHES.get(name);
  if (!values || value === '' || values.includes(value)) return [];
  return [`${name}=${value} has no effect: expected ${values.join(', ')}`];
}

/** @param {string} name @param {string[]} known @param {boolean} isAll whether these are all names that exist @returns {string[]} */
function strangerWarning(name, known, isAll) {
  const shorten = (/** @type {string} */ one) => one.slice(PREFIX.length);
  const near = nearest(shorten(name), known.map(shorten));
  if (near) return [`${name} is ignored: did you mean ${PREFIX}${near}?`];
  return isAll ? [`${name} is ignored: no option has this name; see --help`] : [];
}

/** @param {string} program the name at the start of each line @param {import('./options.js').Option[]} [options] */
export function warnAboutVariables(program, options = []) {
  for (const line of variableWarnings(options, process.env)) process.stderr.write(`${program}: ${line}\n`);
}
