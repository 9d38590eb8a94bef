/*
 * Numbers that look random and are the same in each run.
 */

/**
 * @param {number} seed
 * @returns {(below: number) => number} whole numbers from 0
 */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
