/*
 * What the storage commands do to the items of a store. Its lock is held.
 */
import { BINARY_KEY, EXPIRES, FLAGS, HASH, HEAD_BYTES, LENGTH, META, STALE, TOKEN_SENT } from './layout.js';
import { digitsOf, readBig, writeNumber } from './numbers.js';
import { MOST_BYTES, Store } from './store.js';

/** How to store. */
export const SET = 0;
export const ADD = 1;
export const REPLACE = 2;
export const APPEND = 3;
export const PREPEND = 4;
export const COMPARE = 5;

/** How it went. */
export const DONE = 0;
export const WAS_THERE = 1; // with another cas
export const WAS_MISSING = 2;
export const REFUSED = 3;
export const FULL = 4;
export const IS_NO_NUMBER = 5;

const SPACE = 32;
const RETURN = 13;
const NEWLINE = 10;
const ZERO = 48;
/** Of a number's text so many bytes are read, after zeros and spaces: more than 64 bits need. */
const MOST_DIGITS = 64;
const WRAP = 2n ** 64n;

/** The line and the value of a storage command. */
export class Item {
  constructor() {
    /** @type {Buffer} */
    this.bytes = Buffer.alloc(0);
    this.valueBytes = this.bytes; // the same, unless the key had to be decoded
    this.key = 0;
    this.keyLength = 0;
    this.hash = 0;
    this.flags = 0;
    this.expires = 0;
    this.value = 0;
    this.length = 0;
    this.cas = 0; // 0: any
    this.mode = SET;
    this.isBinary = false;
    this.maySetStale = false;
  }
}

/** @param {number} flags @param {number} length @returns {number} length of ' flags length\r\n' */
const suffixLength = (flags, length) => digitsOf(flags) + digitsOf(length) + 4;

/** @param {Item} item @returns {boolean} whether it can be stored at all */
export const isTooLarge = ({ keyLength, flags, length }) =>
  Store.sizeOf(keyLength, suffixLength(flags, length), length) > MOST_BYTES;

/** @param {Store} store @param {Item} item @returns {number} how it went */
export function put(store, item) {
  const { mode, cas } = item;
  const old = store.find(item.bytes, item.key, item.keyLength, item.hash);
  if (old === 0) {
    if (mode === COMPARE) return WAS_MISSING;
    return mode === SET || mode === ADD ? create(store, item) : REFUSED;
  }
  if (mode === SET || mode === REPLACE) return replace(store, item, old, 0);
  if (mode === ADD) {
    store.use(old);
    return REFUSED;
  }
  if (mode === COMPARE) return compare(store, item, old);
  return cas !== 0 && cas !== store.casOf(old) ? WAS_THERE : extend(store, item, old);
}

/** @param {Store} store @param {Item} item @param {number} old @returns {number} */
function compare(store, item, old) {
  const { cas } = item;
  const own = store.casOf(old);
  if (cas === own) return replace(store, item, old, 0);
  if (cas === 0 || !item.maySetStale || cas > own) return WAS_THERE;
  // An old value may be set, if the item stays marked as one.
  item.expires = store.words[(old >> 2) + EXPIRES];
  return replace(store, item, old, STALE | (store.words[(old >> 2) + META] & TOKEN_SENT));
}

/** @param {Store} store @param {Item} item @param {number} old @param {number} bits that the new one has @returns {number} */
function replace(store, item, old, bits) {
  store.unlink(old); // its chunk is the next that is free
  const made = create(store, item);
  if (made === DONE && bits !== 0) mark(store, item, bits);
  return made;
}

/** @param {Store} store @param {Item} item @param {number} bits */
function mark(store, item, bits) {
  const made = store.find(item.bytes, item.key, item.keyLength, item.hash);
  if (made !== 0) store.words[(made >> 2) + META] |= bits;
}

/** @param {Store} store @param {Item} item @returns {number} */
function create(store, item) {
  const made = allocate(store, item, item.flags, item.expires, item.length);
  if (made === 0) return FULL;
  const at = store.valueAt(made);
  store.write(item.valueBytes, item.value, item.value + item.length + 2, at);
  store.link(made);
  return DONE;
}

/**
 * A chunk with everything but the value.
 * @param {Store} store @param {Item} item whose key it has @param {number} flags @param {number} expires @param {number} length
 * @returns {number} 0 if there is no room
 */
