/*
 * Reads a table of options from the command line and environment variables. Flags win over environment variables, and those
 * over the defaults.
 */
import { parseArgs } from 'node:util';
import { HoldfastError } from './errors.js';
import { nearest } from './nearest.js';
import { readSecret } from './secrets.js';

/**
 * How the text of an option becomes its value: `read` returns undefined for a text that is not valid.
 * @typedef {object} Kind
 * @property {string} expected
 * @property {string} word placeholder of the value in the help; '' for a flag
 * @property {(text: string) => unknown} read
 * @property {boolean} [repeats] each use of the flag adds a value, and the option's value is the list of them
 * @property {string} [separator] between several values in one use
 * @property {boolean} [isSecret] the value must not be shown, not even in an error
 */

/**
 * @typedef {object} Option
 * @property {string} flag without the dashes
 * @property {string} key of the value
 * @property {Kind} kind
 * @property {unknown} default
 * @property {string} help
 * @property {string} short the one-letter form of the flag; '' for none
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

/**
 * May be given more than once; the default is a list too.
 * @param {Kind} kind @returns {Kind}
 */
export const repeated = (kind) => ({ ...kind, repeats: true });

/**
 * As `repeated`, but several values may also be separated by commas. A variable of the environment can hold only one text.
 * @param {Kind} kind @returns {Kind}
 */
export const listed = (kind) => ({ ...repeated(kind), separator: ',' });

/**
 * A text that must not be shown, or the file that has it: '@' and a path. The value is the contents.
 * @param {string} word @returns {Kind}
 */
export const secret = (word) => ({
  expected: 'a text, or @ and the path of a file',
  word: `${word}|@FILE`,
  isSecret: true,
  read: (given) => readSecret(given) || undefined,
});

/** @type {Map<string, boolean>} */
const SWITCH = new Map([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
]);

/** On if it is present; as an environment variable it is 1 or 0. @type {Kind} */
export const FLAG = { expected: '1 or 0', word: '', read: (given) => SWITCH.get(given) };

/**
 * @param {string} flag @param {string} key @param {Kind} kind @param {unknown} byDefault @param {string} help
 * @param {string} [short] one letter
 * @returns {Option}
 */
export function option(flag, key, kind, byDefault, help, short = '') {
  return { flag, key, kind, default: byDefault, help, short };
}

/** @param {string} flag @returns {string} 'ping-interval' → 'HOLDFAST_PING_INTERVAL' */
export function variableOf(flag) {
  return `HOLDFAST_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * @param {Option[]} options
 * @param {string[]} args as in process.argv.slice(2)
 * @param {Record<string, string | undefined>} env
 * @param {number} [mostWords] arguments without a flag that are allowed, such as a URL
 * @returns {{ values: Record<string, unknown>, words: string[], help: boolean, version: boolean }}
 * @throws {HoldfastError} BAD_OPTION, saying what was given and what was expected
 */
export function readOptions(options, args, env, mostWords = 0) {
  const values = valuesBefore(options, env);
  /** @type {string[]} */
  const words = [];
  /** @type {Map<string, unknown[]>} values of options that repeat, by key */
  const lists = new Map();
  const asked = { help: false, version: false };
  for (const { name, label, value, stray } of tokensOf(options, args)) {
    if (stray) words.push(stray);
    if (words.length > mostWords) throw strayError(stray ?? '');
    if (stray) continue;
    if (name === 'help' || name === 'version') asked[name] = true;
    else {
      const { key, kind } = findOption(options, name);
      const given = kind === FLAG ? (value ?? '1') : value;
      if (kind.repeats) lists.set(key, [...(lists.get(key) ?? []), ...readValues(kind, label, given)]);
      values[key] = kind.repeats ? lists.get(key) : readValue(kind, label, given);
    }
  }
  return { values, words, ...asked };
}

/**
 * @param {Option[]} options @param {Record<string, string | undefined>} env
 * @returns {Record<string, unknown>} the values of environment variables, or the defaults
 */
function valuesBefore(options, env) {
  const entries = options.map(({ flag, key, kind, default: byDefault }) => {
    const variable = variableOf(flag);
    const given = env[variable];
    if (!given) return [key, byDefault];
    return [key, kind.repeats ? readValues(kind, variable, given) : readValue(kind, variable, given)];
  });
  return Object.fromEntries(entries);
}

/** @param {string} stray */
function strayError(stray) {
  return new HoldfastError('BAD_OPTION', `unexpected argument '${stray}': options start with --; see --help`);
}

/**
 * @param {Option[]} options @param {string[]} args
 * @returns {{ name: string, label: string, value?: string, stray?: string }[]} in order; the label is the flag as it was
 *   given; stray is an argument that belongs to no option
 */
function tokensOf(options, args) {
  const types = Object.fromEntries([
    ...options.map(({ flag, kind, short }) => [
      flag,
      { type: kind === FLAG ? 'boolean' : 'string', ...(short ? { short } : {}) },
    ]),
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
    if (token.kind === 'option') return { name: token.name, label: token.rawName, value: token.value };
    return { name: '', label: '', stray: token.kind === 'positional' ? token.value : '--' };
  });
}

/** @param {Option[]} options @param {string} name @returns {Option} */
function findOption(options, name) {
  const found = options.find(({ flag }) => flag === name);
  if (found) return found;
  const flags = options.map(({ flag }) => flag);
  const near = nearest(name, [...flags, 'help', 'version']);
  const hint = near
    ? `did you mean --${near}? See --help`
    : 'see --help (flags of node go before the script)';
  const given = name.length === 1 ? `-${name}` : `--${name}`;
  throw new HoldfastError('BAD_OPTION', `unknown option ${given}: ${hint}`);
}

/** @param {Kind} kind @param {string} label @param {string | undefined} given @returns {unknown[]} the values of one use */
function readValues(kind, label, given) {
  const parts = kind.separator && given ? given.split(kind.separator).map((part) => part.trim()) : [given];
  return parts.map((part) => readValue(kind, label, part));
}

/** @param {Kind} kind @param {string} label @param {string | undefined} given */
function readValue(kind, label, given) {
  const value = given === undefined ? undefined : readBy(kind, label, given);
  if (value !== undefined) return value;
  const what = given === undefined ? 'no value' : kind.isSecret && given ? 'a bad value' : `'${given}'`;
  throw new HoldfastError('BAD_OPTION', `${label} got ${what}: expected ${kind.expected}; see --help`);
}

/** @param {Kind} kind @param {string} label @param {string} given @throws {HoldfastError} with the label, if reading it failed */
function readBy(kind, label, given) {
  try {
    return kind.read(given);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    throw new HoldfastError(error.code, `${label}: ${error.message}`);
  }
}
