import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedMap } from '../lib/boundedmap.js';

test('a map that is full keeps what it has, takes new values for it, and starts anew after a second', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 10_000 });
  const map = new BoundedMap(2);
  map.set('a', 1).set('b', 2).set('c', 3);
  assert.deepEqual([...map], [['c', 3]], 'it is full for the first time');
  map.set('d', 4).set('e', 5).set('d', 6);
  assert.deepEqual([...map.keys()], ['c', 'd']);
  assert.equal(map.get('d'), 6);
  t.mock.timers.tick(999);
  assert.equal(map.set('e', 5).has('e'), false);
  t.mock.timers.tick(1);
  assert.deepEqual([...map.set('e', 5)], [['e', 5]]);
});
