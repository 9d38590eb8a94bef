/*
 * me: says what is known of an item.
 */
import * as answers from '../answers.js';
import { BINARY_KEY, EXPIRES, FETCHED, HEAD_BYTES, META, SIZES, USED_AT } from '../layout.js';
import { MOST_KEY } from '../line.js';
import { decodeKey } from './flags.js';
import { keyText } from './key.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */

/** @type {Command} */
export function metaDebug(requests) {
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
  const meta = words[at + META];
  const key = keyText(bytes, item + HEAD_BYTES, meta & 255, (meta & BINARY_KEY) !== 0)
    .slice(2)
    .replace(/ b$/, '');
  const expires = words[at + EXPIRES] === 0 ? -1 : now - words[at + EXPIRES];
  const fetched = meta & FETCHED ? 'yes' : 'no';
  const cls = (meta >> 16) & 255;
  return `ME ${key} exp=${expires} la=${now - words[at + USED_AT]} cas=${store.casOf(item)} fetch=${fetched} cls=${cls} size=${Math.min(store.sizeOfItem(item), SIZES[cls])}`;
}
