/*
 * Matches a text against a sequence of operations, in time proportional to the length of the text times their number, whatever
 * they are. (A regular expression that backtracks can take forever instead.)
 *
 * After most operations there is only one position to go on from. As soon as there are several, the matcher goes on with the set
 * of all of them.
 */
import { FORK, JOIN, NONE, SEVERAL } from './operations.js';
import { blank, codesOf, follow, saved } from './positions.js';

/** @typedef {import('./operations.js').Operation} Operation */

/** Operations use the slots from 2 on. The sets at the forks that have not been joined yet are in this slot and those after it. */
const FIRST_FORK = 6;

/**
 * @param {readonly Operation[]} program
 * @param {string} text
 * @returns {boolean} whether it matches from the first to the last character
 */
export function matches(program, text) {
  let at = 0;
  for (let i = 0; i < program.length; i++) {
    const operation = program[i];
    if (typeof operation === 'string') {
      if (!text.startsWith(operation, at)) return false;
      at += operation.length;
      continue;
    }
    const end = operation.only(text, at, program, i);
    if (end === SEVERAL) return simulate(program, i, text, at);
    if (end === NONE) return false;
    at = end;
  }
  return at === text.length;
}

/** @param {readonly Operation[]} program @param {number} start @param {string} text @param {number} from */
function simulate(program, start, text, from) {
  const codes = codesOf(text);
  const end = text.length + 1;
  let now = blank(0, text.length);
  let then = blank(1, text.length);
  let depth = 0;
  now[from] = 1;
  for (let i = start; i < program.length; i++) {
    const operation = program[i];
    if (operation === FORK) blank(FIRST_FORK + depth++, text.length).set(now.subarray(from, end), from);
    else if (operation === JOIN) add(saved(FIRST_FORK + --depth), now, from, end);
    else {
      const isAlive =
        typeof operation === 'string'
          ? follow(operation, codes, from, now, then)
          : operation.spread(codes, from, now, then);
      if (!isAlive && depth === 0) return false;
      [now, then] = [then, now];
      then.fill(0, from, end);
    }
  }
  return now[text.length] === 1;
}

/** @param {Uint8Array} before @param {Uint8Array} now gets its positions @param {number} from @param {number} end */
function add(before, now, from, end) {
  for (let at = from; at < end; at++) now[at] |= before[at];
}
