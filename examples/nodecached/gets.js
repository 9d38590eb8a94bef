/*
 * get, gets, gat and gats. A get whose answers don't drain stops between two keys, and goes on when they have.
 */
import * as answers from './answers.js';
import { EXPIRES, FETCHED, HEAD_BYTES, LENGTH, META } from './layout.js';
import { MOST_KEY } from './line.js';
import { readInt } from './numbers.js';
import { expiryOf } from './times.js';

/** @typedef {import('./requests.js').Requests} Requests */
/** @typedef {import('./requests.js').Command} Command */
/** @typedef {import('./connection.js').Connection} Connection */

const SPACE = 32;
const VALUE = Buffer.from('VALUE ');
/** Kinds of get, as bits. */
export const GET = 1;
export const WITH_CAS = 2;
export const TOUCH = 4;
const REFUSED = 8; // a key is too long: those before it are used, but not answered

/** @param {Requests} requests @param {Connection} connection @param {number} at after 'get ' */
export function get(requests, connection, at) {
  const { line, output } = requests;
  let first = at;
  while (first < line.end && line.bytes[first] === SPACE) first++;
  if (first === line.end) output.put(answers.ERROR);
  else startGet(requests, connection, GET, first);
}

/** @param {number} kind @returns {Command} */
export const getting = (kind) => (requests, connection) => {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  if (!(kind & TOUCH)) return startGet(requests, connection, kind, line.starts[1]);
  const exptime = readInt(line.bytes, line.starts[1], line.ends[1]);
  if (Number.isNaN(exptime)) return output.put(answers.BAD_EXPTIME);
  connection.expires = expiryOf(requests, exptime);
  return startGet(requests, connection, kind, line.ends[1]);
};

/** @param {Requests} requests @param {Connection} connection @param {number} kind @param {number} at of the first key */
function startGet(requests, connection, kind, at) {
  const isRefused = requests.line.end - at > MOST_KEY && hasLongKey(requests.line, at);
  connection.getting = isRefused ? kind | REFUSED : kind;
  getKeys(requests, connection, at);
}

/** @param {Requests} requests @param {Connection} connection */
export const resumeGet = (requests, connection) => getKeys(requests, connection, requests.line.start);

/** @param {import('./line.js').Line} line @param {number} at */
function hasLongKey({ bytes, end }, at) {
  for (let i = at, start = at; i < end; i++) {
    if (bytes[i] === SPACE) start = i + 1;
    else if (i - start >= MOST_KEY) return true;
  }
  return false;
}

/** @param {Requests} requests @param {Connection} connection @param {number} at of the rest of the line */
function getKeys(requests, connection, at) {
  const { line, output } = requests;
  const { bytes, end } = line;
  while (at < end) {
    if (bytes[at] === SPACE) {
      at++;
      continue;
    }
    if (connection.isBlocked || connection.isWaiting) {
      requests.at = at; // the next keys wait until the answers have drained, or for the next turn
      return;
    }
    let keyEnd = at;
    while (keyEnd < end && bytes[keyEnd] !== SPACE) keyEnd++;
    if (keyEnd - at > MOST_KEY) break;
    getOne(requests, connection, at, keyEnd);
    requests.spend(connection, 1);
    at = keyEnd;
  }
  output.put(connection.getting & REFUSED ? answers.BAD_FORMAT : answers.END);
  connection.getting = 0;
}

/** @param {Requests} requests @param {Connection} connection @param {number} start of the key @param {number} end */
function getOne(requests, connection, start, end) {
  const { bytes } = requests.line;
  const hash = requests.hash(bytes, start, end);
  const store = requests.storeOf(hash);
  const kind = connection.getting;
  store.lock();
  const item = store.find(bytes, start, end - start, hash);
  if (item !== 0) {
    if (kind & TOUCH) store.words[(item >> 2) + EXPIRES] = connection.expires;
    store.words[(item >> 2) + META] |= FETCHED;
    store.use(item);
    if (!(kind & REFUSED)) putValue(requests, store, item, (kind & WITH_CAS) !== 0);
  }
  store.unlock();
  if (kind & TOUCH) countTouch(requests, item);
  else requests.count(item === 0 ? 'get_misses' : 'get_hits');
}

/** @param {Requests} requests @param {import('./store.js').Store} store @param {number} item @param {boolean} withCas */
function putValue({ output }, store, item, withCas) {
  const keyAt = item + HEAD_BYTES;
  const valueAt = store.valueAt(item);
  const end = valueAt + store.words[(item >> 2) + LENGTH] + 2;
  output.put(VALUE);
  if (!withCas) return output.copy(store, keyAt, end);
  output.copy(store, keyAt, valueAt - 2);
  output.reserve(32);
  output.bytes[output.length++] = SPACE;
  output.number(store.casOf(item));
  return output.copy(store, valueAt - 2, end);
}

/** @param {Requests} requests @param {number} item */
export function countTouch(requests, item) {
  requests.count('cmd_touch');
  requests.count(item === 0 ? 'touch_misses' : 'touch_hits');
}
