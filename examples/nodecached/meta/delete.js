/*
 * md: deletes an item, or marks it as stale.
 */
import * as answers from '../answers.js';
import { EXPIRES, META, STALE, TOKEN_SENT } from '../layout.js';
import { hasLongOpaque, readFlags } from './flags.js';
import { BAD_FLAG, echo, LONG_OPAQUE, problemOf, readKey, refuse } from './key.js';

/** @typedef {import('../requests.js').Requests} Requests */
/** @typedef {import('../requests.js').Command} Command */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('./flags.js').MetaFlags} MetaFlags */

/** @type {Command} */
export function metaDelete(requests) {
  const { line, output } = requests;
  if (line.count < 2) return output.put(answers.ERROR);
  const flags = readFlags(requests, 2);
  const problem = problemOf(requests, 'CLIENT_ERROR options flags too long') || (flags.problem && BAD_FLAG);
  if (problem) return refuse(requests, problem);
  const key = readKey(requests, flags);
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
  store.words[at + META] = (store.words[at + META] | STALE) & ~TOKEN_SENT;
  store.renew(found);
  return 'HD';
}
