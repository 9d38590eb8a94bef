import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rate } from '../fleet/drone/rate.js';

test('something is done as often as its rate says, however long the steps are', () => {
  const rate = new Rate();
  const due = [0, 100, 200, 250, 330, 1100].map((nowMs) => rate.take(nowMs, 25));
  assert.deepEqual(due, [0, 2, 3, 1, 2, 19]);
});

test('after a long pause only a second is caught up on, and nothing that was not asked for', () => {
  const rate = new Rate();
  assert.deepEqual([rate.take(0, 10), rate.take(60_000, 10)], [0, 10]);
  assert.deepEqual([rate.take(60_500, 0), rate.take(60_600, 10)], [0, 1]);
});
