/*
 * What every broker promises, tried with each of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBroker } from '../broker/index.js';

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('../broker/index.js').Limits} Limits */
/** @typedef {import('../broker/index.js').Publication} Publication */

/** @type {Limits} */
const LIMITS = {
  historyCount: 1000,
  historyAgeMs: 3_600_000,
  historyBytes: 1_048_576,
  isCached: (topic) => topic.startsWith('cached/'),
  maxQueueBytes: 1_048_576,
};

/** @type {{ name: string, open: (limits: Limits) => Promise<Broker> }[]} */
const BROKERS = [{ name: 'memory', open: (limits) => openBroker({ ...limits, store: '', syncs: true }) }];

/** @param {string} text @param {Partial<Draft>} [more] @returns {Draft} */
const draft = (text, more) => ({ topics: ['news'], data: text, private: false, ...more });

/** @param {number} count @returns {Draft[]} */
const drafts = (count) => Array.from({ length: count }, (_, index) => draft(String(index + 1)));

/** @param {readonly Publication[]} publications */
const dataOf = (publications) => publications.map(({ data }) => data);

for (const { name, open } of BROKERS) {
  /**
   * @param {string} behaviour @param {Partial<Limits>} limits
   * @param {(broker: Broker) => Promise<void>} body
   */
  const withBroker = (behaviour, limits, body) =>
    test(`${name}: ${behaviour}`, async () => {
      const broker = await open({ ...LIMITS, ...limits });
      try {
        await body(broker);
      } finally {
        await broker.close();
      }
    });

  withBroker('a new one has an epoch and a key, and nothing is stored', {}, async (broker) => {
    assert.ok(broker.epoch > 0 && broker.epoch < 2 ** 32 && Number.isInteger(broker.epoch));
    assert.equal(broker.key.length, 16);
    assert.deepEqual([broker.first, broker.last], [1, 0]);
    assert.deepEqual(await broker.read(0, 10), []);
    assert.deepEqual(await broker.latest(), []);
    assert.equal(await broker.find('anything'), undefined);
  });

  withBroker('sequences are consecutive, within a call and across calls', {}, async (broker) => {
    const receipts = await Promise.all([1, 3, 2].map((count) => broker.append(drafts(count))));
    const sequences = receipts.flat().map(({ sequence }) => sequence);
    assert.deepEqual(sequences, [1, 2, 3, 4, 5, 6]);
    assert.ok(receipts.flat().every(({ isNew }) => isNew));
    assert.deepEqual([broker.first, broker.last], [1, 6]);
    assert.deepEqual(dataOf(await broker.read(0, 100)), ['1', '1', '2', '3', '1', '2']);
  });

  withBroker('what is read is what was published', {}, async (broker) => {
    const all = [
      draft('plain'),
      draft('', { topics: ['ä', '𝄞', 'https://example.com/%20'], private: true }),
      draft('line\r\nbreak\0\u2028', { id: 'urn:1', type: 'böse', retry: 2 ** 31 - 1 }),
    ];
    const before = Date.now();
    await broker.append(all);
    const found = await broker.read(0, 10);
    for (const [index, { sequence, at, ...rest }] of found.entries()) {
      assert.equal(sequence, index + 1);
      assert.ok(at >= before - 1 && at <= Date.now() + 1);
      assert.deepEqual(rest, { id: undefined, type: undefined, retry: undefined, ...all[index] });
    }
    assert.equal(found.length, 3);
  });

  withBroker('followers get everything once, in order, before the append resolves', {}, async (broker) => {
    await broker.append(drafts(2));
    /** @type {number[]} */
    const followed = [];
    broker.follow((publications) => {
      assert.ok(broker.last >= (publications.at(-1)?.sequence ?? 0));
      followed.push(...publications.map(({ sequence }) => sequence));
    });
    /** @param {number} count */
    const append = async (count) => {
      const receipts = await broker.append(drafts(count));
      for (const { sequence } of receipts) assert.ok(followed.includes(sequence), String(sequence));
    };
    await Promise.all([append(1), append(5), append(2)]);
    await append(1);
    assert.deepEqual(followed, [3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });
}
