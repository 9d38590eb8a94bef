import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planDrones, spread } from '../fleet/spread.js';

const WANTED = { streams: 100_000, ramp: 0, drones: 0, isNative: true, cores: 2, descriptorLimit: 20_000 };

test('shares differ by at most one and add up', () => {
  assert.deepEqual(spread(10, 3), [4, 3, 3]);
  assert.deepEqual(spread(2, 3), [1, 1, 0]);
  assert.deepEqual(spread(0, 2), [0, 0]);
});

test('there is one native drone per core', () => {
  const { count, why } = planDrones(WANTED);
  assert.equal(count, 2);
  assert.match(why, /native dialer, one drone per core/);
});

test('drones with plain sockets are as many as the descriptor limit requires', () => {
  const { count, why } = planDrones({ ...WANTED, isNative: false });
  assert.equal(count, Math.ceil(100_000 / (20_000 - 64)));
  assert.match(why, /19,936/);
});

test('there are no more drones than streams, nor than streams to open per second', () => {
  assert.equal(planDrones({ ...WANTED, cores: 8, streams: 3 }).count, 3);
  assert.equal(planDrones({ ...WANTED, cores: 8, ramp: 2 }).count, 2);
  assert.equal(planDrones({ ...WANTED, cores: 8, streams: 0 }).count, 8);
  assert.equal(planDrones({ ...WANTED, isNative: false, streams: 0 }).count, 1);
});

test('a given number of drones is used as it is', () => {
  assert.equal(planDrones({ ...WANTED, drones: 7 }).count, 7);
});
