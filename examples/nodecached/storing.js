/*
 * set, add, replace, append, prepend and cas.
 */
import * as answers from './answers.js';
import * as items from './items.js';
import { MOST_KEY } from './line.js';
import { readCas, readInt, readUint } from './numbers.js';
import { expiryOf } from './times.js';

/** @typedef {import('./requests.js').Requests} Requests */
/** @typedef {import('./requests.js').Command} Command */
/** @typedef {import('./connection.js').Connection} Connection */

const RESULTS = [answers.STORED, answers.EXISTS, answers.NOT_FOUND, answers.NOT_STORED, answers.NO_MEMORY];

/** @param {number} mode @returns {Command} */
export const storing = (mode) => (requests, connection) => {
  const { line, item } = requests;
  const most = mode === items.COMPARE ? 6 : 5;
  if (line.count !== most && line.count !== most + 1) return requests.output.put(answers.ERROR);
  requests.isQuiet = line.count === most + 1 && line.isQuiet();
  item.mode = mode;
  if (!readStoring(requests)) return requests.answer(answers.BAD_FORMAT);
  return storeItem(requests, connection);
};

/** Reads a line such as: set key flags exptime length [cas] [noreply]. @param {Requests} requests @returns {boolean} */
function readStoring(requests) {
  const { line, item } = requests;
  const { bytes, starts, ends } = line;
  const keyLength = ends[1] - starts[1];
  const flags = readUint(bytes, starts[2], ends[2]);
  const exptime = readInt(bytes, starts[3], ends[3]);
  const length = readInt(bytes, starts[4], ends[4]);
  const cas = item.mode === items.COMPARE ? readCas(bytes, starts[5], ends[5]) : 0;
  if (keyLength > MOST_KEY || !(length >= 0) || length > 0x7ffffffd) return false;
  if (Number.isNaN(flags) || Number.isNaN(exptime) || Number.isNaN(cas)) return false;
  item.bytes = bytes;
  item.valueBytes = bytes;
  item.key = starts[1];
  item.keyLength = keyLength;
  item.flags = flags;
  item.expires = expiryOf(requests, exptime);
  item.length = length;
  item.cas = cas;
  item.isBinary = false;
  item.maySetStale = false;
  return true;
}

/** @param {Requests} requests @param {Connection} connection */
function storeItem(requests, connection) {
  const { item, line } = requests;
  if (items.isTooLarge(item)) return refuseLarge(requests, connection);
  if (!takeValue(requests, connection)) return undefined;
  requests.count('cmd_set');
  if (!endsLine(item)) return requests.answer(answers.BAD_CHUNK);
  item.hash = requests.hash(line.bytes, item.key, item.key + item.keyLength);
  const store = requests.storeOf(item.hash);
  store.lock();
  const result = items.put(store, item);
  store.unlock();
  if (item.mode === items.COMPARE) countCompare(requests, result);
  if (result === items.FULL) requests.count('store_no_memory');
  return requests.answer(RESULTS[result]);
}

/** @param {Requests} requests @param {number} result */
function countCompare(requests, result) {
  if (result === items.DONE) requests.count('cas_hits');
  else requests.count(result === items.WAS_MISSING ? 'cas_misses' : 'cas_badval');
}

/** The value follows the line: if it hasn't arrived, the connection calls again when it has. @param {Requests} requests @param {Connection} connection @returns {boolean} */
export function takeValue(requests, connection) {
  const { item, line } = requests;
  item.value = line.next;
  const next = line.next + item.length + 2;
  connection.need = next > requests.end ? next - line.start : 0;
  requests.at = next;
  return connection.need === 0;
}

/** @param {import('./items.js').Item} item @returns {boolean} */
export const endsLine = ({ valueBytes, value, length }) =>
  valueBytes[value + length] === 13 && valueBytes[value + length + 1] === 10;

/** @param {Requests} requests @param {Connection} connection */
function refuseLarge(requests, connection) {
  const { item } = requests;
  requests.count('store_too_large');
  connection.swallow = item.length + 2;
  if (item.mode === items.SET) removeKey(requests, item.key, item.keyLength); // rather none than an old one
  requests.answer(answers.TOO_LARGE);
}

/** @param {Requests} requests @param {number} start @param {number} length @returns {boolean} whether it was there */
export function removeKey(requests, start, length) {
  const { bytes } = requests.line;
  const hash = requests.hash(bytes, start, start + length);
  const store = requests.storeOf(hash);
  store.lock();
  const found = store.find(bytes, start, length, hash);
  if (found !== 0) store.unlink(found);
  store.unlock();
  return found !== 0;
}
