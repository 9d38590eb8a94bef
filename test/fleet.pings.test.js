import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pings } from '../fleet/drone/pings.js';

/** @param {number} [intervalMs] @returns {Pings} of a stream opened at 1000 */
function opened(intervalMs = 100) {
  const pings = new Pings(intervalMs);
  pings.begin(1000);
  return pings;
}

test('the first ping can come at any moment of the interval, and the next are due an interval later', () => {
  const pings = opened();
  assert.deepEqual(pings.note(1030), []);
  assert.deepEqual(pings.note(1130), [0]);
  assert.deepEqual(pings.note(1235), [5]);
  assert.deepEqual(pings.note(1330), [0]);
});

test('a ping counts for those that were missed before it', () => {
  const pings = opened();
  assert.deepEqual(pings.note(1350), [250, 150, 50]);
  assert.deepEqual(pings.note(1400), [0], 'the schedule is the same as before');
});

test('a ping is overdue when it is late by more than an interval', () => {
  const pings = opened();
  assert.deepEqual([pings.overdueMs(1200), pings.overdueMs(1201)], [0, 101]);
});

test('without an interval nothing is late or overdue', () => {
  const pings = opened(0);
  assert.deepEqual([pings.note(5000), pings.overdueMs(9000)], [[], 0]);
});

test('after a very long gap the missed pings are limited', () => {
  assert.equal(opened(1).note(1_000_000).length, 1001);
});