function allocate(store, { bytes, key, keyLength, hash, isBinary }, flags, expires, length) {
  const suffix = suffixLength(flags, length);
  const made = store.allocate(Store.sizeOf(keyLength, suffix, length));
  if (made === 0) return 0;
  const at = made >> 2;
  const { words } = store;
  words[at + HASH] = hash;
  words[at + EXPIRES] = expires;
  words[at + FLAGS] = flags;
  words[at + LENGTH] = length;
  words[at + META] |= keyLength | (suffix << 8) | (isBinary ? BINARY_KEY : 0);
  store.write(bytes, key, key + keyLength, made + HEAD_BYTES);
  writeSuffix(store.bytes, made + HEAD_BYTES + keyLength, flags, length);
  return made;
}

/** @param {Uint8Array} bytes @param {number} at @param {number} flags @param {number} length */
function writeSuffix(bytes, at, flags, length) {
  bytes[at] = SPACE;
  const afterFlags = writeNumber(bytes, at + 1, flags);
  bytes[afterFlags] = SPACE;
  const afterLength = writeNumber(bytes, afterFlags + 1, length);
  bytes[afterLength] = RETURN;
  bytes[afterLength + 1] = NEWLINE;
}

/** Append and prepend. @param {Store} store @param {Item} item @param {number} old @returns {number} */
function extend(store, item, old) {
  const { words, bytes } = store;
  const oldLength = words[(old >> 2) + LENGTH];
  const flags = words[(old >> 2) + FLAGS] >>> 0;
  const length = oldLength + item.length;
  if (Store.sizeOf(item.keyLength, suffixLength(flags, length), length) > MOST_BYTES) return REFUSED;
  store.pinned = old;
  const made = allocate(store, item, flags, words[(old >> 2) + EXPIRES], length);
  store.pinned = 0;
  if (made === 0) return REFUSED;
  const to = store.valueAt(made);
  const from = store.valueAt(old);
  const isAppend = item.mode === APPEND;
  bytes.copyWithin(isAppend ? to : to + item.length, from, from + oldLength + 2);
  const at = isAppend ? to + oldLength : to;
  // Behind a prepended value is the old one, which ends the line.
  store.write(item.valueBytes, item.value, item.value + item.length + (isAppend ? 2 : 0), at);
  store.unlink(old);
  store.link(made);
  return DONE;
}

/**
 * @param {Store} store @param {Item} item the key @param {number} found @param {boolean} isIncrement @param {bigint} delta
 * @returns {bigint | number} the new value, or how it went
 */
export function add(store, item, found, isIncrement, delta) {
  const length = store.words[(found >> 2) + LENGTH];
  const end = store.valueAt(found) + length;
  const at = digitsAt(store.bytes, store.valueAt(found), end);
  const value = length === 0 ? undefined : readBig(store.bytes, at, Math.min(end, at + MOST_DIGITS));
  if (value === undefined) return IS_NO_NUMBER;
  const less = delta > value ? 0n : value - delta;
  const result = isIncrement ? (value + delta) % WRAP : less;
  return setNumber(store, item, found, result.toString()) ? result : FULL;
}

/** Skips what comes before a long number, without making a text of up to 1 MB. @param {Uint8Array} bytes @param {number} start @param {number} end @returns {number} */
function digitsAt(bytes, start, end) {
  let at = start;
  while (end - at > MOST_DIGITS && (bytes[at] === SPACE || bytes[at] === ZERO)) at++;
  return at;
}

/** In place if there is room: then spaces follow, as in memcached. @param {Store} store @param {Item} item @param {number} found @param {string} digits @returns {boolean} */
function setNumber(store, item, found, digits) {
  const { words } = store;
  const length = words[(found >> 2) + LENGTH];
  if (digits.length <= length) {
    const at = store.valueAt(found);
    store.bytes.write(digits, at, 'latin1');
    store.bytes.fill(SPACE, at + digits.length, at + length);
    store.use(found);
    store.renew(found);
    return true;
  }
  item.flags = words[(found >> 2) + FLAGS] >>> 0;
  item.expires = words[(found >> 2) + EXPIRES];
  store.unlink(found);
  return createNumber(store, item, digits) !== 0;
}

/** @param {Store} store @param {Item} item @param {string} digits at most 20 @returns {number} the item, or 0 if there is no room */
export function createNumber(store, item, digits) {
  const made = allocate(store, item, item.flags, item.expires, digits.length);
  if (made === 0) return 0;
  const at = store.valueAt(made);
  store.bytes.write(`${digits}\r\n`, at, 'latin1');
  store.link(made);
  return made;
}
