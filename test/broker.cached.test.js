import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cached } from '../broker/cached.js';

/** @param {number} sequence @param {...string} topics */
const publication = (sequence, ...topics) => ({ sequence, topics });

test('a publication is released when the last of its topics has a newer one', () => {
  const cached = new Cached((topic) => topic !== 'other');
  assert.deepEqual(cached.note(publication(1, 'a', 'b', 'a', 'other'), 10), []);
  assert.deepEqual(cached.note(publication(2, 'a'), 20), []);
  assert.deepEqual(cached.note(publication(3, 'other'), 30), []);
  assert.deepEqual(cached.sequences(), [1, 2]);
  assert.equal(cached.bytes, 30);
  assert.deepEqual(cached.note(publication(4, 'b', 'a'), 5), [1, 2]);
  assert.deepEqual([cached.sequences(), cached.bytes, cached.has(4), cached.has(1)], [[4], 5, true, false]);
});

test('the number of topics is limited: those published to longest ago go', () => {
  const cached = new Cached(() => true, { mostTopics: 3 });
  for (const [index, topic] of ['a', 'b', 'c', 'a'].entries()) cached.note(publication(index + 1, topic), 1);
  assert.deepEqual(cached.note(publication(5, 'd', 'e'), 1), [2, 3]);
  assert.deepEqual([...cached.topics.keys()], ['a', 'd', 'e']);
});

test('their bytes are limited too, even if a single one is too large', () => {
  const cached = new Cached(() => true, { mostBytes: 100 });
  cached.note(publication(1, 'a'), 60);
  cached.note(publication(2, 'b'), 40);
  assert.deepEqual(cached.note(publication(3, 'c'), 30), [1]);
  assert.deepEqual(cached.note(publication(4, 'd'), 101), [2, 3, 4]);
  assert.deepEqual([cached.bytes, cached.topics.size, cached.pins.size], [0, 0, 0]);
});
