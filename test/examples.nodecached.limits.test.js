/*
 * examples/nodecached at the limits of its numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVICTED, HASH, PAGES_MOVED } from '../examples/nodecached/layout.js';
import { memoryFor, Store } from '../examples/nodecached/store.js';
import { startCached, talk } from './helpers/nodecached.js';

test('a number behind many zeros or spaces is counted, as in memcached', async (t) => {
  const { port } = await startCached(t);
  for (const before of ['0', ' ']) {
    const value = `${before.repeat(100)}41`;
    const answer = await talk(port, `set n 0 0 102\r\n${value}\r\nincr n 1\r\nget n\r\n`);
    assert.equal(answer, `STORED\r\n42\r\nVALUE n 0 102\r\n42${' '.repeat(100)}\r\nEND\r\n`);
  }
});

/** Adds an item. @param {Store} store @param {number} size @param {number} hash */
function add(store, size, hash) {
  const item = store.allocate(size);
  store.words[(item >> 2) + HASH] = hash;
  store.link(item);
}

test('pages still move when evictions have been counted up to 2^31', () => {
  const clock = new Int32Array([100]);
  const store = new Store(memoryFor(2, false), 2, clock);
  add(store, 1000, 0); // its page becomes the older one
  clock[0] = 200;
  for (let i = 0; i < 20_000; i++) {
    if (i === 10_000) clock[0] = 210;
    if (i === 9000) store.words[store.classAt(1) + EVICTED] = -(2 ** 31) + 100;
    add(store, 70, i);
  }
  assert.equal(store.doubles[PAGES_MOVED], 1);
});
