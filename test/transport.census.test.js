/*
 * Which channels most streams are on. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { selectorsIn } from '../hub/streams/audience.js';
import { Census } from '../primary/census.js';
import { Topics } from '../primary/topics.js';
import { KINDS, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @param {import('../lib/tops.js').Row[]} rows in the order of counts and names */
const sorted = (rows) => rows.toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));

for (const kind of KINDS) {
  describe(`a census of channels (${kind})`, () => {
    test('adds up the streams of all shards', async (t) => {
      const { hold, open } = await startListening(t, kind, { shards: 2 });
      for (const target of ['/a,b', '/a,c', '/a', '/b', '/a']) await open(target);
      const { rows, missing } = await hold.countChannels(10);
      assert.deepEqual(
        [sorted(rows), missing],
        [
          [
            ['a', 4, 0],
            ['b', 2, 0],
            ['c', 1, 0],
          ],
          0,
        ],
      );
    });

    test('has only the largest, and says how large others may be', async (t) => {
      const { hold, open } = await startListening(t, kind);
      for (let i = 0; i < 20; i++) await open(`/a,b${i % 10 === 0 ? ',often' : ''},only${i}`);
      const { rows, missing } = await hold.countChannels(2);
      assert.deepEqual(
        [sorted(rows), missing],
        [
          [
            ['a', 20, 0],
            ['b', 20, 0],
          ],
          2,
        ],
      );
    });

    test('no longer has those that have left, and several at a time are answered', async (t) => {
      const { hold, open } = await startListening(t, kind);
      const clients = [await open('/a'), await open('/b'), await open('/b')];
      clients[0].close();
      await until(() => hold.counters().streams === 2, 'one has left');
      const both = await Promise.all([hold.countChannels(5), hold.countChannels(5)]);
      const lists = both.map(({ rows }) => rows).filter((rows) => rows.length > 0);
      assert.deepEqual(lists.at(-1), [['b', 2, 0]]);
      await hold.close();
      assert.deepEqual((await hold.countChannels(5)).rows, []);
    });
  });
}

test('selectors of the hub have the streams of both of their channels; others keep their names', () => {
  /** @type {import('../lib/tops.js').Row[]} */
  const rows = [
    ['\u0001s=a', 5, 0],
    ['\u0001g=a\nkey', 4, 0],
    ['\u0001a=a', 3, 0],
    ['plain', 3, 0],
    ['\u0001s*', 2, 0],
    ['\u0001a~/x/:y', 1, 0],
  ];
  assert.deepEqual(selectorsIn({ rows, missing: 0 }, 9), {
    rows: [
      ['=a', 8, 0],
      ['#plain', 3, 0],
      ['*', 2, 0],
      ['~/x/:y', 1, 0],
    ],
    missing: 0,
  });
  const cut = selectorsIn({ rows, missing: 1 }, 2);
  assert.deepEqual(cut.rows, [
    ['=a', 8, 0],
    ['#plain', 3, 0],
  ]);
  assert.equal(cut.missing, 3, '* has 2, and perhaps 1 on the other channel');
});

/** Two workers, one of which answers. @param {number} answerMs */
function startCensus(answerMs) {
  const census = new Census(answerMs);
  const [good, silent] = [{}, {}];
  census.add(
    good,
    // before any deadline, on a busy machine too
    ({ id }) => queueMicrotask(() => census.answered(good, id, { rows: [['=a', 2, 0]], missing: 0 })),
  );
  census.add(silent, () => {});
  return { census, silent };
}

test('a worker that does not answer, or dies, is left out', async () => {
  const { census, silent } = startCensus(20);
  assert.deepEqual(await census.take(3), { top: { rows: [['=a', 2, 0]], missing: 0 }, unanswered: 1 });
  const { census: other, silent: dying } = startCensus(60_000);
  const taken = other.take(3);
  other.remove(dying);
  assert.equal((await taken).unanswered, 0);
  census.remove(silent);
  assert.deepEqual((await new Census(60_000).take(3)).top.rows, []);
});

test('publications are counted only while somebody looks', async () => {
  const topics = new Topics(new Census(10));
  topics.published([{ topics: ['a'] }]);
  topics.publishedTo('a');
  assert.equal(topics.slots.length, 0);
  topics.begin();
  topics.published([{ topics: ['a', 'b'] }, { topics: ['a'] }]);
  topics.publishedTo('a');
  const { publications } = await topics.read(5);
  assert.deepEqual(sorted(publications.rows), [
    ['=a', 2, 0],
    ['#a', 1, 0],
    ['=b', 1, 0],
  ]);
  topics.end();
  assert.equal(topics.slots.length, 0);
});
