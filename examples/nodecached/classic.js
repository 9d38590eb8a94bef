/*
 * The classic commands. Each reads its line in place.
 */
import * as answers from './answers.js';
import { SHARED } from './counters.js';
import { countTouch, GET, getting, TOUCH, WITH_CAS } from './gets.js';
import * as items from './items.js';
import { EXPIRES, FETCHED, META } from './layout.js';
import { MOST_KEY } from './line.js';
import { readBig, readInt, readUint } from './numbers.js';
import { VERSION } from './options.js';
import { stats } from './stats.js';
import { removeKey, storing } from './storing.js';
import { expiryOf } from './times.js';

/** @typedef {import('./requests.js').Requests} Requests */
/** @typedef {import('./requests.js').Command} Command */

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

/** @type {Command} */
function quit(_requests, connection) {
  connection.isClosing = true;
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
  ['quit', quit],
];

export const CLASSIC = new Map(COMMANDS);
