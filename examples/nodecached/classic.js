/*
 * The classic commands: get, set and so on. Each reads its line in place.
 */
import * as answers from './answers.js';
import { SHARED } from './counters.js';
import * as items from './items.js';
import { EXPIRES, FETCHED, HEAD_BYTES, LENGTH, META } from './layout.js';
import { readBig, readCas, readInt, readUint } from './numbers.js';
import { VERSION } from './options.js';
import { stats } from './stats.js';
import { expiryOf } from './times.js';

/** @typedef {import('./requests.js').Requests} Requests */
/** @typedef {import('./requests.js').Command} Command */
/** @typedef {import('./connection.js').Connection} Connection */

export const MOST_KEY = 250;
const SPACE = 32;
const VALUE = Buffer.from('VALUE ');
/** Kinds of get, as bits. */
const GET = 1;
const WITH_CAS = 2;
const TOUCH = 4;

/** @param {Requests} requests @param {Connection} connection @param {number} at after 'get ' */
export function get(requests, connection, at) {
  const { line, output } = requests;
  let first = at;
  while (first < line.end && line.bytes[first] === SPACE) first++;
  if (first === line.end) output.put(answers.ERROR);
  else startGet(requests, connection, GET, first);
}

/** @param {number} kind @returns {Command} */
const getting = (kind) => (requests, connection) => {
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
  if (requests.line.end - at > MOST_KEY && hasLongKey(requests.line, at)) {
    requests.output.put(answers.BAD_FORMAT);
    return;
  }
  connection.getting = kind;
  getKeys(requests, connection, at);
}

/** @param {Requests} requests @param {Connection} connection */
export const resumeGet = (requests, connection) => getKeys(requests, connection, requests.line.start);

/** @param {import('./line.js').Line} line @param {number} at */
const hasLongKey = ({ bytes, end }, at) =>
  bytes
    .latin1Slice(at, end)
    .split(' ')
    .some((key) => key.length > MOST_KEY);

