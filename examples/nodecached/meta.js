/*
 * The meta commands: mg, ms, md, ma, me and mn. They are rarer than get and set here, so they are written to be short, not fast.
 */
import * as answers from './answers.js';
import { endsLine, MOST_KEY, takeValue } from './classic.js';
import { hasLongOpaque, readFlags } from './flags.js';
import * as items from './items.js';
import {
  BINARY_KEY,
  EXPIRES,
  FETCHED,
  FLAGS,
  HEAD_BYTES,
  LENGTH,
  META as META_WORD,
  SIZES,
  STALE,
  TOKEN_SENT,
  USED_AT,
} from './layout.js';

/** @typedef {import('./requests.js').Requests} Requests */
/** @typedef {import('./requests.js').Command} Command */
/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */

const MOST_META_TOKENS = 19;
const BAD_FORMAT = 'CLIENT_ERROR bad command line format';
const BAD_FLAG = 'CLIENT_ERROR invalid or duplicate flag';
const LONG_OPAQUE = 'CLIENT_ERROR opaque token too long';

/** The key of a meta command, decoded. @typedef {{ bytes: Buffer, start: number, length: number, hash: number, store: Store }} Key */

/**
 * Checks what all of them share, and finds the key.
 * @param {Requests} requests @param {MetaFlags} flags
 * @returns {Key | string} a string is the problem
 */
function readKey(requests, flags) {
  const { line } = requests;
  let bytes = line.bytes;
  let start = line.starts[1];
  let length = line.lengthOf(1);
  if (flags.has.has('b')) {
    bytes = decodeKey(line.text(1));
    if (bytes.length === 0) return 'CLIENT_ERROR error decoding key';
    start = 0;
    length = bytes.length;
  }
  const hash = requests.hash(bytes, start, start + length);
  return { bytes, start, length, hash, store: requests.storeOf(hash) };
}

/** @param {string} text @returns {Buffer} empty if it is not base64 */
const decodeKey = (text) =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);

/** @param {Requests} requests @param {string} tooMany @returns {string} what is wrong with the line, or '' */
function problemOf({ line }, tooMany) {
  if (line.lengthOf(1) > MOST_KEY) return BAD_FORMAT;
  return line.count > MOST_META_TOKENS ? tooMany : '';
}

/** Errors are said to quiet clients too. @param {Requests} requests @param {string} problem */
const refuse = ({ output }, problem) => output.text(`${problem}\r\n`);

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {boolean} isBinary @returns {string} the flags of an answer without an item */
const echo = ({ line }, flags, key, isBinary) =>
  flags.list
    .map(({ letter, token }) => {
      if (letter === 'O') return ` ${line.text(token)}`;
      return letter === 'k' ? keyText(key.bytes, key.start, key.length, isBinary) : '';
    })
    .join('');

/** @param {Buffer} bytes @param {number} start @param {number} length @param {boolean} isBinary */
const keyText = (bytes, start, length, isBinary) =>
  isBinary
    ? ` k${bytes.subarray(start, start + length).toString('base64')} b`
    : ` k${bytes.latin1Slice(start, start + length)}`;

/** What mg and ma say of an item, by flag. @type {Record<string, (requests: Requests, store: Store, item: number, token: number) => string>} */
const FACTS = {
  O: ({ line }, _store, _item, token) => ` ${line.text(token)}`,
  k: (_requests, { bytes, words }, item) => {
    const meta = words[(item >> 2) + META_WORD];
    return keyText(bytes, item + HEAD_BYTES, meta & 255, (meta & BINARY_KEY) !== 0);
  },
  s: (_requests, { words }, item) => ` s${words[(item >> 2) + LENGTH]}`,
  t: (requests, { words }, item) => {
    const expires = words[(item >> 2) + EXPIRES];
    return ` t${expires === 0 ? -1 : expires - requests.now}`;
  },
  c: (_requests, store, item) => ` c${store.casOf(item)}`,
  f: (_requests, { words }, item) => ` f${words[(item >> 2) + FLAGS] >>> 0}`,
  l: (requests, { words }, item) => ` l${requests.now - words[(item >> 2) + USED_AT]}`,
  h: (_requests, { words }, item) => ` h${words[(item >> 2) + META_WORD] & FETCHED ? 1 : 0}`,
};

