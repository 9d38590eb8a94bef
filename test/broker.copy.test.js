/*
 * Brokers that are copies of another one, which decides about the order: what they store again, and how they begin anew.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFrames } from '../broker/disk/frames.js';
import { Store } from '../broker/disk/store.js';
import { openLocal } from '../broker/local.js';
import { OPTIONS, onDisk } from './helpers/brokers.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('../broker/index.js').Copy} Copy */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('./helpers/brokers.js').Options} Options */

/** @param {string} data @param {Partial<Draft>} [more] @returns {Draft} */
const draft = (data, more) => ({ topics: ['news'], data, private: false, ...more });

/** @param {number} count @returns {Draft[]} */
const drafts = (count) => Array.from({ length: count }, (_, index) => draft(String(index + 1)));

/** @param {readonly { sequence: number }[]} numbered */
const sequencesOf = (numbered) => numbered.map(({ sequence }) => sequence);

const FAR = 5_000_000_000;
const ORDER = { epoch: 7, key: new Uint8Array(16).fill(9), last: FAR };

const COPIES = [
  { name: 'memory', place: (/** @type {Options} */ options) => options },
  { name: 'disk', place: onDisk },
  {
    name: 'disk without sync',
    place: (/** @type {Options} */ options) => ({ ...onDisk(options), syncs: false }),
  },
];

