import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Permit } from '../fleet/drone/permit.js';

test('a drone may dial once it has consent, and until a stream fails or is lost', () => {
  const permit = new Permit();
  assert.deepEqual([permit.isValid(3), permit.isDue(0, 3)], [false, false]);
  permit.grant(0, false, 3, false);
  assert.deepEqual([permit.isValid(3), permit.isDue(5000, 3)], [true, false]);
  assert.deepEqual([permit.isValid(4), permit.isDue(5000, 4)], [false, true]);
  permit.grant(5000, false, 4, false);
  assert.ok(permit.isValid(4));
});

test('this machine needs no consent again', () => {
  const permit = new Permit();
  permit.grant(0, true, 0, false);
  assert.deepEqual([permit.isValid(99), permit.isDue(5000, 99)], [true, false]);
});

test('a target is asked at most once per second, and less often while it does not answer', () => {
  const permit = new Permit();
  permit.grant(0, false, 0, false);
  assert.deepEqual([permit.isDue(999, 1), permit.isDue(1000, 1)], [false, true]);
  const delays = [2000, 4000, 8000, 16_000, 30_000, 30_000];
  for (const delayMs of delays) {
    permit.defer(0);
    assert.deepEqual([permit.isDue(delayMs - 1, 1), permit.isDue(delayMs, 1)], [false, true]);
  }
  permit.grant(0, false, 1, false);
  permit.defer(0);
  assert.equal(permit.nextMs, delays[0]);
});

test('after a refusal nothing is dialled or asked until the drone is told to', () => {
  const permit = new Permit();
  permit.grant(0, false, 0, false);
  permit.revoke();
  permit.revoke();
  assert.deepEqual([permit.wasRefused, permit.isValid(0), permit.isDue(60_000, 1)], [true, false, false]);
  permit.grant(60_000, false, 1, false);
  assert.deepEqual([permit.wasRefused, permit.isValid(1)], [false, true]);
});

test('a target of which a server did not answer is asked again, although no stream has failed', () => {
  const permit = new Permit();
  permit.grant(0, false, 3, true);
  assert.deepEqual([permit.isValid(3), permit.isDue(999, 3), permit.isDue(1000, 3)], [true, false, true]);
  permit.grant(1000, false, 3, false);
  assert.equal(permit.isDue(60_000, 3), false);
});
