/*
 * From the figures of single trials to those of runs: median, smallest, largest. Pure.
 */
import { medianOf } from './phases.js';

/**
 * @typedef {object} Summary of a figure in a run, over its repeats
 * @property {number} median
 * @property {number} least
 * @property {number} most
 * @property {number} count how many values it has
 *
 * @typedef {object} Outcome of one trial, or of one measurement in a round
 * @property {string} run
 * @property {number} repeat from 1
 * @property {import('./experiment.js').Values} values
 */

export class Findings {
  /**
   * @param {import('./experiment.js').Figure[]} figures
   * @param {string[]} runs names, in their order
   * @param {Outcome[]} outcomes
   */
  constructor(figures, runs, outcomes) {
    this.figures = figures;
    this.outcomes = outcomes;
    this.runs = runs.filter((name) => outcomes.some(({ run }) => run === name));
  }

  /** @param {string} figure @returns {import('./experiment.js').Figure} */
  figure(figure) {
    const found = this.figures.find(({ name }) => name === figure);
    if (!found) throw new Error(`the experiment has no figure '${figure}'`);
    return found;
  }

  /** @param {string} figure @param {string} run @returns {Summary | null} null when it is not known */
  of(figure, run) {
    const values = this.valuesOf(figure, run);
    if (values.length === 0) return null;
    return {
      median: medianOf(values),
      least: Math.min(...values),
      most: Math.max(...values),
      count: values.length,
    };
  }

  /** @param {string} figure @param {string} run @returns {number[]} all known values */
  valuesOf(figure, run) {
    const { name } = this.figure(figure);
    return this.outcomes
      .filter((outcome) => outcome.run === run)
      .map((outcome) => outcome.values[name] ?? Number.NaN)
      .filter(Number.isFinite);
  }
}