for (const { name, place } of COPIES) {
  /**
   * @param {string} behaviour @param {Partial<Options>} options
   * @param {(copy: Copy, reopen: () => Promise<Copy>) => Promise<void>} body `reopen` closes it, and opens it again
   */
  const withCopy = (behaviour, options, body) =>
    test(`${name}: ${behaviour}`, async () => {
      const placed = place({ ...OPTIONS, isCopy: true, ...options });
      let copy = await openLocal(placed);
      const reopen = async () => {
        await copy.close();
        copy = await openLocal(placed);
        return copy;
      };
      try {
        await body(copy, reopen);
      } finally {
        await copy.close();
      }
    });

  withCopy(
    'to begin anew forgets everything, and takes over an order from any sequence',
    {},
    async (copy) => {
      await copy.append([draft('a', { id: 'a', topics: ['cached/a'] }), ...drafts(2000)]);
      await copy.restart(ORDER);
      assert.deepEqual([copy.epoch, copy.key], [ORDER.epoch, ORDER.key]);
      assert.deepEqual([copy.first, copy.last], [FAR + 1, FAR]);
      assert.deepEqual(
        [await copy.read(0, 10), await copy.latest(), await copy.find('a')],
        [[], [], undefined],
      );
      const again = [draft('b', { id: 'a', topics: ['cached/a'] }), ...drafts(2)];
      assert.deepEqual(
        await copy.append(again),
        [1, 2, 3].map((n) => ({ sequence: FAR + n, isNew: true })),
      );
      assert.deepEqual([copy.first, copy.last], [FAR + 1, FAR + 3]);
      assert.deepEqual(sequencesOf(await copy.read(FAR + 1, 10)), [FAR + 2, FAR + 3]);
      assert.deepEqual(sequencesOf(await copy.read(0, 10)), [FAR + 1, FAR + 2, FAR + 3]);
      assert.deepEqual([sequencesOf(await copy.latest()), await copy.find('a')], [[FAR + 1], FAR + 1]);
    },
  );

  withCopy(
    'one that has begun anew may be empty, and retention goes on',
    { historyCount: 3 },
    async (copy) => {
      await copy.append(drafts(5));
      await copy.restart(ORDER);
      await copy.append(drafts(10));
      await until(() => copy.first === FAR + 8, 'older ones are dropped');
      assert.deepEqual(
        sequencesOf(await copy.read(0, 10)),
        [8, 9, 10].map((n) => FAR + n),
      );
      await copy.restart({ ...ORDER, last: 2 });
      assert.deepEqual([copy.first, copy.last], [3, 2]);
      assert.deepEqual(sequencesOf(await copy.append(drafts(1))), [3]);
    },
  );

  withCopy('followers hear of it once, between the publications before and those after', {}, async (copy) => {
    /** @type {(number | string)[]} */
    const heard = [];
    copy.follow(
      (publications) => void heard.push(...sequencesOf(publications)),
      () => heard.push(`${copy.epoch} ${copy.key[0]} ${copy.first} ${copy.last}`),
    );
    copy.follow(() => {}); // one that doesn't want to know
    const before = copy.append(drafts(2));
    await copy.restart(ORDER);
    assert.deepEqual(sequencesOf(await before), [1, 2], 'it waits for what is in progress');
    await copy.append(drafts(1));
    await copy.restart({ ...ORDER, last: FAR + 100 });
    await copy.append(drafts(1));
    assert.deepEqual(heard, [
      1,
      2,
      `7 9 ${FAR + 1} ${FAR}`,
      FAR + 1,
      `7 9 ${FAR + 101} ${FAR + 100}`,
      FAR + 101,
    ]);
  });

  withCopy('what is asked before it begins anew is never answered from the next order', {}, async (copy) => {
    await copy.append(drafts(5));
    /** @type {Promise<import('../broker/index.js').Publication[]>[]} */
    const reads = [];
    /** @type {Promise<readonly import('../broker/index.js').Publication[]> | undefined} */
    let anew;
    const ask = (/** @type {number} */ after) => reads.push(/** @type {any} */ (copy.read(after, 10)));
    copy.follow(
      () => {},
      () => {
        anew = copy.read(0, 10);
        void copy.append([draft('new')]);
      },
    );
    ask(0);
    const restarted = copy.restart({ ...ORDER, last: 0 });
    ask(1);
    await restarted;
    assert.deepEqual(await anew, [], 'a question after it does not share an answer from before');
    const outcomes = await Promise.allSettled(reads);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'BUSY');
      else assert.ok(outcome.value.every(({ data }) => data !== 'new'));
    }
    await until(() => copy.last === 1, 'the new one is stored');
    assert.deepEqual(
      (await copy.read(0, 10)).map(({ data }) => data),
      ['new'],
    );
  });

  withCopy(
    'a draft whose id is known is stored again, and the first one counts',
    { historyCount: 3 },
    async (copy) => {
      const named = draft('x', { id: 'a' });
      assert.deepEqual(await copy.append([named, draft('y'), named]), [
        { sequence: 1, isNew: true },
        { sequence: 2, isNew: true },
        { sequence: 3, isNew: true },
      ]);
      assert.deepEqual(sequencesOf(await copy.read(0, 10)), [1, 2, 3]);
      assert.equal(await copy.find('a'), 1);
      await copy.append([draft('y')]);
      assert.equal(copy.first, 2);
      assert.equal(await copy.find('a'), undefined, 'who has the first would miss what came between');
      await copy.append([named]);
      assert.equal(await copy.find('a'), undefined, '3 is stored, and now 5 too');
      await copy.append(drafts(2));
      assert.equal(copy.first, 5);
      assert.equal(await copy.find('a'), undefined, 'nobody knows that 3 and 1 have gone');
      await copy.append(drafts(1));
      assert.equal(copy.first, 6);
      assert.deepEqual(sequencesOf(await copy.append([named])), [9]);
      assert.equal(await copy.find('a'), 9, 'all before it are gone');
      await copy.append(drafts(3));
      assert.equal(await copy.find('a'), undefined);
    },
  );

  withCopy('the key of a draft is not stored', {}, async (copy) => {
    await copy.append([draft('x', { key: 'k' }), draft('y', { key: 'k' })]);
    const found = await copy.read(0, 10);
    assert.equal(found.length, 2);
    assert.ok(found.every((publication) => !('key' in publication)));
  });

  if (name === 'memory') continue;

  withCopy('the order is still there after the process was restarted', {}, async (copy, reopen) => {
    await copy.append([draft('a', { id: 'a' }), ...drafts(3)]);
    await copy.restart(ORDER);
    const empty = await reopen();
    assert.deepEqual([empty.epoch, empty.key], [ORDER.epoch, ORDER.key]);
    assert.deepEqual([empty.first, empty.last], [FAR + 1, FAR]);
    assert.deepEqual([await empty.read(0, 10), await empty.find('a')], [[], undefined]);
    await empty.append([draft('b', { id: 'a' }), draft('c', { id: 'a' })]);
    const full = await reopen();
    assert.deepEqual([full.first, full.last, await full.find('a')], [FAR + 1, FAR + 2, FAR + 1]);
    assert.deepEqual(
      (await full.read(FAR, 10)).map(({ data }) => data),
      ['b', 'c'],
    );
  });
}

test('a store that could not begin anew has what it had', async (t) => {
  const retention = { historyCount: 10, historyAgeMs: 1e9, historyBytes: 1e9 };
  const store = await Store.open({ folder: temporaryFolder(t), syncs: true, isCopy: true, retention });
  await store.append(encodeFrames([draft('x', { id: 'a' })]), new Map());
  const before = store.order;
  const { meta } = store.db;
  meta.put = () => {
    throw new Error('a test wants it to fail');
  };
  await assert.rejects(store.restart(ORDER), { code: 'STORE' });
  assert.deepEqual([(await store.read(0, 10)).length, await store.find('a')], [1, 1]);
  assert.deepEqual(store.order, before);
  await store.close();
});
