import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageMs, dataOf, publicationIn } from '../fleet/drone/topics/publication.js';

const FACTS = /** @type {const} */ ({
  publisher: 1763733211123,
  number: 17,
  clock: 'monotonic',
  topic: 'room/17',
});

for (const clock of /** @type {const} */ (['monotonic', 'wall'])) {
  test(`what is written with the ${clock} clock is read again, with its age`, async () => {
    const { sent, ...facts } = publicationIn(dataOf({ ...FACTS, clock }, 0)) ?? assert.fail();
    assert.deepEqual(facts, { ...FACTS, clock });
    assert.ok(sent > 0);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const age = ageMs({ ...facts, sent });
    assert.ok(age >= 15 && age < 10_000, `${age} ms`);
  });
}

test('data is padded to a size, and is JSON', () => {
  const data = dataOf(FACTS, 200);
  assert.equal(data.length, 200);
  assert.equal(JSON.parse(data).n, 17);
  assert.deepEqual(publicationIn(data)?.topic, 'room/17');
  assert.ok(dataOf(FACTS, 10).length < 100, 'it is as long as it has to be');
  assert.equal(Buffer.byteLength(dataOf({ ...FACTS, topic: 'caf\u00e9' }, 200)), 200);
});

// The same cases are in native/core/src/dial/publication.rs.
const OTHERS = [
  '',
  'hello',
  '{}',
  '{"n":17}',
  '{"p":0,"n":1,"t":1,"topic":"a"}',
  '{"p":5,"n":0,"t":1,"topic":"a"}',
  '{"p":5,"n":4294967296,"t":1,"topic":"a"}',
  '{"p":5,"n":1234567890123456789,"t":1,"topic":"a"}',
  '{"p":5,"n":,"t":1,"topic":"a"}',
  '{"p":5,"n":1,"topic":"a"}',
  '{"p":5,"n":1,"t":1,"topic":"a',
  '{"p":5,"n":1,"t":1,"topic":"a"',
];

for (const data of OTHERS) {
  test(`${data || 'nothing'} is none of our publications`, () => assert.equal(publicationIn(data), null));
}
