/*
 * What it costs to read a clock, and to measure with the profiler.
 */
import { now } from '../../../../examples/microprofiler/clock.js';
import { Profiler } from '../../../../examples/microprofiler/profiler.js';
import { loop } from './inputs.js';

/** @typedef {import('../micro.js').Case} Case */

const { hrtime } = process;

// biome-ignore format: a table reads best with a row a line
/** @type {Case[]} */
export const CLOCKS = [
  loop('clockHrtime', 'process.hrtime(), as the profiler reads it', () => (now() > 0 ? 1 : 0)),
  loop('clockBigint', 'process.hrtime.bigint()', () => (hrtime.bigint() > 0n ? 1 : 0)),
  loop('clockBigintNumber', 'Number(process.hrtime.bigint())', () => (Number(hrtime.bigint()) > 0 ? 1 : 0)),
  loop('clockPerformance', 'performance.now()', () => (performance.now() > 0 ? 1 : 0)),
  loop('clockDate', 'Date.now(), which knows only ms', () => (Date.now() > 0 ? 1 : 0)),
];

/** @param {string} name @param {string} text @param {number} every @returns {Case} */
function measured(name, text, every) {
  const profiler = new Profiler({ every });
  return loop(name, text, () => {
    profiler.measure(profiler.start(), 'case');
    return 1;
  });
}

/** A program that measures only if it is told to. @returns {Case} */
function switchedOff() {
  const profiler = process.argv.includes('--profile') ? new Profiler() : null;
  return loop('measureOff', 'switched off with an if', () => {
    const start = profiler ? profiler.start() : 0;
    if (profiler) profiler.measure(start, 'case');
    return 1;
  });
}

/** A method, as the servers have them. @param {string} name @param {string} text @param {number} every 0: not measured @returns {Case} */
function method(name, text, every) {
  /** @type {new () => { sum: number, add: (by: number) => number }} */
  const Counter = new Function(
    `/* ${name} */ return class { sum = 0; add(by) { this.sum += by; return by; } };`,
  )();
  if (every > 0) new Profiler({ every }).wrapMethod(Counter.prototype, 'add', 'case');
  const counter = new Counter();
  return loop(name, text, () => counter.add(1));
}

/** @type {Case[]} */
export const MEASURING = [
  switchedOff(),
  measured('measureAll', 'start and measure, every call', 1),
  measured('measure16', 'start and measure, one call in 16', 16),
  measured('measure256', 'start and measure, one call in 256', 256),
  method('methodPlain', 'a method that is not measured', 0),
  method('methodAll', 'a method that is measured, every call', 1),
  method('method16', 'a method that is measured, one call in 16', 16),
];
