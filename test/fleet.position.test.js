/*
 * The same cases are in native/core/src/dial/position.rs.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Position } from '../fleet/drone/topics/position.js';

/** @param {number[]} numbers of one publisher @returns {string[]} */
function checked(...numbers) {
  const position = new Position();
  return numbers.map((number) => textOf(position.check(1, number)));
}

/** @param {import('../fleet/drone/topics/position.js').Verdict} verdict */
const textOf = ({ what, skipped }) => (skipped > 0 ? `${what} ${skipped}` : what);

test('any number may be the first, and then each follows the one before', () => {
  assert.deepEqual(checked(17, 18, 19), ['next', 'next', 'next']);
});

test('numbers that are skipped are missing until they arrive late', () => {
  assert.deepEqual(checked(1, 4, 3, 3, 2, 5), ['next', 'next 2', 'late', 'repeated', 'late', 'next']);
  assert.deepEqual(checked(1, 100, 99, 36, 35, 101), ['next', 'next 98', 'late', 'late', 'repeated', 'next']);
  assert.deepEqual(checked(1, 3, 66, 2, 67, 3), ['next', 'next 1', 'next 62', 'late', 'next', 'repeated']);
  assert.deepEqual(checked(1, 65, 2, 1), ['next', 'next 63', 'late', 'repeated']);
});

test('a number that comes again is repeated', () => {
  assert.deepEqual(checked(5, 5, 6, 5, 6), ['next', 'repeated', 'next', 'repeated', 'repeated']);
});

test('a number before the first is out of order, once', () => {
  assert.deepEqual(checked(5, 4, 4, 2, 6), ['next', 'beforeFirst', 'repeated', 'beforeFirst', 'next']);
});

test('after a gap that the server reported, numbers may be skipped once', () => {
  const position = new Position();
  position.check(1, 1);
  position.expectGap();
  const verdicts = [5, 7, 3].map((number) => textOf(position.check(1, number)));
  assert.deepEqual(verdicts, ['afterGap 3', 'next 1', 'repeated']);
});

test('a later publisher counts anew, and an earlier one is outdated', () => {
  const position = new Position();
  position.check(5, 100);
  const verdicts = [[6, 1], [5, 101], [6, 2]].map(([publisher, number]) => textOf(position.check(publisher, number))); // biome-ignore format: a table
  assert.deepEqual(verdicts, ['next', 'outdated', 'next']);
  position.forget();
  assert.equal(textOf(position.check(1, 9)), 'next');
});
