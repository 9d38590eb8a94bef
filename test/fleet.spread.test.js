import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planDrones, spread } from '../fleet/spread.js';

const WISH = { streams: 100_000, ramp: 0, drones: 0, isNative: true, cores: 2, descriptorLimit: 20_000 };

test('shares differ by one at most and add up', () => {
  assert.deepEqual(spread(10, 3), [4, 3, 3]);
  assert.deepEqual(spread(2, 3), [1, 1, 0]);
  assert.deepEqual(spread(0, 2), [0, 0]);
});

test('native drones are one a core', () => {
  const { count, why } = planDrones(WISH);
  assert.equal(count, 2);
  assert.match(why, /native dialer, one drone a core/);
});

test('drones with plain sockets are as many as the descriptor limit asks for', () => {
  const { count, why } = planDrones({ ...WISH, isNative: false });
  assert.equal(count, Math.ceil(100_000 / (20_000 - 64)));
  assert.match(why, /19,936/);
});

test('there are no more drones than streams to share out, nor than streams to open a second', () => {
  assert.equal(planDrones({ ...WISH, cores: 8, streams: 3 }).count, 3);
  assert.equal(planDrones({ ...WISH, cores: 8, ramp: 2 }).count, 2);
  assert.equal(planDrones({ ...WISH, cores: 8, streams: 0 }).count, 8);
  assert.equal(planDrones({ ...WISH, isNative: false, streams: 0 }).count, 1);
});

test('who says how many gets them', () => {
  assert.equal(planDrones({ ...WISH, drones: 7 }).count, 7);
});
