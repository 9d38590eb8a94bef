import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pairsOf } from '../lib/pairing.js';

/** @param {import('../lib/pairing.js').Pair[]} pairs @param {'from' | 'to'} side @returns {Map<number, number>} */
function sumsBy(pairs, side) {
  const sums = new Map();
  for (const pair of pairs) sums.set(pair[side], (sums.get(pair[side]) ?? 0) + pair.weight);
  return sums;
}

test('as many new shards as old ones take over one each', () => {
  assert.deepEqual(pairsOf(1, 1), [{ from: 0, to: 0, weight: 1 }]);
  assert.deepEqual(
    pairsOf(3, 3).map(({ from, to }) => [from, to]),
    [
      [0, 0],
      [1, 1],
      [2, 2],
    ],
  );
});

test('more new shards share an old one, and fewer take several', () => {
  assert.deepEqual(pairsOf(1, 2), [
    { from: 0, to: 0, weight: 1 },
    { from: 0, to: 1, weight: 1 },
  ]);
  assert.deepEqual(pairsOf(2, 3), [
    { from: 0, to: 0, weight: 2 },
    { from: 0, to: 1, weight: 1 },
    { from: 1, to: 1, weight: 1 },
    { from: 1, to: 2, weight: 2 },
  ]);
  assert.deepEqual(pairsOf(3, 1), [
    { from: 0, to: 0, weight: 1 },
    { from: 1, to: 0, weight: 1 },
    { from: 2, to: 0, weight: 1 },
  ]);
});

test('every old shard is given away completely, every new one gets the same, and no pair is empty', () => {
  for (let olds = 1; olds <= 40; olds++)
    for (let news = 1; news <= 40; news++) {
      const pairs = pairsOf(olds, news);
      assert.ok(pairs.length < olds + news);
      assert.ok(pairs.every(({ weight }) => weight > 0));
      const [from, to] = [sumsBy(pairs, 'from'), sumsBy(pairs, 'to')];
      assert.deepEqual([from.size, to.size], [olds, news]);
      assert.ok([...from.values()].every((sum) => sum === news));
      assert.ok([...to.values()].every((sum) => sum === olds));
    }
});
