/*
 * Compiles the pattern of one component of a URL.
 */
import { ANY, FORK, JOIN, Loop, Repeat, RUNS } from './operations.js';
import { parseParts } from './parts.js';
import { matches } from './program.js';
import { PatternError } from './tokens.js';

/**
 * @typedef {import('./parts.js').Part} Part
 * @typedef {import('./operations.js').Operation} Operation
 * @typedef {null | string | Operation[]} Compiled  null: everything matches; a string: only itself
 */

/** A pattern with more operations than that is refused: they are what a match costs. */
const MOST_OPERATIONS = 32;
/** What can be more than text in a pattern. */
const SPECIAL = /[\\*+?:{}()]/;

/**
 * @param {string} pattern
 * @param {import('./parts.js').Syntax} syntax
 * @returns {Compiled}
 */
export function compile(pattern, syntax) {
  if (pattern === '*') return null;
  if (!SPECIAL.test(pattern)) return pattern && syntax.canonical(pattern);
  const run = RUNS[/** @type {keyof typeof RUNS} */ (syntax.delimiter)];
  const program = join(parseParts(pattern, syntax).flatMap((part) => operationsOf(part, run)));
  if (program.length > MOST_OPERATIONS) throw new PatternError('too many groups');
  if (program.length === 0) return '';
  if (program.length === 1 && program[0] === ANY) return null;
  return program.length === 1 && typeof program[0] === 'string' ? program[0] : [...program];
}

/** @param {Compiled} compiled @param {string} text @returns {boolean} */
export function fits(compiled, text) {
  if (compiled === null) return true;
  return typeof compiled === 'string' ? compiled === text : matches(compiled, text);
}

/** @param {Part} part @param {import('./operations.js').Run} run @returns {Operation[]} */
function operationsOf({ type, prefix, suffix, modifier }, run) {
  const isBare = prefix === '' && suffix === '';
  const isOptional = modifier === '?' || modifier === '*';
  if (type === 'full' && isBare) return [ANY];
  const isRepeated = (modifier === '+' || modifier === '*') && !isBare && type !== 'full';
  const wildcard = type === 'full' ? [ANY] : type === 'segment' ? [run] : [];
  const once = isRepeated
    ? [type === 'fixed' ? new Repeat(prefix) : new Loop(prefix, run, suffix)]
    : [prefix, ...wildcard, suffix].filter((operation) => operation !== '');
  return isOptional ? [FORK, ...once, JOIN] : once;
}

/** Joins texts that follow each other, and drops a wildcard after the same. @param {Operation[]} operations */
function join(operations) {
  /** @type {Operation[]} */
  const program = [];
  for (const operation of operations) {
    const last = program.at(-1);
    if (typeof operation === 'string' && typeof last === 'string')
      program[program.length - 1] = last + operation;
    else if (operation !== ANY || last !== ANY) program.push(operation);
  }
  return program;
}
