/*
 * A broker is exchanged for its heir: nothing is lost, nothing comes twice, and the order stays. The one before is in another process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { prepareInheritance } from '../broker/inherit.js';
import { SwitchBroker } from '../broker/switch.js';
import { OPTIONS, onDisk, openRemote } from './helpers/brokers.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { until } from './helpers/until.js';

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../broker/index.js').Draft} Draft */
/** @typedef {import('../broker/index.js').Publication} Publication */
/** @typedef {import('./helpers/brokers.js').Options} Options */

/** @param {string} data @param {Partial<Draft>} [more] @returns {Draft} */
const draft = (data, more) => ({ topics: ['news'], data, private: false, ...more });

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** @param {number} count @param {Partial<Draft>} [more] */
const drafts = (count, more) => range(1, count).map((number) => draft(`${number}`, more));

/** @param {readonly { sequence: number }[]} numbered */
const sequencesOf = (numbered) => numbered.map(({ sequence }) => sequence);

/** @param {Broker} broker @returns {Promise<Publication[]>} all that is stored */
async function historyOf(broker) {
  /** @type {Publication[]} */
  const found = [];
  for (let page = await broker.read(0, 500); page.length > 0; page = await broker.read(found.length, 500))
    found.push(...page);
  return found;
}

/** @param {import('node:test').TestContext} t @param {Partial<Options>} [given] */
async function begin(t, given) {
  const options = { ...OPTIONS, historyCount: 100_000, historyBytes: 1e9, maxQueueBytes: 1e8, ...given };
  const first = await openRemote(options);
  const broker = new SwitchBroker(first, options);
  t.after(() => Promise.all([broker.close(), first.close()]));
  /** @type {Publication[]} */
  const followed = [];
  let resets = 0;
  broker.follow(
    (publications) => void followed.push(...publications),
    () => resets++,
  );
  return { options, first, broker, followed, resets: () => resets };
}

const natses = (await natsBinaries()).map(({ version, path, problem }) => ({
  name: `NATS ${version}`,
  problem,
  /** @param {import('node:test').TestContext} t @returns {Promise<Partial<Options>>} */
  place: async (t) => ({
    nats: { servers: [(await startNats(t, { path })).url], stream: 'S', replicas: 1 },
  }),
}));

const KINDS = [
  { name: 'memory', problem: '', place: async () => ({}) },
  { name: 'disk', problem: '', place: async () => ({ store: onDisk(OPTIONS).store }) },
  ...natses,
  ...natses.map(({ name, problem, place }) => ({
    name: `${name} with a store`,
    problem,
    place: async (/** @type {import('node:test').TestContext} */ t) => ({
      ...(await place(t)),
      store: onDisk(OPTIONS).store,
    }),
  })),
];

for (const { name, problem, place } of KINDS)
  test(`${name}: publishers publish all the time while the broker moves to another process`, {
    skip: problem || false,
  }, async (t) => {
    const { options, first, broker, followed, resets } = await begin(t, await place(t));
    await first.append(drafts(3000, { topics: ['old', 'cached/a'] }));
    /** @type {Map<string, number>} */
    const stored = new Map();
    let isDone = false;
    t.after(() => {
      isDone = true;
    });
    const publish = async (/** @type {number} */ publisher) => {
      for (let number = 1; !isDone; number++) {
        const id = `${publisher} ${number}`;
        const [receipt, again] = await broker.append([draft(id, { id }), draft(id, { id })]);
        assert.deepEqual(again, { sequence: receipt.sequence, isNew: false });
        stored.set(id, receipt.sequence);
        await endOfTurn();
      }
    };
    const publishers = range(1, 5).map(publish);
    await until(() => stored.size > 100, 'publications');
    const inheritance = await prepareInheritance(broker, options);
    const { epoch, key } = broker;
    await inheritance.switch(() => first.handOver());
    const { size } = stored;
    await until(() => stored.size > size + 100, 'publications afterwards');
    isDone = true;
    await Promise.all(publishers);
    assert.deepEqual([broker.epoch, broker.key, resets()], [epoch, key, 0]);
    assert.notEqual(broker.current, first);
    await until(() => followed.at(-1)?.sequence === broker.last, 'all that was published');
    assert.deepEqual(sequencesOf(followed), range(1, broker.last));
    for (const [id, sequence] of stored) assert.equal(followed[sequence - 1].id, id);
    // Each node of NATS notes when it has got a publication.
    const known = (/** @type {Publication} */ one) => ({ ...one, at: name.startsWith('NATS') ? 0 : one.at });
    assert.deepEqual((await historyOf(broker)).map(known), followed.map(known));
    assert.equal(new Set(followed.map(({ id }) => id)).size, followed.length - 3000 + 1);
    assert.deepEqual(sequencesOf(await broker.latest()), [3000]);
    const [old] = await broker.append([draft('again', { id: '1 1' })]);
    assert.deepEqual(old, { sequence: stored.get('1 1'), isNew: false });
  });
