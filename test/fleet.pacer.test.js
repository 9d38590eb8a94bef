import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pacer } from '../fleet/requests/pacer.js';

/**
 * Takers that are free again immediately, until there are no more requests.
 * @param {Pacer} pacer @param {number} count
 * @returns {Promise<{ taker: number, dueMs: number, atMs: number }[]>} the requests they took, in order
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

test('a rate is one schedule for all takers, and no request is early', async () => {
  const taken = await takeAll(new Pacer(200, 40), 3);
  assert.equal(taken.length, 40);
  for (const [i, { dueMs, atMs }] of taken.entries()) {
    assert.ok(Math.abs(dueMs - taken[0].dueMs - i * 5) < 0.001, `request ${i} is due at ${dueMs}`);
    assert.ok(atMs >= dueMs, `request ${i} left ${dueMs - atMs} ms early`);
  }
});

test('takers take turns in the order in which they became free', async () => {
  const taken = await takeAll(new Pacer(0, 12), 4);
  assert.deepEqual(
    taken.map(({ taker }) => taker),
    [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3],
  );
});

test('without a rate a request is due as soon as a taker is free, and the limit is for all takers together', async () => {
  const taken = await takeAll(new Pacer(0, 1000), 7);
  assert.equal(taken.length, 1000);
  for (const { dueMs, atMs } of taken) assert.ok(dueMs <= atMs);
});

test('requests that are due but find no free taker are overdue, up to the limit', () => {
  const pacer = new Pacer(100, 20);
  let takes = 0;
  pacer.wait({ take: () => takes++, leave: () => {} });
  assert.equal(takes, 1);
  assert.equal(pacer.overdue(pacer.startMs + 5), 0);
  assert.equal(pacer.overdue(pacer.startMs + 55), 5);
  assert.equal(pacer.overdue(pacer.startMs + 60_000), 19);
  pacer.stop();
});

test('a request that is due is not overdue if a taker is free for it', () => {
  const pacer = new Pacer(100, 20);
  for (let i = 0; i < 3; i++) pacer.wait({ take: () => {}, leave: () => {} });
  assert.equal(pacer.overdue(pacer.startMs + 25), 0);
  assert.equal(pacer.overdue(pacer.startMs + 45), 2);
  pacer.stop();
});

test('a stopped pacer hands out nothing', () => {
  const pacer = new Pacer(0, 10);
  pacer.stop();
  pacer.wait({ take: () => assert.fail('taken'), leave: () => assert.fail('left') });
});
