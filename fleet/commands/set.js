/*
 * set: changes one parameter of all drones.
 */
import { HoldfastError } from '../../lib/errors.js';
import { formatNoun } from '../../lib/format.js';
import { nearest } from '../../lib/nearest.js';
import { FLAG, integer } from '../../lib/options.js';
import { each, setParams, tell } from '../ask.js';
import { changedParams, defaultParams, PARAMS } from '../drone/params.js';
import { JSON_OPTION, PLACE_OPTIONS, paramText } from '../flags.js';
import { openPlace } from '../places.js';
import { dronesText } from '../show/table.js';
import { spread } from '../spread.js';

const STREAMS = integer(0, 100_000_000);
const NAMES = ['streams', 'restart', ...PARAMS.map(({ flag }) => flag)];
const TELLING = [
  ['streams N', 'total number of streams, divided among the drones'],
  ['restart 1', 'reopen all streams and count from 0'],
];
const EACH = PARAMS.map(({ flag, kind, help }) => [`${flag} ${kind === FLAG ? '1|0' : kind.word}`, help]);
const WIDTH = Math.max(...[...TELLING, ...EACH].map(([words]) => words.length)) + 2;
const linesOf = (/** @type {string[][]} */ rows) =>
  rows.map(([words, help]) => `  ${words.padEnd(WIDTH)}${help}`).join('\n');

/** @typedef {import('../ask.js').Member} Member */

/** @type {import('../cli.js').Command} */
export const set = {
  name: 'set',
  words: 'PARAM VALUE',
  mostWords: 2,
  summary: 'change a parameter of all drones',
  help: `
${linesOf(TELLING)}
For each drone alone:
${linesOf(EACH)}

  node fleet/cli.js set streams 20000
  node fleet/cli.js set host 10.0.0.9 --on hosts.json
`,
  options: [...PLACE_OPTIONS, JSON_OPTION],
  act,
};

/** @param {string[]} words @param {Record<string, any>} values @returns {Promise<number>} */
async function act([name, value], values) {
  const telling = tellingOf(name, value === undefined ? value : paramText(name, value));
  const place = await openPlace(values);
  const members = await place.list();
  if (members.length === 0)
    throw new HoldfastError('NO_DRONES', "there are no drones: start some with 'start'");
  await telling(members);
  const { isJson } = values;
  const line = isJson
    ? JSON.stringify({ name, value, drones: members.length })
    : textOf(name, value, members.length);
  process.stdout.write(`${line}\n`);
  return 0;
}

/**
 * @param {string | undefined} name @param {string | undefined} value
 * @returns {(members: Member[]) => Promise<void>} which tells the drones
 * @throws {HoldfastError} BAD_OPTION, BAD_PARAM
 */
function tellingOf(name, value) {
  if (name === undefined || value === undefined)
    throw new HoldfastError(
      'BAD_OPTION',
      `set needs a parameter and its value, as in 'set streams 1000'; see --help`,
    );
  if (name === 'restart') {
    if (value !== '1') throw new HoldfastError('BAD_PARAM', `restart got '${value}': expected 1`);
    return (members) => each(members, (member) => tell(member, 'restart'));
  }
  if (name === 'streams') return tellingStreams(value);
  if (!NAMES.includes(name)) {
    const near = nearest(name, NAMES);
    const hint = near ? `did you mean ${near}? ` : '';
    throw new HoldfastError(
      'BAD_PARAM',
      `unknown parameter '${name}': ${hint}expected one of ${NAMES.join(', ')}`,
    );
  }
  changedParams(defaultParams(), [[name, value]]); // throws if no drone would accept it
  return (members) => each(members, (member) => setParams(member, { [name]: value }));
}

/** @param {string} value @returns {(members: Member[]) => Promise<void>} */
function tellingStreams(value) {
  const streams = STREAMS.read(value);
  if (typeof streams !== 'number')
    throw new HoldfastError('BAD_PARAM', `streams got '${value}': expected ${STREAMS.expected}`);
  return (members) => {
    const shares = spread(streams, members.length);
    return each(members, (member, i) => setParams(member, { n: String(shares[i]) }));
  };
}

/** @param {string} name @param {string} value @param {number} count */
function textOf(name, value, count) {
  if (name === 'restart') return `${dronesText(count)} restarted`;
  if (name === 'streams') return `${formatNoun(Number(value), 'stream')} divided among ${dronesText(count)}`;
  return `${name} set to ${value} for ${count === 1 ? '' : 'each of '}${dronesText(count)}`;
}
