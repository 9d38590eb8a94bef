import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COUNTS, HISTOGRAMS } from '../lib/counters.js';
import { addCounts, closedOf, lostOf, noCounts, totalOf } from '../lib/counts.js';
import { CLOSE_REASONS, zeroes } from '../lib/reasons.js';
import { snapshot } from './helpers/samples.js';

test('every counter of the table is added up, and no gauge', () => {
  const ones = Object.fromEntries(COUNTS.map(({ name }) => [name, 1]));
  const counts = noCounts();
  addCounts(counts, snapshot(ones));
  addCounts(counts, snapshot(ones));
  for (const { name, kind } of COUNTS) {
    assert.equal(
      /** @type {Record<string, unknown>} */ (counts)[name],
      kind === 'counter' ? 2 : undefined,
      name,
    );
  }
});

test('counters by reason, by status and by kind of collection are added up', () => {
  const counts = noCounts();
  const { closed, refused, gcCount } = snapshot();
  addCounts(counts, snapshot({ closed: { ...closed, slow: 2 }, refused: { ...refused, 503: 3 } }));
  addCounts(
    counts,
    snapshot({ closed: { ...closed, slow: 5 }, gcCount: { ...gcCount, minor: 1, major: 2 } }),
  );
  assert.deepEqual([counts.closed.slow, counts.refused[503], counts.gcCount], [7, 3, 3]);
});

test('streams of dead workers and of failed shards are lost, the others closed', () => {
  const counts = {
    ...noCounts(),
    lostWithWorkers: 10,
    closed: { ...zeroes(CLOSE_REASONS), failed: 4, drain: 6 },
  };
  assert.equal(lostOf(counts), 14);
  assert.equal(closedOf(counts), 6);
  assert.equal(totalOf({ a: 1, b: 2 }), 3);
});

test('no two rows of the tables have the same name, and all have a meaning', () => {
  const rows = [...COUNTS, ...HISTOGRAMS];
  assert.equal(new Set(rows.map(({ name }) => name)).size, rows.length);
  for (const { name, help } of rows) assert.ok(help, name);
});
