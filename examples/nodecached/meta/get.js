/*
 * mg: reads an item, or facts of it; may make it, touch it, and choose one client to renew it.
 */
import * as answers from '../answers.js';
import { EXPIRES, FETCHED, LENGTH, META, STALE, TOKEN_SENT } from '../layout.js';
import { hasLongOpaque, readFlags } from './flags.js';
import { echo, FACTS, LONG_OPAQUE, problemOf, readKey, refuse, vivify } from './key.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */

/** @type {Command} */
export function metaGet(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags are too long') || flags.problem;
  if (problem) return refuse(requests, problem);
  const key = readKey(requests, flags);
  key.store.lock();
  const found = key.store.find(key.bytes, key.start, key.length, key.hash);
  const item = found || (flags.has.has('N') ? vivify(requests, flags, key, '') : 0);
  if (item !== 0) answerMetaGet(requests, flags, key.store, item, item !== found);
  key.store.unlock();
  requests.count(item === 0 ? 'get_misses' : 'get_hits');
  if (item !== 0) return undefined;
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
  if (flags.has.has('q')) return undefined;
  return output.text(`EN${echo(requests, flags, key, flags.has.has('b'))}\r\n`);
}

/** @param {Requests} requests @param {MetaFlags} flags @param {Store} store @param {number} item @param {boolean} isNew */
function answerMetaGet(requests, flags, store, item, isNew) {
  const { output } = requests;
  const at = item >> 2;
  const bits = store.words[at + META];
  if (hasLongOpaque(requests, flags)) return refuse(requests, LONG_OPAQUE);
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
  if (wins) store.words[at + META] |= TOKEN_SENT;
  if (flags.has.has('u')) return undefined;
  store.words[at + META] |= FETCHED;
  return store.use(item);
}

/** Whether an item expires so soon that one client is told to renew it. @param {MetaFlags} flags @param {Store} store @param {number} at */
function isDue({ recacheAt }, { words }, at) {
  const expires = words[at + EXPIRES];
  return (words[at + META] & TOKEN_SENT) === 0 && expires !== 0 && expires < recacheAt;
}
