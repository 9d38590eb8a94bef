import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fill, templateOf } from '../fleet/drone/topics/template.js';
import { audienceOf } from '../fleet/publish/audience.js';

/** @param {string} text @param {number} number */
const filled = (text, number) => fill(templateOf(text) ?? [], { number });

test('a topic contains the number of its stream, a remainder or a quotient of it', () => {
  assert.equal(filled('all', 1234), 'all');
  assert.equal(filled('user/{n}', 1234), 'user/1234');
  assert.equal(filled('room/{n%100}/{n/100}/x', 1234), 'room/34/12/x');
  assert.equal(filled('{n}{n}', 7), '77');
});

test('braces that are no expression make no topic', () => {
  for (const text of ['{}', '{m}', '{n', 'n}', '{n%0}', '{n*2}', '{n%}', '{n %2}', '{n%1234567890}'])
    assert.equal(templateOf(text), null, text);
});

test('the audience of each topic is the number of streams that subscribe to it', () => {
  assert.deepEqual([...audienceOf(['room/{n%3}'], 7)], [['room/0', 3], ['room/1', 2], ['room/2', 2]]); // biome-ignore format: a table
  assert.deepEqual([...audienceOf(['all', 'user/{n}'], 2)], [['all', 2], ['user/0', 1], ['user/1', 1]]); // biome-ignore format: a table
  assert.deepEqual([...audienceOf(['a/{n%2}', 'a/{n/2}'], 2)], [['a/0', 2], ['a/1', 1]]); // biome-ignore format: a table
});
