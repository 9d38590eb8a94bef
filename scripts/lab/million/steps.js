/*
 * Steps of a run among its figures, so that its report has all of them: a value 'step 3 rate' for each figure of a step. Pure.
 */
import { valueText } from '../text.js';

const KEY = /^step (\d+) (\w+)$/;

/** @typedef {Record<string, number | null>} Step figures by name */
/** @typedef {{ name: string, text: string, unit: import('../experiment.js').Figure['unit'] }} Column */

/** @param {Step[]} steps @returns {import('../experiment.js').Values} */
export function valuesOfSteps(steps) {
  return Object.fromEntries(
    steps.flatMap((step, i) => Object.entries(step).map(([name, value]) => [`step ${i + 1} ${name}`, value])),
  );
}

/** @param {import('../experiment.js').Values} values @returns {Step[]} */
export function stepsIn(values) {
  /** @type {Step[]} */
  const steps = [];
  for (const [key, value] of Object.entries(values)) {
    const [, number, name] = KEY.exec(key) ?? [];
    if (!number) continue;
    steps[Number(number) - 1] ??= {};
    steps[Number(number) - 1][name] = value;
  }
  return steps;
}

/** @param {Step} step @param {Column[]} columns @returns {string[]} cells of a table */
export function cellsOf(step, columns) {
  return columns.map(({ name, unit }) => {
    const value = step[name] ?? null;
    return value === null ? '-' : valueText(value, unit);
  });
}
