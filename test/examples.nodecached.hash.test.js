/*
 * The hash of keys in examples/nodecached: right, and not to be foreseen.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openShared, sharedMemory } from '../examples/nodecached/counters.js';
import { keyedHash } from '../examples/nodecached/hash.js';
import { SECRET } from '../examples/nodecached/layout.js';
import { Requests } from '../examples/nodecached/requests.js';
import { memoryFor, Store } from '../examples/nodecached/store.js';

test('the hash is HalfSipHash-1-3', () => {
  // From lib/tests/siphash_kunit.c of Linux: of the bytes 0, 1, 2 ... with the secret 0, 1 ... 7.
  const expected = [
    0x5814c896, 0xe7e864ca, 0xbc4b0e30, 0x01539939, 0x7e059ea6, 0x88e3d89b, 0xa0080b65, 0x9d38d9d6,
    0x577999b1,
  ];
  const bytes = Uint8Array.from(expected, (_, index) => index);
  const actual = expected.map((_, length) => keyedHash(0x03020100, 0x07060504, bytes, 0, length) >>> 0);
  assert.deepEqual(actual, expected);
});

/** @param {number} secret @returns {(key: string) => number} the hash of a server with this secret */
function hashWith(secret) {
  const memory = memoryFor(1, false);
  new Int32Array(memory).fill(secret, SECRET, SECRET + 2);
  const shared = openShared(sharedMemory(1), 1, 0);
  const options = /** @type {import('../examples/nodecached/options.js').Options} */ ({});
  const requests = new Requests([new Store(memory, 1, shared.words)], shared, 0, options);
  return (key) => requests.hash(Buffer.from(key), 0, key.length);
}

test('keys that share a hash with one secret do not with another', () => {
  const [one, other] = [hashWith(0x1234567), hashWith(0x7654367)]; // the low bytes are the same
  const keys = new Map();
  const pairs = [];
  for (let i = 0; pairs.length < 5; i++) {
    const key = `key${(i * 7919).toString(36)}`;
    if (keys.has(one(key))) pairs.push([key, keys.get(one(key))]);
    keys.set(one(key), key);
  }
  assert.deepEqual(
    pairs.filter(([key, same]) => other(key) === other(same)),
    [],
  );
});
