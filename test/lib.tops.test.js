import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutOff, mergeTops, NOTHING, Sketch, topOf } from '../lib/tops.js';

/** @param {import('../lib/tops.js').Top} top */
const namesIn = ({ rows }) => rows.map(([name]) => name).join('');

test('the largest counts come first, and the rest is cut off, but how large it may be is known', () => {
  /** @type {[string, number][]} */
  const counts = [
    ['a', 3],
    ['b', 9],
    ['c', 1],
    ['d', 5],
    ['e', 4],
  ];
  assert.deepEqual(topOf(counts, 2), {
    rows: [
      ['b', 9, 0],
      ['d', 5, 0],
    ],
    missing: 4,
  });
  assert.deepEqual(topOf(counts, 5).missing, 0);
  assert.deepEqual(topOf([], 5), NOTHING);
});

test('what is large before is not lost when something larger comes', () => {
  /** @type {[string, number][]} */
  const counts = [
    ['a', 9],
    ['b', 8],
    ['c', 10],
    ['d', 1],
  ];
  assert.deepEqual(topOf(counts, 2), {
    rows: [
      ['c', 10, 0],
      ['a', 9, 0],
    ],
    missing: 8,
  });
});

test('merged lists say how much a name may have in the lists where it is missing', () => {
  const one = topOf(
    [
      ['a', 10],
      ['b', 7],
      ['c', 6],
    ],
    2,
  );
  const other = topOf(
    [
      ['a', 1],
      ['c', 3],
    ],
    2,
  );
  const merged = mergeTops([one, other], 3);
  assert.deepEqual(merged.rows, [
    ['a', 11, 0],
    ['b', 7, 0],
    ['c', 3, 6],
  ]);
  assert.equal(merged.missing, 6);
  assert.deepEqual(mergeTops([], 3), NOTHING);
  assert.equal(cutOff(merged.rows, merged.missing, 1).missing, 9, 'c has from 3 to 9');
});

test('a sketch counts exactly as long as there are few names', () => {
  const sketch = new Sketch(10);
  for (const letter of 'aaabbc') sketch.add(letter);
  assert.deepEqual(sketch.top(5), {
    rows: [
      ['a', 3, 0],
      ['b', 2, 0],
      ['c', 1, 0],
    ],
    missing: 0,
  });
});

test('a sketch of many names keeps those that are frequent, within the bounds that it states', () => {
  const sketch = new Sketch(50);
  /** @type {Map<string, number>} */
  const exact = new Map();
  let seed = 1;
  for (let i = 0; i < 100_000; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const name = i % 10 < 3 ? `often ${i % 10}` : `once ${seed}`;
    sketch.add(name);
    exact.set(name, (exact.get(name) ?? 0) + 1);
  }
  assert.ok(sketch.counts.size <= 100, `${sketch.counts.size} names`);
  const { rows } = sketch.top(3);
  assert.deepEqual(rows.map(([name]) => name).sort(), ['often 0', 'often 1', 'often 2']);
  for (const [name, count, over] of rows) {
    const true_ = exact.get(name) ?? 0;
    assert.ok(count <= true_ && true_ <= count + over, `${name}: ${true_} in ${count} to ${count + over}`);
  }
  assert.ok(sketch.over <= 100_000 / 50, 'the error is at most 1 / 50 of all');
});

test('the order of a list is that of the counts', () => {
  assert.equal(
    namesIn(
      topOf(
        [...'edcba'].map((name, i) => [name, i]),
        5,
      ),
    ),
    'abcde',
  );
});
