/*
 * The command line of run.js.
 */
import { parseArgs } from 'node:util';
import { FLAGS, HELP, profilerOptions, UsageError } from './options.js';
import { SETTLED } from './profiler.js';
import { ROWS } from './rows.js';

const MOST_INTERVAL_S = 86_400;

const OWN_FLAGS = /** @type {const} */ ({
  ...FLAGS,
  keys: { type: 'string', multiple: true },
  interval: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
});

const USAGE = `Usage: node examples/microprofiler/run.js [options] -- server.js [its options]

Runs a program of this repository with a profiler in all its processes, and shows a table of what they do: on a terminal every second,
otherwise at the end. Times of a key include those of the keys that it contains. 100 % of the time is one core.

${HELP}  --keys KEY[,…]         measures only these
  --interval SECONDS     how often the table is shown (on a terminal 1, otherwise only at the end)
  --help                 prints this

Keys (each also with '${SETTLED}', for calls that return a promise):
${[...new Map(ROWS.map(({ key, text }) => [key, text]))].map(([key, text]) => `  ${key.padEnd(17)}${text}\n`).join('')}`;

/**
 * @typedef {object} RunOptions
 * @property {string[]} program with its arguments; empty if help was asked for
 * @property {string} help '' if it was not asked for
 * @property {string[]} keys none for all
 * @property {string[]} budget as given
 * @property {number} intervalS 0 shows the table only at the end
 * @property {number} every
 * @property {Record<string, number>} budgets
 * @property {string} csv
 */

/** @param {readonly string[]} args @param {boolean} isTerminal @returns {RunOptions} @throws {UsageError} */
export function readArguments(args, isTerminal) {
  const split = args.indexOf('--');
  const program = split < 0 ? [] : args.slice(split + 1);
  const {
    help,
    keys: given = [],
    budget = [],
    interval,
    ...rest
  } = parsed(split < 0 ? args : args.slice(0, split));
  if (program.length === 0 && !help) throw new UsageError('name a program after --, such as: -- server.js');
  const keys = given.flatMap((text) => text.split(','));
  const { every, budgets, csv } = profilerOptions({ ...rest, budget });
  checkKeys([...keys, ...Object.keys(budgets)]);
  const intervalS = intervalIn(interval ?? (isTerminal ? '1' : '0'));
  return { program, help: help ? USAGE : '', keys, budget, intervalS, every, budgets, csv };
}

/** @param {readonly string[]} args */
function parsed(args) {
  try {
    return parseArgs({ args: [...args], options: OWN_FLAGS }).values;
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message);
  }
}

/** @param {readonly string[]} given @throws {UsageError} */
function checkKeys(given) {
  const known = new Set(ROWS.map(({ key }) => key));
  const unknown = given.find(
    (key) => !known.has(key.endsWith(SETTLED) ? key.slice(0, -SETTLED.length) : key),
  );
  if (unknown === undefined) return;
  throw new UsageError(`there is no key '${unknown}': use ${[...known].join(', ')}`);
}

/** @param {string} text */
function intervalIn(text) {
  const seconds = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= MOST_INTERVAL_S) return seconds;
  throw new UsageError(
    `--interval got '${text}': expected a whole number of seconds up to ${MOST_INTERVAL_S}`,
  );
}
