/*
 * The two transports as runs. The native one may not be built here.
 */
import { native, problem } from '../../native/index.js';

/** @param {...string} args for both @returns {import('./experiment.js').Run[]} */
export function bothTransports(...args) {
  return ['http', 'hold'].map((name) => ({
    name,
    args: ['--transport', name, ...args],
    skip: name === 'hold' ? noHold() : '',
  }));
}

/** @returns {string} why there is no hold transport; '' if there is one */
export function noHold() {
  return native ? '' : `native core unavailable: ${problem}`;
}
