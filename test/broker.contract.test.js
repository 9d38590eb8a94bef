/*
 * What every broker promises, tried with each of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { BROKERS, natsBrokers, OPTIONS } from './helpers/brokers.js';
import { until } from './helpers/until.js';

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('../broker/index.js').Publication} Publication */
/** @typedef {import('./helpers/brokers.js').Options} Options */

/** @param {string} data @param {Partial<Draft>} [more] @returns {Draft} */
const draft = (data, more) => ({ topics: ['news'], data, private: false, ...more });

/** @param {number} count @returns {Draft[]} with the data '1', '2', … */
const drafts = (count) => Array.from({ length: count }, (_, index) => draft(String(index + 1)));

/** @param {readonly Publication[]} publications */
const dataOf = (publications) => publications.map(({ data }) => data);

/** @param {readonly { sequence: number }[]} numbered */
const sequencesOf = (numbered) => numbered.map(({ sequence }) => sequence);

/** @param {Broker} broker @param {number} first */
const untilFirst = (broker, first) =>
  until(
    () => broker.first === first,
    () => `first is ${broker.first} instead of ${first}`,
    10_000,
  );

for (const { name, open, skip, isShared = false } of [...BROKERS, ...(await natsBrokers())]) {
  /**
   * @param {string} behaviour @param {Partial<Options>} options
   * @param {(broker: Broker) => Promise<void>} body
   */
  const withBroker = (behaviour, options, body) =>
    test(`${name}: ${behaviour}`, { skip: skip || false }, async () => {
      const broker = await open({ ...OPTIONS, ...options });
      try {
        await body(broker);
      } finally {
        await broker.close();
      }
    });

  /**
   * As withBroker, unless others store publications there too: they may drop some before this broker has seen them.
   * @param {Parameters<typeof withBroker>} args
   */
  const withOwn = (...args) => void (isShared || withBroker(...args));

  withBroker('a new one has an epoch and a key, and nothing is stored', {}, async (broker) => {
    assert.ok(broker.epoch > 0 && broker.epoch < 2 ** 32 && Number.isInteger(broker.epoch));
    assert.equal(broker.key.length, 16);
    assert.deepEqual([broker.first, broker.last], [1, 0]);
    assert.deepEqual(await broker.read(0, 10), []);
    assert.deepEqual(await broker.latest(), []);
    assert.equal(await broker.find('anything'), undefined);
    assert.deepEqual(await broker.append([]), []);
  });

  withBroker('sequences are consecutive, within a call and across calls', {}, async (broker) => {
    const receipts = await Promise.all([1, 3, 2].map((count) => broker.append(drafts(count))));
    assert.deepEqual(sequencesOf(receipts.flat()), [1, 2, 3, 4, 5, 6]);
    assert.ok(receipts.flat().every(({ isNew }) => isNew));
    assert.deepEqual([broker.first, broker.last], [1, 6]);
    assert.deepEqual(dataOf(await broker.read(0, 100)), ['1', '1', '2', '3', '1', '2']);
    assert.deepEqual(sequencesOf(await broker.append(drafts(1))), [7]);
  });

  withBroker('what is read is what was published', {}, async (broker) => {
    const all = [
      draft('plain'),
      draft('', { topics: ['ä', '𝄞', 'https://example.com/%20'], private: true }),
      draft('line\r\nbreak\0\u2028', { id: 'urn:1', type: 'böse', retry: 2 ** 31 - 1 }),
      draft('{"key":"value"}', { type: 't' }),
      draft('x'.repeat(100_000), { topics: ['t'.repeat(5000), ''], id: 'i'.repeat(5000) }),
      draft('one more', { retry: 1 }),
    ];
    const before = Date.now();
    /** @type {Publication[]} */
    const followed = [];
    broker.follow((publications) => void followed.push(...publications));
    await broker.append(all);
    const found = await broker.read(0, 10);
    assert.deepEqual(found, followed);
    for (const [index, { sequence, at, ...rest }] of found.entries()) {
      assert.equal(sequence, index + 1);
      assert.ok(at >= before - 1 && at <= Date.now() + 1);
      assert.deepEqual(rest, { id: undefined, type: undefined, retry: undefined, ...all[index] });
    }
    assert.equal(found.length, all.length);
    assert.equal(await broker.find('i'.repeat(5000)), 5);
    assert.equal(await broker.find('i'.repeat(4999)), undefined);
  });

  withBroker('followers get everything once, in order, before the append resolves', {}, async (broker) => {
    await broker.append(drafts(2));
    /** @type {number[]} */
    const followed = [];
    broker.follow((publications) => {
      assert.ok(broker.last >= (publications.at(-1)?.sequence ?? 0));
      followed.push(...sequencesOf(publications));
    });
    /** @param {number} count */
    const append = async (count) => {
      for (const { sequence } of await broker.append(drafts(count))) assert.ok(followed.includes(sequence));
    };
    await Promise.all([append(1), append(5), append(2)]);
    await append(1);
    assert.deepEqual(followed, [3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  withBroker('a draft whose id is known is not stored again', {}, async (broker) => {
    const named = (/** @type {string} */ id) => draft(`of ${id}`, { id });
    const [first, again] = await Promise.all([
      broker.append([named('a'), draft('x'), named('b'), named('a')]),
      broker.append([named('b'), named('c')]),
    ]);
    assert.deepEqual(first, [
      { sequence: 1, isNew: true },
      { sequence: 2, isNew: true },
      { sequence: 3, isNew: true },
      { sequence: 1, isNew: false },
    ]);
    assert.deepEqual(again, [
      { sequence: 3, isNew: false },
      { sequence: 4, isNew: true },
    ]);
    assert.deepEqual(await broker.append([named('c')]), [{ sequence: 4, isNew: false }]);
    assert.deepEqual(dataOf(await broker.read(0, 10)), ['of a', 'x', 'of b', 'of c']);
    const found = await Promise.all(['a', 'b', 'c', 'd', ''].map((id) => broker.find(id)));
    assert.deepEqual(found, [1, 3, 4, undefined, undefined]);
  });

  withBroker('reads start after a sequence, and end at a number or at about 1 MiB', {}, async (broker) => {
    await broker.append(drafts(30));
    assert.deepEqual(sequencesOf(await broker.read(10, 3)), [11, 12, 13]);
    assert.deepEqual(sequencesOf(await broker.read(28, 100)), [29, 30]);
    assert.deepEqual(await broker.read(30, 100), []);
    assert.deepEqual(await broker.read(1000, 100), []);
    assert.equal((await broker.read(0, 100)).length, 30);
  });

  withBroker(
    'a read is bounded, but has at least one',
    { historyBytes: 100e6, maxQueueBytes: 100e6 },
    async (broker) => {
      await broker.append([
        draft('x'.repeat(2e6)),
        ...Array.from({ length: 8 }, () => draft('y'.repeat(300_000))),
      ]);
      assert.deepEqual(sequencesOf(await broker.read(0, 100)), [1]);
      assert.deepEqual(sequencesOf(await broker.read(1, 100)), [2, 3, 4]);
    },
  );

  withBroker('identical reads in progress share their answer', {}, async (broker) => {
    await broker.append(drafts(5));
    const reads = [broker.read(0, 3), broker.read(0, 3), broker.read(1, 3)];
    const [one, same, other] = await Promise.all(reads);
    assert.equal(one, same);
    assert.deepEqual(
      [sequencesOf(one), sequencesOf(other)],
      [
        [1, 2, 3],
        [2, 3, 4],
      ],
    );
    await broker.append(drafts(1));
    assert.equal((await broker.read(0, 10)).length, 6);
  });

  withBroker('nothing is read, found or latest that has not been followed', {}, async (broker) => {
    let followed = 0;
    broker.follow((publications) => {
      followed = publications.at(-1)?.sequence ?? 0;
    });
    let isDone = false;
    const look = async () => {
      while (!isDone) {
        const found = [...(await broker.read(followed, 100)), ...(await broker.latest())];
        const sequences = [...sequencesOf(found), (await broker.find(`id ${followed + 1}`)) ?? 0];
        assert.ok(Math.max(...sequences) <= followed, `${Math.max(...sequences)} is above ${followed}`);
        assert.equal(broker.last, followed);
        await endOfTurn(); // a broker in memory answers at once
      }
    };
    const looking = [look(), look()];
    for (let count = 1; count <= 200; count++)
      await broker.append([draft('x', { topics: ['cached/a'], id: `id ${count}` })]);
    isDone = true;
    await Promise.all(looking);
  });

  withBroker('many different reads at a time are all answered', {}, async (broker) => {
    await broker.append(drafts(100));
    const reads = Array.from({ length: 100 }, (_, after) => broker.read(after, 1));
    assert.deepEqual(
      (await Promise.all(reads)).map(([one]) => one.sequence - 1),
      [...Array(100).keys()],
    );
  });

  withBroker(
    'history is limited by count, and ids go with their publications',
    { historyCount: 10 },
    async (broker) => {
      await broker.append(drafts(25).map((one) => ({ ...one, id: `id ${one.data}` })));
      await untilFirst(broker, 16);
      assert.equal(broker.last, 25);
      assert.deepEqual(sequencesOf(await broker.read(0, 3)), [16, 17, 18]);
      const ids = await Promise.all(['id 15', 'id 16'].map((id) => broker.find(id)));
      assert.deepEqual(ids, [undefined, 16]);
      const again = await broker.append([draft('again', { id: 'id 15' })]);
      // NATS remembers ids for two minutes, even of what is not stored any more.
      assert.deepEqual(again, [isShared ? { sequence: 15, isNew: false } : { sequence: 26, isNew: true }]);
    },
  );

  withBroker('history is limited by bytes', { historyBytes: 50_000 }, async (broker) => {
    await broker.append(Array.from({ length: 100 }, () => draft('x'.repeat(1000))));
    await until(() => broker.first > 50, 'some are dropped');
    assert.ok(broker.first < 60, `${broker.first}`);
    if (isShared) return; // NATS keeps the last one, however large it is
    await broker.append([draft('x'.repeat(60_000))]);
    await untilFirst(broker, 102); // it alone is more than the limit
    assert.deepEqual(await broker.read(0, 10), []);
    assert.equal(broker.last, 101);
  });

  withBroker(
    'history is limited by age, even if nothing is published',
    { historyAgeMs: 300 },
    async (broker) => {
      await broker.append(drafts(3000));
      const found = await broker.read(0, 5000);
      assert.ok(isShared || found.length > 0); // publishing to NATS may take longer than that
      await until(() => broker.first > Math.max(broker.last, 3000), 'all are dropped');
      assert.deepEqual(await broker.read(0, 10), []);
      const { last } = broker;
      const [{ sequence }] = await broker.append(drafts(1));
      // NATS knows ids no longer than publications: what it confirms late may be sent and stored again.
      if (isShared) assert.ok(sequence > last);
      else assert.deepEqual([last, sequence], [3000, 3001]);
    },
  );

  withOwn('a limit of 0 keeps nothing, but everything is followed', { historyCount: 0 }, async (broker) => {
    /** @type {string[]} */
    const followed = [];
    broker.follow((publications) => void followed.push(...dataOf(publications)));
    await broker.append([draft('a', { id: 'a', topics: ['cached/a'] }), draft('b')]);
    await broker.append(drafts(1));
    await untilFirst(broker, 4);
    assert.deepEqual(followed, ['a', 'b', '1']);
    assert.deepEqual(dataOf(await broker.latest()), ['a']);
  });

  withOwn(
    'the last publication of each cached topic is kept beyond retention',
    { historyCount: 2 },
    async (broker) => {
      const of = (/** @type {string} */ data, /** @type {string[]} */ ...topics) =>
        draft(data, { topics, id: data });
      const [a, b, c] = ['cached/a', 'cached/b', 'cached/c'];
      await broker.append([of('1', a), of('2', b, a), of('3', 'not/cached'), of('4', c, 'x')]);
      assert.deepEqual(dataOf(await broker.latest()), ['2', '4']);
      await broker.append(drafts(2000));
      await untilFirst(broker, 2003);
      assert.deepEqual(dataOf(await broker.latest()), ['2', '4']);
      const ids = await Promise.all(['1', '2', '3', '4'].map((id) => broker.find(id)));
      assert.deepEqual(ids, [undefined, 2, undefined, 4]);
      await broker.append([of('5', b)]);
      assert.deepEqual(dataOf(await broker.latest()), ['2', '4', '5']);
      await broker.append([of('6', a)]);
      assert.deepEqual(dataOf(await broker.latest()), ['4', '5', '6']);
      assert.equal(await broker.find('2'), undefined);
    },
  );

  withBroker(
    'what waits is bounded: an append above that is BUSY, and none once it is stored',
    { maxQueueBytes: 100_000 },
    async (broker) => {
      const many = Array.from({ length: 20 }, () => broker.append([draft('x'.repeat(10_000))]));
      const outcomes = await Promise.allSettled(many);
      const reasons = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      assert.equal(reasons.length, 11);
      for (const { code, message } of reasons) {
        assert.equal(code, 'BUSY');
        assert.match(
          message,
          /^too many publications: \d+ bytes of them are waiting, and --max-queue is 100000$/,
        );
      }
      assert.equal(broker.last, 9);
      assert.equal(
        (await broker.append([draft('x'.repeat(200_000))])).length,
        1,
        'a single one may be larger',
      );
    },
  );

  withBroker(
    'what a follower has not dealt with yet counts as waiting',
    { maxQueueBytes: 100_000 },
    async (broker) => {
      let release = () => {};
      /** @type {Promise<void>} */
      const released = new Promise((resolve) => {
        release = resolve;
      });
      /** @type {number[]} */
      const followed = [];
      broker.follow((publications) => {
        followed.push(...sequencesOf(publications));
        return released;
      });
      /** @param {number} count @returns {Promise<number>} how many were refused */
      const refused = async (count) => {
        const appends = Array.from({ length: count }, () => broker.append([draft('x'.repeat(10_000))]));
        return (await Promise.allSettled(appends)).filter(({ status }) => status === 'rejected').length;
      };
      assert.equal(await refused(9), 0);
      assert.equal(await refused(3), 3);
      release();
      await until(async () => (await refused(1)) === 0, 'there is room again');
      assert.deepEqual(followed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    },
  );

  withBroker('to close finishes what is in progress, and refuses the rest', {}, async (broker) => {
    const receipts = broker.append(drafts(3));
    const closed = broker.close();
    await assert.rejects(broker.append(drafts(1)), { name: 'HoldfastError', code: 'CLOSED' });
    assert.deepEqual(sequencesOf(await receipts), [1, 2, 3]);
    await closed;
  });
}
