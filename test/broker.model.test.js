/*
 * Random operations on every broker, and on a model that is too simple to be wrong.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBroker } from '../broker/index.js';
import { BROKERS, OPTIONS, onDisk } from './helpers/brokers.js';

const STEPS = 150;
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('../broker/index.js').Publication} Publication */

/** @param {number} seed @returns {(below: number) => number} whole numbers (mulberry32) */
function randomFrom(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

class Model {
  /** @param {number} most publications in the history */
  constructor(most) {
    this.most = most;
    /** @type {(Draft & { sequence: number })[]} */
    this.all = [];
  }

  get last() {
    return this.all.length;
  }

  get first() {
    return Math.max(1, this.last - this.most + 1);
  }

  /** Retention comes after all of a call: ids that it drops are still known to the call. @param {Draft[]} drafts */
  append(drafts) {
    const known = this.ids();
    return drafts.map((draft) => {
      const { id } = draft;
      const sequence = id === undefined ? undefined : known.get(id);
      if (sequence !== undefined) return { sequence, isNew: false };
      this.all.push({ ...draft, sequence: this.last + 1 });
      if (id !== undefined) known.set(id, this.last);
      return { sequence: this.last, isNew: true };
    });
  }

  /** @returns {Map<string | undefined, number>} */
  ids() {
    const kept = new Set(this.latest());
    const stored = this.all.filter(({ sequence }) => sequence >= this.first || kept.has(sequence));
    return new Map(stored.map(({ id, sequence }) => [id, sequence]));
  }

  latest() {
    const last = new Map();
    for (const { topics, sequence } of this.all)
      for (const topic of topics) if (OPTIONS.isCached(topic)) last.set(topic, sequence);
    return [...new Set(last.values())].sort((a, b) => a - b);
  }
}

/** @param {(below: number) => number} random @param {number} step @returns {Draft} */
function randomDraft(random, step) {
  const topics = Array.from({ length: 1 + random(3) }, () => `${random(2) ? 'cached/' : ''}${random(6)}`);
  const data = `${step} ${'x'.repeat(random(20) ? random(300) : random(9000))}`;
  const id = random(3) ? undefined : `id ${random(40)}`;
  return {
    topics,
    data,
    private: random(2) === 1,
    id,
    type: random(4) ? undefined : 'type',
    retry: undefined,
  };
}

/** @param {Broker} broker @param {Model} model @param {(below: number) => number} random */
async function compare(broker, model, random) {
  assert.deepEqual([broker.first, broker.last], [model.first, model.last]);
  const after = random(model.last + 3);
  const most = 1 + random(30);
  const expected = model.all
    .filter(({ sequence }) => sequence > after && sequence >= model.first)
    .slice(0, most);
  const found = await broker.read(after, most);
  assert.deepEqual(
    found.map(({ at, ...rest }) => rest),
    expected,
  );
  assert.deepEqual(
    (await broker.latest()).map(({ sequence }) => sequence),
    model.latest(),
  );
  const id = `id ${random(45)}`;
  assert.equal(await broker.find(id), model.ids().get(id));
}

for (const { name, open } of BROKERS)
  test(`${name} does what the model does (seed ${SEED})`, async () => {
    const random = randomFrom(SEED);
    const isDisk = name.startsWith('disk');
    const options = { ...(isDisk ? onDisk(OPTIONS) : OPTIONS), historyCount: 25, syncs: name === 'disk' };
    let broker = await (isDisk ? openBroker(options) : open(options));
    const model = new Model(options.historyCount);
    try {
      for (let step = 0; step < STEPS; step++) {
        const drafts = Array.from({ length: random(7) }, () => randomDraft(random, step));
        const receipts = await broker.append(drafts);
        assert.deepEqual(receipts, model.append(drafts));
        await compare(broker, model, random);
        if (!isDisk || random(40) > 0) continue;
        await broker.close();
        broker = await openBroker(options);
      }
    } finally {
      await broker.close();
    }
  });
