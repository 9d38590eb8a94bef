/*
 * Which new shard takes over streams from which old one, whatever their numbers are.
 */

/**
 * A new shard that takes streams from an old one.
 * @typedef {{ from: number, to: number, weight: number }} Pair `weight`: its share of the streams of `from`, relative to the other
 *   pairs of the same `from`; a whole number
 */

/**
 * Old shard o has the part [o/O, (o+1)/O) of all streams, and new shard n takes [n/N, (n+1)/N): they are a pair where these overlap.
 * So every new shard gets the same part of all streams, and there are at most O + N - 1 pairs.
 * @param {number} oldShards @param {number} newShards
 * @returns {Pair[]} by `from`, then by `to`
 */
export function pairsOf(oldShards, newShards) {
  /** @type {Pair[]} */
  const pairs = [];
  // In units of 1 / (O * N), all ends are whole numbers.
  for (let from = 0, to = 0; from < oldShards && to < newShards; ) {
    const [fromEnd, toEnd] = [(from + 1) * newShards, (to + 1) * oldShards];
    const weight = Math.min(fromEnd, toEnd) - Math.max(from * newShards, to * oldShards);
    pairs.push({ from, to, weight });
    if (fromEnd <= toEnd) from++;
    if (toEnd <= fromEnd) to++;
  }
  return pairs;
}
