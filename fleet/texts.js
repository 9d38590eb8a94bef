/*
 * Parameters of drones as texts, which is how they travel from the command to a drone. Pure.
 */
import { FLAG } from '../lib/options.js';
import { PARAMS } from './drone/params.js';

/** By name; a parameter that repeats has a list. @typedef {Record<string, string | string[]>} Texts */

/** @param {Texts} texts @returns {[string, string][]} one pair for each value */
export function pairsOf(texts) {
  return Object.entries(texts).flatMap(([name, text]) =>
    [text].flat().map((one) => /** @type {[string, string]} */ ([name, one])),
  );
}

/** @param {Texts} texts @returns {string[]} the words of a command line */
export function wordsOf(texts) {
  return pairsOf(texts).flatMap(([name, text]) => {
    const isFlag = PARAMS.some(({ flag, kind }) => flag === name && kind === FLAG);
    return isFlag ? [`--${name}=${text}`] : [`--${name}`, text];
  });
}
