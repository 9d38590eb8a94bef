/*
 * What the meta commands share: their keys, which may be in base64, and what they say of an item.
 */
import * as items from '../items.js';
import { BINARY_KEY, EXPIRES, FETCHED, FLAGS, HEAD_BYTES, LENGTH, META, USED_AT } from '../layout.js';
import { MOST_KEY } from '../line.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */

const MOST_META_TOKENS = 19;
export const BAD_FORMAT = 'CLIENT_ERROR bad command line format';
export const BAD_FLAG = 'CLIENT_ERROR invalid or duplicate flag';
export const LONG_OPAQUE = 'CLIENT_ERROR opaque token too long';

/** The key of a meta command, decoded. @typedef {{ bytes: Buffer, start: number, length: number, hash: number, store: Store }} Key */

/** @param {Requests} requests @param {MetaFlags} flags @returns {Key} */
export function readKey(requests, flags) {
  const { line } = requests;
  const bytes = flags.key ?? line.bytes;
  const start = flags.key ? 0 : line.starts[1];
  const length = flags.key ? bytes.length : line.lengthOf(1);
  const hash = requests.hash(bytes, start, start + length);
  return { bytes, start, length, hash, store: requests.storeOf(hash) };
}

/** @param {Requests} requests @param {string} tooMany @returns {string} what is wrong with the line, or '' */
export function problemOf({ line }, tooMany) {
  if (line.lengthOf(1) > MOST_KEY) return BAD_FORMAT;
  return line.count > MOST_META_TOKENS ? tooMany : '';
}

/** Errors are said to quiet clients too. @param {Requests} requests @param {string} problem */
export const refuse = ({ output }, problem) => output.text(`${problem}\r\n`);

/** @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {boolean} isBinary @returns {string} the flags of an answer without an item */
export const echo = ({ line }, flags, key, isBinary) =>
  flags.list
    .map(({ letter, token }) => {
      if (letter === 'O') return ` ${line.text(token)}`;
      return letter === 'k' ? keyText(key.bytes, key.start, key.length, isBinary) : '';
    })
    .join('');

/** @param {Buffer} bytes @param {number} start @param {number} length @param {boolean} isBinary */
export const keyText = (bytes, start, length, isBinary) =>
  isBinary
    ? ` k${bytes.subarray(start, start + length).toString('base64')} b`
    : ` k${bytes.toString('latin1', start, start + length)}`;

/** What mg and ma say of an item, by flag. @type {Record<string, (requests: Requests, store: Store, item: number, token: number) => string>} */
export const FACTS = {
  O: ({ line }, _store, _item, token) => ` ${line.text(token)}`,
  k: (_requests, { bytes, words }, item) => {
    const meta = words[(item >> 2) + META];
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
  h: (_requests, { words }, item) => ` h${words[(item >> 2) + META] & FETCHED ? 1 : 0}`,
};

/** Makes an item for a key that has none. @param {Requests} requests @param {MetaFlags} flags @param {Key} key @param {string} value @returns {number} 0 if there is no room */
export function vivify(requests, flags, key, value) {
  const { item } = requests;
  fillKey(item, key, flags);
  item.isBinary = false; // memcached forgets it here
  item.flags = 0;
  item.expires = 0;
  return items.createNumber(key.store, item, value);
}

/** @param {items.Item} item @param {Key} key @param {MetaFlags} flags */
export function fillKey(item, key, flags) {
  item.bytes = key.bytes;
  item.key = key.start;
  item.keyLength = key.length;
  item.hash = key.hash;
  item.isBinary = flags.has.has('b');
}
