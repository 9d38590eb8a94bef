import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pacer } from '../fleet/requests/pacer.js';

/**
 * Takers that are free again at once, until there is nothing left for them.
 * @param {Pacer} pacer @param {number} count
 * @returns {Promise<{ taker: number, dueMs: number, atMs: number }[]>} what they took, in order
 */
async function takeAll(pacer, count) {
  /** @type {{ taker: number, dueMs: number, atMs: number }[]} */
  const taken = [];
  const gone = Array.from({ length: count }, (_, taker) => {
    return new Promise((resolve) => {
      const one = {
        /** @param {number} dueMs */
        take: (dueMs) => {
          taken.push({ taker, dueMs, atMs: performance.now() });
          setImmediate(() => pacer.wait(one));
        },
        leave: () => resolve(null),
      };
      pacer.wait(one);
    });
  });
  await Promise.all(gone);
  return taken;
}

test('a rate makes one schedule for all takers, and nothing leaves before it is due', async () => {
  const taken = await takeAll(new Pacer(200, 40), 3);
  assert.equal(taken.length, 40);
  for (const [i, { dueMs, atMs }] of taken.entries()) {
    assert.ok(Math.abs(dueMs - taken[0].dueMs - i * 5) < 0.001, `request ${i} is due at ${dueMs}`);
    assert.ok(atMs >= dueMs, `request ${i} left ${dueMs - atMs} ms early`);
  }
});

test('takers come in the order in which they were free', async () => {
  const taken = await takeAll(new Pacer(0, 12), 4);
  assert.deepEqual(
    taken.map(({ taker }) => taker),
    [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3],
  );
});

test('without a rate every request is due when its taker is free, and the limit holds for all together', async () => {
  const taken = await takeAll(new Pacer(0, 1000), 7);
  assert.equal(taken.length, 1000);
  for (const { dueMs, atMs } of taken) assert.ok(dueMs <= atMs);
});

test('what is due and finds nobody free is overdue, up to the limit', () => {
  const pacer = new Pacer(100, 20);
  let takes = 0;
  pacer.wait({ take: () => takes++, leave: () => {} });
  assert.equal(takes, 1);
  assert.equal(pacer.overdue(pacer.startMs + 5), 0);
  assert.equal(pacer.overdue(pacer.startMs + 55), 5);
  assert.equal(pacer.overdue(pacer.startMs + 60_000), 19);
  pacer.stop();
});

test('a pacer that is stopped gives nothing more', () => {
  const pacer = new Pacer(0, 10);
  pacer.stop();
  pacer.wait({ take: () => assert.fail('taken'), leave: () => assert.fail('left') });
});
