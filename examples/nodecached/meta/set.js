/*
 * ms: stores an item, in the mode that M chooses.
 */
import * as answers from '../answers.js';
import * as items from '../items.js';
import { endsLine, takeValue } from '../storing.js';
import { hasLongOpaque, readFlags } from './flags.js';
import { BAD_FORMAT, echo, fillKey, LONG_OPAQUE, problemOf, readKey, refuse } from './key.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */
/** @typedef {import('./key.js').Key} Key */

/** @type {Record<string, number>} */
const MODES = {
  '': items.SET,
  S: items.SET,
  E: items.ADD,
  A: items.APPEND,
  P: items.PREPEND,
  R: items.REPLACE,
};

/** By how it went. */
const SET_RESULTS = ['HD', 'EX', 'NF', 'NS'];

/** @type {Command} */
export function metaSet(requests, connection) {
  const { line, item, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const length = line.count > 2 ? Number(line.text(2)) : Number.NaN;
  const early = line.count < 3 ? BAD_FORMAT : problemOf(requests, 'CLIENT_ERROR options flags too long');
  if (early) return refuse(requests, early);
  if (!/^\d+$/.test(line.text(2)) || length > 0x7ffffffd) return refuse(requests, BAD_FORMAT);
  const flags = readFlags(requests, 3);
  item.length = length;
  const key = readKey(requests, flags);
  const problem = setProblem(requests, flags, key);
  if (problem) {
    connection.swallow = length + 2;
    return refuse(requests, problem);
  }
  if (!takeValue(requests, connection)) return undefined;
  requests.count('cmd_set');
  item.value = line.next;
  return finishSet(requests, flags, key);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @returns {string} */
function setProblem(requests, flags, key) {
  const { item } = requests;
  if (flags.problem) return flags.problem;
  if (hasLongOpaque(requests, flags)) return LONG_OPAQUE;
  const mode = MODES[flags.mode];
  if (mode === undefined) return 'CLIENT_ERROR invalid mode for ms M token';
  fillKey(item, key, flags);
  item.flags = flags.flags;
  item.expires = flags.exptime;
  item.cas = flags.cas;
  item.mode = flags.has.has('C') && (mode === items.SET || mode === items.REPLACE) ? items.COMPARE : mode;
  item.maySetStale = flags.has.has('I');
  if (!items.isTooLarge(item)) return '';
  requests.count('store_too_large');
  removeOf(key);
  return 'SERVER_ERROR object too large for cache';
}

/** @param {Key} key @returns {number} what it was, or 0 */
function removeOf({ store, bytes, start, length, hash }) {
  store.lock();
  const found = store.find(bytes, start, length, hash);
  if (found !== 0) store.unlink(found);
  store.unlock();
  return found;
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key */
function finishSet(requests, flags, key) {
  const { item, line, output } = requests;
  const { store } = key;
  item.valueBytes = line.bytes;
  if (!endsLine(item)) return output.put(answers.BAD_CHUNK);
  store.lock();
  const result = items.put(store, item);
  const made = result === items.DONE ? store.find(key.bytes, key.start, key.length, key.hash) : 0;
  const cas = made === 0 ? 0 : store.casOf(made);
  store.unlock();
  if (result === items.FULL) return output.put(answers.NO_MEMORY);
  if (result === items.DONE && flags.has.has('q')) return undefined;
  return output.text(`${SET_RESULTS[result]}${setEcho(requests, flags, key, cas)}\r\n`);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {number} cas */
const setEcho = (requests, flags, key, cas) =>
  flags.list
    .map((flag) => {
      if (flag.letter === 'c') return ` c${cas}`;
      return echo(requests, Object.assign(Object.create(flags), { list: [flag] }), key, flags.has.has('b'));
    })
    .join('');
