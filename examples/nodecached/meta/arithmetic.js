/*
 * ma: adds to a number, or subtracts from it; may make it.
 */
import * as answers from '../answers.js';
import * as items from '../items.js';
import { EXPIRES, LENGTH } from '../layout.js';
import { hasLongOpaque, readFlags } from './flags.js';
import {
  BAD_FLAG,
  echo,
  FACTS,
  fillKey,
  keyText,
  LONG_OPAQUE,
  problemOf,
  readKey,
  refuse,
  vivify,
} from './key.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */
/** @typedef {import('./key.js').Key} Key */

/** @type {Command} */
export function metaArithmetic(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags too long') || (flags.problem && BAD_FLAG);
  if (problem) return refuse(requests, problem);
  if (!['', 'I', '+', 'D', '-'].includes(flags.mode))
    return refuse(requests, 'CLIENT_ERROR invalid mode for ma M token');
  const key = readKey(requests, flags);
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
  key.store.lock();
  const text = calculate(requests, flags, key);
  key.store.unlock();
  if (text) output.text(`${text}\r\n`);
  return undefined;
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @returns {string} the answer, or '' for none */
function calculate(requests, flags, key) {
  const { item } = requests;
  const { store } = key;
  const isIncrement = !['D', '-'].includes(flags.mode);
  const name = isIncrement ? 'incr' : 'decr';
  const found = store.find(key.bytes, key.start, key.length, key.hash);
  if (found === 0) {
    if (flags.has.has('N')) return created(requests, flags, key);
    requests.count(`${name}_misses`);
    return `NF${echo(requests, flags, key, flags.has.has('b'))}`;
  }
  const isEmpty = store.words[(found >> 2) + LENGTH] === 0; // which memcached notices before the cas
  if (!isEmpty && flags.cas !== 0 && store.casOf(found) !== flags.cas)
    return `EX${echo(requests, flags, key, flags.has.has('b'))}`;
  fillKey(item, key, flags);
  const result = items.add(store, item, found, isIncrement, flags.delta);
  if (result === items.IS_NO_NUMBER) return 'CLIENT_ERROR cannot increment or decrement non-numeric value';
  if (typeof result === 'number') return 'SERVER_ERROR out of memory';
  requests.count(`${name}_hits`);
  const now = store.find(key.bytes, key.start, key.length, key.hash);
  return flags.has.has('q') ? '' : calculated(requests, flags, key, now, String(result), false);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @returns {string} */
function created(requests, flags, key) {
  const made = vivify(requests, flags, key, String(flags.initial));
  if (made === 0) return 'SERVER_ERROR Out of memory allocating new item';
  return calculated(requests, flags, key, made, String(flags.initial), true);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {number} item @param {string} value @param {boolean} isNew @returns {string} */
function calculated(requests, flags, key, item, value, isNew) {
  const { store } = key;
  const facts = flags.list.map(({ letter, token }) => {
    if (letter === 'T') store.words[(item >> 2) + EXPIRES] = flags.exptime;
    if (letter === 'N' && isNew) store.words[(item >> 2) + EXPIRES] = flags.vivifyExptime;
    if (letter === 'k') return keyText(key.bytes, key.start, key.length, flags.has.has('b'));
    return 'Otc'.includes(letter) ? FACTS[letter](requests, store, item, token) : '';
  });
  return flags.has.has('v') ? `VA ${value.length}${facts.join('')}\r\n${value}` : `HD${facts.join('')}`;
}