/** @type {Command} */
function metaGet(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags are too long') || flags.problem;
  if (problem) return refuse(requests, problem);
  const key = readKey(requests, flags);
  if (typeof key === 'string') return refuse(requests, key);
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
  key.store.lock();
  const found = key.store.find(key.bytes, key.start, key.length, key.hash);
  const item = found || (flags.has.has('N') ? vivify(requests, flags, key, '') : 0);
  if (item !== 0) answerMetaGet(requests, flags, key.store, item, item !== found);
  key.store.unlock();
  requests.count(item === 0 ? 'get_misses' : 'get_hits');
  if (item !== 0 || flags.has.has('q')) return undefined;
  return output.text(`EN${echo(requests, flags, key, flags.has.has('b'))}\r\n`);
}

/** Makes an item for a key that has none. @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {string} value @returns {number} 0 if there is no room */
function vivify(requests, flags, key, value) {
  const { item } = requests;
  fillKey(item, key, flags);
  item.flags = 0;
  item.expires = 0;
  return items.createNumber(key.store, item, value);
}

/** @param {items.Item} item @param {Key} key @param {MetaFlags} flags */
function fillKey(item, key, flags) {
  item.bytes = key.bytes;
  item.key = key.start;
  item.keyLength = key.length;
  item.hash = key.hash;
  item.isBinary = flags.has.has('b');
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Store} store @param {number} item @param {boolean} isNew */
function answerMetaGet(requests, flags, store, item, isNew) {
  const { output } = requests;
  const at = item >> 2;
  const bits = store.words[at + META_WORD];
  let wins = (bits & STALE) !== 0 && (bits & TOKEN_SENT) === 0;
  const facts = flags.list.map(({ letter, token }) => {
    if (letter === 'T') store.words[at + EXPIRES] = flags.exptime;
    if (letter === 'N' && isNew) store.words[at + EXPIRES] = flags.vivifyExptime;
    wins ||= (letter === 'N' && isNew) || (letter === 'R' && !isNew && isDue(flags, store, at));
    return FACTS[letter]?.(requests, store, item, token) ?? '';
  });
  const length = store.words[at + LENGTH];
  const marks = `${bits & TOKEN_SENT ? ' Z' : ''}${bits & STALE ? ' X' : ''}${wins ? ' W' : ''}`;
  output.text(`${flags.has.has('v') ? `VA ${length}` : 'HD'}${facts.join('')}${marks}\r\n`);
  if (flags.has.has('v')) output.copy(store, store.valueAt(item), store.valueAt(item) + length + 2);
  if (wins) store.words[at + META_WORD] |= TOKEN_SENT;
  if (flags.has.has('u')) return;
  store.words[at + META_WORD] |= FETCHED;
  store.use(item);
}

/** Whether an item expires so soon that one client is told to renew it. @param {MetaFlags} flags @param {Store} store @param {number} at */
function isDue({ recacheAt }, { words }, at) {
  const expires = words[at + EXPIRES];
  return (words[at + META_WORD] & TOKEN_SENT) === 0 && expires !== 0 && expires < recacheAt;
}

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
function metaSet(requests, connection) {
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
  if (problem || typeof key === 'string') {
    connection.swallow = length + 2;
    return refuse(requests, problem);
  }
  if (!takeValue(requests, connection)) return undefined;
  requests.count('cmd_set');
  item.value = line.next;
  return finishSet(requests, flags, key);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Key | string} key @returns {string} */
