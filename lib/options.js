/*
 * Reads a table of options from the command line and the environment, and prints its help. Flags win over
 * the environment, the environment over the defaults.
 */
import { parseArgs } from 'node:util';
import { HoldfastError } from './errors.js';

/**
 * How the text of an option becomes its value: `read` returns undefined for a text it can't take.
 * @typedef {object} Kind
 * @property {string} expected
 * @property {string} word what stands for the value in the help; '' for a flag
 * @property {(text: string) => unknown} read
 */

/**
 * @typedef {object} Option
 * @property {string} flag without the dashes
 * @property {string} key of the value
 * @property {Kind} kind
 * @property {unknown} default
 * @property {string} help
 */

/** @param {number} min @param {number} max @returns {Kind} */
export const integer = (min, max) => ({
  expected: `a whole number from ${min} to ${max}`,
  word: 'N',
  read: (given) => {
    const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  },
});

/** @param {string[]} words @returns {Kind} */
export const choice = (...words) => ({
  expected: `one of ${words.join(', ')}`,
  word: words.join('|'),
  read: (given) => (words.includes(given) ? given : undefined),
});

/** @param {string} word @param {Kind} kind @returns {Kind} */
export const either = (word, kind) => ({
  expected: `${word} or ${kind.expected}`,
  word: `${word}|${kind.word}`,
  read: (given) => (given === word ? word : kind.read(given)),
});

/** @param {string} word @param {string} expected @returns {Kind} */
export const text = (word, expected) => ({ expected, word, read: (given) => given || undefined });

/** @type {Map<string, boolean>} */
const SWITCH = new Map([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
]);

/** On by its mere presence; a variable of the environment says 1 or 0. @type {Kind} */
export const FLAG = { expected: '1 or 0', word: '', read: (given) => SWITCH.get(given) };

/**
 * @param {string} flag @param {string} key @param {Kind} kind @param {unknown} byDefault @param {string} help
 * @returns {Option}
 */
export function option(flag, key, kind, byDefault, help) {
  return { flag, key, kind, default: byDefault, help };
}

/** @param {string} flag @returns {string} 'ping-interval' → 'HOLDFAST_PING_INTERVAL' */
function variableOf(flag) {
  return `HOLDFAST_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * @param {Option[]} options
 * @param {string[]} args as in process.argv.slice(2)
 * @param {Record<string, string | undefined>} env
 * @returns {{ values: Record<string, unknown>, help: boolean, version: boolean }}
 * @throws {HoldfastError} BAD_OPTION with a line that says what was given and what was expected
 */
export function readOptions(options, args, env) {
  /** @type {Record<string, unknown>} */
  const values = {};
  for (const { flag, key, kind, default: byDefault } of options) {
    const variable = variableOf(flag);
    const given = env[variable];
    values[key] = given ? readValue(kind, variable, given) : byDefault;
  }
  const asked = { help: false, version: false };
  for (const { name, value, stray } of tokensOf(options, args)) {
    if (stray)
      throw new HoldfastError(
        'BAD_OPTION',
        `unexpected argument '${stray}': options begin with --; see --help`,
      );
    if (name === 'help' || name === 'version') asked[name] = true;
    else {
      const { key, kind } = findOption(options, name);
      values[key] = readValue(kind, `--${name}`, kind === FLAG ? (value ?? '1') : value);
    }
  }
  return { values, ...asked };
}

/**
 * @param {Option[]} options @param {string[]} args
 * @returns {{ name: string, value?: string, stray?: string }[]} in order; stray is what belongs to no option
 */
function tokensOf(options, args) {
  const types = Object.fromEntries([
    ...options.map(({ flag, kind }) => [flag, { type: kind === FLAG ? 'boolean' : 'string' }]),
    ['help', { type: 'boolean', short: 'h' }],
    ['version', { type: 'boolean' }],
  ]);
  const { tokens = [] } = parseArgs({
    args,
    options: types,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  return tokens.map((token) => {
    if (token.kind === 'option') return { name: token.name, value: token.value };
    return { name: '', stray: token.kind === 'positional' ? token.value : '--' };
  });
}

/** @param {Option[]} options @param {string} name @returns {Option} */
function findOption(options, name) {
  const found = options.find(({ flag }) => flag === name);
  if (found) return found;
  const near = options.find(({ flag }) => flag.startsWith(name) || name.startsWith(flag));
  const hint = near ? `did you mean --${near.flag}? ` : '';
  const given = name.length === 1 ? `-${name}` : `--${name}`;
  throw new HoldfastError(
    'BAD_OPTION',
    `unknown option ${given}: ${hint}see --help (flags of node stand before the script)`,
  );
}

/** @param {Kind} kind @param {string} label @param {string | undefined} given */
function readValue(kind, label, given) {
  const value = given === undefined ? undefined : kind.read(given);
  if (value !== undefined) return value;
  const what = given === undefined ? 'no value' : `'${given}'`;
  throw new HoldfastError('BAD_OPTION', `${label} got ${what}: expected ${kind.expected}; see --help`);
}

/**
 * The lines of `--help` that list the options.
 * @param {Option[]} options
 * @returns {string}
 */
export function optionLines(options) {
  const rows = options.map(({ flag, kind, default: byDefault, help }) => ({
    left: kind === FLAG ? `--${flag}` : `--${flag} ${kind.word}`,
    right: kind === FLAG || byDefault === '' ? help : `${help} (${byDefault})`,
  }));
  rows.push({ left: '--help, --version', right: 'print this, or the version' });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, right }) => `  ${left.padEnd(width)}${right}`).join('\n');
}
