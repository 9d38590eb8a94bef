/*
 * The cores that an experiment may use, and how a server and its client get one each.
 */
import { readFileSync } from 'node:fs';
import { findCommand } from './install.js';

/** @returns {number[]} such as those in '0-1,4' */
export function allowedCores() {
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return coresIn(list);
}

/** @param {string} list such as '0-1,4' @returns {number[]} */
export function coresIn(list) {
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** @returns {number} */
export function coreCount() {
  return allowedCores().length;
}

/** Of the cores that we may use: the server gets the first, the client the second. */
const PLACES = { server: 0, client: 1 };

/** @param {keyof typeof PLACES} place @returns {string[]} what precedes a command that must run on that core */
export function pinned(place) {
  return ['taskset', '-c', String(allowedCores()[PLACES[place]])];
}

/** @returns {string} why a server and its client can't have a core each; '' if they can */
export function noTwoCores() {
  if (!findCommand('taskset')) return 'taskset is not installed (Debian: util-linux)';
  const count = coreCount();
  return count < 2
    ? `the server and the client need a core each, and this process may use only ${count}`
    : '';
}