/** @param {Requests} requests @param {Connection} connection @param {number} at of the rest of the line */
function getKeys(requests, connection, at) {
  const { line, output } = requests;
  const { bytes, end } = line;
  while (at < end) {
    if (bytes[at] === SPACE) {
      at++;
      continue;
    }
    if (connection.isBlocked) {
      requests.at = at; // the next keys wait until the answers have drained
      return;
    }
    let keyEnd = at;
    while (keyEnd < end && bytes[keyEnd] !== SPACE) keyEnd++;
    getOne(requests, connection, at, keyEnd);
    at = keyEnd;
  }
  connection.getting = 0;
  output.put(answers.END);
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
    putValue(requests, store, item, (kind & WITH_CAS) !== 0);
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
function countTouch(requests, item) {
  requests.count('cmd_touch');
  requests.count(item === 0 ? 'touch_misses' : 'touch_hits');
}

const RESULTS = [
  answers.STORED,
  answers.EXISTS,
  answers.NOT_FOUND,
  answers.NOT_STORED,
  answers.NO_MEMORY,
];

/** @param {number} mode @returns {Command} */
const storing = (mode) => (requests, connection) => {
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

/** @type {Command} */
function remove(requests) {
  const { line, output } = requests;
  if (line.count < 2 || line.count > 4) return output.put(answers.ERROR);
  if (line.count > 2) {
    requests.isQuiet = line.isQuiet();
    const isZero = line.text(2) === '0';
    const isValid = line.count === 3 ? isZero || requests.isQuiet : isZero && requests.isQuiet;
    if (!isValid) return requests.answer(answers.BAD_DELETE);
  }
  if (line.lengthOf(1) > MOST_KEY) return requests.answer(answers.BAD_FORMAT);
  const wasThere = removeKey(requests, line.starts[1], line.lengthOf(1));
  requests.count(wasThere ? 'delete_hits' : 'delete_misses');
  return requests.answer(wasThere ? answers.DELETED : answers.NOT_FOUND);
}

/** @type {Command} */
function touch(requests) {
  const { line, output } = requests;
  if (line.count !== 3 && line.count !== 4) return output.put(answers.ERROR);
  requests.isQuiet = line.isQuiet();
  if (line.lengthOf(1) > MOST_KEY) return requests.answer(answers.BAD_FORMAT);
  const exptime = readInt(line.bytes, line.starts[2], line.ends[2]);
  if (Number.isNaN(exptime)) return requests.answer(answers.BAD_EXPTIME);
  const hash = requests.hash(line.bytes, line.starts[1], line.ends[1]);
  const store = requests.storeOf(hash);
  store.lock();
  const item = store.find(line.bytes, line.starts[1], line.lengthOf(1), hash);
  if (item !== 0) {
    store.words[(item >> 2) + EXPIRES] = expiryOf(requests, exptime);
    store.words[(item >> 2) + META] |= FETCHED;
    store.use(item);
  }
  store.unlock();
  countTouch(requests, item);
  return requests.answer(item === 0 ? answers.NOT_FOUND : answers.TOUCHED);
}

/** @param {boolean} isIncrement @returns {Command} */
const counting = (isIncrement) => (requests) => {
  const { line, item, output } = requests;
  if (line.count !== 3 && line.count !== 4) return output.put(answers.ERROR);
  requests.isQuiet = line.isQuiet();
  if (line.lengthOf(1) > MOST_KEY) return requests.answer(answers.BAD_FORMAT);
  const delta = readBig(line.bytes, line.starts[2], line.ends[2]);
  if (delta === undefined) return requests.answer(answers.BAD_DELTA);
  item.bytes = line.bytes;
  item.key = line.starts[1];
  item.keyLength = line.lengthOf(1);
  item.isBinary = false;
  item.hash = requests.hash(line.bytes, line.starts[1], line.ends[1]);
  const store = requests.storeOf(item.hash);
  store.lock();
  const found = store.find(item.bytes, item.key, item.keyLength, item.hash);
  const result = found === 0 ? items.WAS_MISSING : items.add(store, item, found, isIncrement, delta);
  store.unlock();
  return answerCounting(requests, isIncrement, result);
};

/** @param {Requests} requests @param {boolean} isIncrement @param {bigint | number} result */
function answerCounting(requests, isIncrement, result) {
  const name = isIncrement ? 'incr' : 'decr';
  if (typeof result === 'bigint') {
    requests.count(`${name}_hits`);
    if (!requests.isQuiet) requests.output.text(`${result}\r\n`);
    return;
  }
  if (result === items.WAS_MISSING) requests.count(`${name}_misses`);
  const failed = result === items.FULL ? answers.NO_MEMORY_DELTA : answers.NON_NUMERIC;
  requests.answer(result === items.WAS_MISSING ? answers.NOT_FOUND : failed);
}

/** @type {Command} */
function flushAll(requests) {
  const { line, output, stores } = requests;
  if (line.count > 3) return output.put(answers.ERROR);
  requests.isQuiet = line.isQuiet();
  requests.count('cmd_flush');
  let delay = 0;
  if (line.count !== (requests.isQuiet ? 2 : 1)) delay = readInt(line.bytes, line.starts[1], line.ends[1]);
  if (Number.isNaN(delay)) return requests.answer(answers.BAD_EXPTIME);
  for (const store of stores) {
    store.lock();
    store.flush(delay > 0 ? expiryOf(requests, delay) : requests.now);
    store.unlock();
  }
  return requests.answer(answers.OK);
}

/** @type {Command} */
function verbosity(requests) {
  const { line, output } = requests;
  if (line.count !== 2 && line.count !== 3) return output.put(answers.ERROR);
  requests.isQuiet = line.isQuiet();
  const level = readUint(line.bytes, line.starts[1], line.ends[1]);
  if (Number.isNaN(level)) return requests.answer(answers.BAD_FORMAT);
  requests.shared.words[SHARED.verbosity] = Math.min(level, 2);
  return requests.answer(answers.OK);
}

/** @type {[string, Command][]} */
const COMMANDS = [
  ['get', getting(GET)],
  ['gets', getting(GET | WITH_CAS)],
  ['gat', getting(GET | TOUCH)],
  ['gats', getting(GET | TOUCH | WITH_CAS)],
  ['set', storing(items.SET)],
  ['add', storing(items.ADD)],
  ['replace', storing(items.REPLACE)],
  ['append', storing(items.APPEND)],
  ['prepend', storing(items.PREPEND)],
  ['cas', storing(items.COMPARE)],
  ['incr', counting(true)],
  ['decr', counting(false)],
  ['touch', touch],
  ['delete', remove],
  ['flush_all', flushAll],
  ['version', ({ output }) => output.text(`VERSION ${VERSION}\r\n`)],
  ['verbosity', verbosity],
  ['stats', stats],
  ['quit', (_requests, connection) => void (connection.isClosing = true)],
];

export const CLASSIC = new Map(COMMANDS);
