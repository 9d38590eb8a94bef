/*
 * Random numbers that are the same in every run.
 */

/**
 * @param {number} seed
 * @returns {(below: number) => number} whole numbers from 0
 */
export function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}
