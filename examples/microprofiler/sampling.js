/*
 * Which calls are measured: each with the same probability, whatever was measured before. Every Nth exactly would always meet the same
 * call of a loop whose length divides N.
 */

/**
 * The distance between two measured calls: geometrically distributed, because each call is chosen independently.
 * @param {number} every one call in so many, on average
 * @param {number} [random] 0 to 1, without 1
 * @returns {number} at least 1
 */
export function nextGap(every, random = Math.random()) {
  if (every <= 1) return 1;
  return 1 + Math.floor(Math.log(1 - random) / Math.log(1 - 1 / every));
}
