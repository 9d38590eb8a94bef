import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PERCENTILES, Tally } from '../fleet/requests/tally.js';

/** @param {Tally} tally @param {number} sentMs @param {object} [more] */
function answer(tally, sentMs, more = {}) {
  tally.addSent(sentMs);
  tally.addAnswer({ status: 200, bodyBytes: 5, sentMs, dueMs: sentMs, nowMs: sentMs + 10, ...more });
}

/** @param {Tally} tally @param {import('../fleet/requests/tally.js').End} end @param {number} nowMs */
const endOf = (tally, end, nowMs) => tally.measured({ end, unsent: 0, nowMs });

test('what is counted after the end does not change the result', () => {
  const tally = new Tally();
  answer(tally, 1000);
  const measured = endOf(tally, 'duration', 1100);
  const before = structuredClone(measured);
  answer(tally, 1200, { status: 500 });
  tally.addFailure('timeout', true, 1300);
  assert.deepEqual(measured, before);
});

test('the elapsed time ends with the last answer, or when the run was ended', () => {
  const tally = new Tally();
  answer(tally, 1000);
  answer(tally, 1100);
  assert.equal(endOf(tally, 'count', 5000).elapsedMs, 110);
  assert.equal(endOf(tally, 'duration', 5000).elapsedMs, 4000);
  assert.equal(endOf(new Tally(), 'stopped', 5000).elapsedMs, 0);
});

test('latency counts from when a request was due, service time from when it was sent', () => {
  const tally = new Tally();
  answer(tally, 1000, { dueMs: 900 });
  const { latencyMs, serviceMs } = endOf(tally, 'count', 1010);
  assert.equal(latencyMs.count, 1);
  assert.deepEqual([latencyMs.max, serviceMs.max], [110, 10]);
});

test('no percentile is above the longest request', () => {
  const tally = new Tally();
  for (let i = 1; i <= 200; i++) answer(tally, 1000, { nowMs: 1000 + i * 17.31 });
  const { percentiles, max } = endOf(tally, 'count', 9000).latencyMs;
  assert.deepEqual(Object.keys(percentiles), PERCENTILES.map(String));
  assert.equal(percentiles[100], max);
  assert.ok(Math.abs(percentiles[50] / (100 * 17.31) - 1) < 0.008, `${percentiles[50]} ms`);
});

test('a request that is neither answered nor failed is in flight, and an answer that began and timed out is endless', () => {
  const tally = new Tally();
  for (let i = 0; i < 5; i++) tally.addSent(i);
  tally.addFailure('timeout', true, 10);
  tally.addFailure('timeout', false, 10);
  tally.addFailure('reset', true, 10);
  const { inFlight, endless, failed } = endOf(tally, 'duration', 20);
  assert.deepEqual([inFlight, endless, failed.timeout, failed.reset], [2, 1, 2, 1]);
});

test('notes whether bodies differ in length from the first', () => {
  const tally = new Tally();
  answer(tally, 1000, { bodyBytes: 0 });
  answer(tally, 1000, { bodyBytes: 0 });
  assert.deepEqual([tally.documentBytes, tally.lengthsVary], [0, false]);
  answer(tally, 1000, { bodyBytes: 9 });
  assert.deepEqual([tally.documentBytes, tally.lengthsVary, tally.bodyBytes], [0, true, 9]);
});

test('the server is named by the first answer that says so', () => {
  const tally = new Tally();
  answer(tally, 1000);
  answer(tally, 1000, { server: 'first' });
  answer(tally, 1000, { server: 'second' });
  assert.equal(endOf(tally, 'count', 2000).server, 'first');
});
