/*
 * The two transports as runs, one of which may not be built here.
 */
import { native, problem } from '../../native/index.js';

/** @param {...string} args that both are given @returns {import('./experiment.js').Run[]} */
export function bothTransports(...args) {
  return ['http', 'hold'].map((name) => ({
    name,
    args: ['--transport', name, ...args],
    skip: name === 'hold' ? noHold() : '',
  }));
}

/** @returns {string} why there is no hold transport; '' where there is */
export function noHold() {
  return native ? '' : `the native core is not built: ${problem}`;
}