function setProblem(requests, flags, key) {
  const { item } = requests;
  if (flags.problem) return flags.problem;
  if (typeof key === 'string') return key;
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

/** @type {Command} */
function metaDelete(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags too long') || (flags.problem && BAD_FLAG);
  if (problem) return refuse(requests, problem);
  const key = readKey(requests, flags);
  if (typeof key === 'string') return refuse(requests, BAD_FLAG);
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
  const { store } = key;
  store.lock();
  const found = store.find(key.bytes, key.start, key.length, key.hash);
  const result = found === 0 ? 'NF' : deleteOrMark(flags, store, found);
  store.unlock();
  requests.count(result === 'HD' ? 'delete_hits' : 'delete_misses');
  if (result === 'HD' && flags.has.has('q')) return undefined;
  return output.text(`${result}${echo(requests, flags, key, flags.has.has('b'))}\r\n`);
}

/** @param {MetaFlags} flags @param {Store} store @param {number} found @returns {string} */
function deleteOrMark(flags, store, found) {
  const at = found >> 2;
  if (flags.has.has('C') && store.casOf(found) !== flags.cas) return 'EX';
  if (!flags.has.has('I')) {
    store.unlink(found);
    return 'HD';
  }
  if (flags.has.has('T')) store.words[at + EXPIRES] = flags.exptime;
  store.words[at + META_WORD] = (store.words[at + META_WORD] | STALE) & ~TOKEN_SENT;
  store.renew(found);
  return 'HD';
}

/** @type {Command} */
function metaArithmetic(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags too long') || (flags.problem && BAD_FLAG);
  if (problem) return refuse(requests, problem);
  if (!['', 'I', '+', 'D', '-'].includes(flags.mode)) return refuse(requests, 'CLIENT_ERROR invalid mode for ma M token');
  const key = readKey(requests, flags);
  if (typeof key === 'string') return refuse(requests, BAD_FLAG);
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
  key.store.lock();
  const text = calculate(requests, flags, key);
  key.store.unlock();
  return text && output.text(`${text}\r\n`);
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
  if (flags.cas !== 0 && store.casOf(found) !== flags.cas)
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

/** @type {Command} */
function metaDebug(requests) {
  const { line, output } = requests;
  if (line.count < 2 || line.lengthOf(1) > MOST_KEY) return output.put(answers.BAD_FORMAT);
  const isBinary = line.count > 2 && line.text(2) === 'b';
  const bytes = isBinary ? decodeKey(line.text(1)) : Buffer.from(line.text(1), 'latin1');
  if (bytes.length === 0) return output.put(answers.BAD_FORMAT);
  requests.count('cmd_meta');
  const hash = requests.hash(bytes, 0, bytes.length);
  const store = requests.storeOf(hash);
  store.lock();
  const item = store.find(bytes, 0, bytes.length, hash);
  const text = item === 0 ? 'EN' : debugText(requests, store, item);
  store.unlock();
  return output.text(`${text}\r\n`);
}

/** @param {Requests} requests @param {Store} store @param {number} item */
function debugText({ now }, store, item) {
  const at = item >> 2;
  const { words, bytes } = store;
  const meta = words[at + META_WORD];
  const key = keyText(bytes, item + HEAD_BYTES, meta & 255, (meta & BINARY_KEY) !== 0).slice(2).replace(/ b$/, '');
  const expires = words[at + EXPIRES] === 0 ? -1 : now - words[at + EXPIRES];
  const fetched = meta & FETCHED ? 'yes' : 'no';
  const cls = (meta >> 16) & 255;
  return `ME ${key} exp=${expires} la=${now - words[at + USED_AT]} cas=${store.casOf(item)} fetch=${fetched} cls=${cls} size=${Math.min(store.sizeOfItem(item), SIZES[cls])}`;
}

/** @type {[string, Command][]} */
const COMMANDS = [
  ['mg', metaGet],
  ['ms', metaSet],
  ['md', metaDelete],
  ['ma', metaArithmetic],
  ['me', metaDebug],
  ['mn', ({ output }) => output.put(answers.MN)],
];

export const META = new Map(COMMANDS);
