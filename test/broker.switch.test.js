/*
 * A broker is exchanged for its heir: nothing is lost, nothing comes twice, and the order stays. The one before is in another process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { prepareInheritance } from '../broker/inherit.js';
import { openLocal } from '../broker/local.js';
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

test('while it is exchanged, publications and questions wait, up to a limit, and are answered by the next one', async (t) => {
  const { options, first, broker, followed } = await begin(t, { maxQueueBytes: 100_000 });
  await broker.append([draft('a', { id: 'a' })]);
  const inheritance = await prepareInheritance(broker, options);
  let close = () => {};
  /** @type {Promise<void>} */
  const closed = new Promise((resolve) => {
    close = resolve;
  });
  const switched = inheritance.switch(async () => {
    await closed;
    await first.handOver();
  });
  await assert.rejects(
    inheritance.switch(async () => {}),
    { code: 'BUSY' },
  );
  const appends = range(1, 9).map((n) => broker.append([draft('x'.repeat(10_000), { id: `${n}` })]));
  await assert.rejects(broker.append([draft('x'.repeat(10_000))]), { code: 'BUSY' });
  const questions = [broker.read(0, 1), broker.find('a'), broker.latest()];
  await endOfTurn();
  assert.equal(followed.length, 1);
  close();
  await switched;
  assert.deepEqual(sequencesOf((await Promise.all(appends)).flat()), range(2, 10));
  const [read, found, latest] = /** @type {any[]} */ (await Promise.all(questions));
  assert.deepEqual([read.length, found, latest], [1, 1, []]);
  assert.deepEqual(sequencesOf(followed), range(1, 10));
});

test('what is in progress is answered before the next one is opened', async (t) => {
  const { broker } = await begin(t);
  let answered = 0;
  const count = () => void answered++;
  const appends = range(1, 20).map(() => broker.append(drafts(1)).then(count));
  const reads = range(1, 20).map((after) => broker.read(after, 1).then(count));
  await endOfTurn();
  await assert.rejects(
    broker.switchTo(async () => {
      await endOfTurn(); // whoever asked has been told
      assert.equal(answered, 40);
      throw new Error('as expected');
    }),
    /as expected/,
  );
  await Promise.all([...appends, ...reads]);
});

test('a question that waits is not answered from another order', async (t) => {
  const { broker } = await begin(t);
  const switched = broker.switchTo(() => openLocal({ ...OPTIONS }));
  const question = assert.rejects(broker.read(0, 10), { code: 'BUSY' });
  await switched;
  await question;
  assert.deepEqual(await broker.read(0, 10), []);
});

test('if the next one can not be opened, everything goes on with the first', async (t) => {
  const { broker, first, followed, resets } = await begin(t);
  await broker.append(drafts(2));
  const failing = broker.switchTo(() => Promise.reject(new Error('no room')));
  const waiting = broker.append(drafts(1));
  await assert.rejects(failing, /no room/);
  assert.deepEqual(sequencesOf(await waiting), [3]);
  assert.deepEqual([broker.current, sequencesOf(followed), resets()], [first, [1, 2, 3], 0]);
  await broker.switchTo(() => openLocal({ ...OPTIONS })); // it can be tried again
  assert.equal(resets(), 1);
});

test('what the next broker has and was not passed on yet comes first', async (t) => {
  const { broker, followed, resets } = await begin(t);
  await broker.append(drafts(2));
  const next = await openLocal({ ...OPTIONS, isCopy: true, historyCount: 10_000 });
  await next.restart({ epoch: broker.epoch, key: broker.key, last: 0 });
  await next.append(drafts(2500));
  const switched = broker.switchTo(async () => next);
  await switched;
  await next.append(drafts(1));
  assert.deepEqual(sequencesOf(followed), range(1, 2501));
  assert.deepEqual([broker.last, resets()], [2501, 0]);
});

test('another order, and a gap, are resets', async (t) => {
  const { broker, followed, resets } = await begin(t);
  await broker.append(drafts(2));
  const { epoch, key } = broker;
  const gap = await openLocal({ ...OPTIONS, isCopy: true });
  await gap.restart({ epoch, key, last: 10 });
  await gap.append(drafts(3));
  await broker.switchTo(async () => gap);
  assert.deepEqual([broker.epoch, broker.first, broker.last, resets()], [epoch, 11, 13, 1]);
  const other = await openLocal({ ...OPTIONS, isCopy: true });
  await other.append(drafts(1));
  await broker.switchTo(async () => other);
  assert.deepEqual([broker.epoch, broker.key, broker.last, resets()], [other.epoch, other.key, 1, 2]);
  await gap.append(drafts(1)).catch(() => {});
  await other.restart({ epoch, key, last: 100 });
  await broker.append(drafts(1));
  assert.deepEqual([sequencesOf(followed), broker.last, resets()], [[1, 2, 101], 101, 3]);
});

test('a node that is behind is waited for', async (t) => {
  const { broker, followed, resets } = await begin(t);
  await broker.append(drafts(3));
  const next = await openLocal({ ...OPTIONS, isCopy: true });
  await next.restart({ epoch: broker.epoch, key: broker.key, last: 0 });
  const switched = broker.switchTo(async () => next);
  const waiting = broker.read(0, 10);
  for (let count = 0; count < 5; count++) {
    await endOfTurn();
    await next.append(drafts(1));
  }
  await switched;
  assert.deepEqual([sequencesOf(followed), resets()], [range(1, 5), 0]);
  assert.equal((await waiting).length, 5);
});

test('cached topics beyond retention and ids are inherited, and retention goes on', async (t) => {
  const { options, first, broker } = await begin(t, { historyCount: 10 });
  const cached = (/** @type {string} */ id) => draft(id, { id, topics: [`cached/${id}`] });
  await broker.append([cached('a'), cached('b'), ...drafts(3000), cached('c')]);
  await until(() => broker.first === 2994, 'older ones are dropped');
  const copied = prepareInheritance(broker, options);
  const appends = range(1, 50).map((n) => broker.append([cached(n % 2 ? 'd' : `${n}`)]));
  const inheritance = await copied;
  await Promise.all(appends);
  await broker.append([draft('again', { topics: ['cached/b'] })]);
  const before = await broker.latest();
  await inheritance.switch(() => first.handOver());
  assert.deepEqual(await broker.latest(), before);
  assert.equal(broker.current.first, broker.last - 9);
  const ids = ['a', 'b', 'c'];
  const found = await Promise.all(ids.map((id) => broker.find(id)));
  assert.deepEqual(found, [1, undefined, 3003]);
  const [again] = await broker.append([cached('a')]);
  assert.deepEqual(again, { sequence: 1, isNew: false });
  await broker.append(drafts(5));
  await until(() => broker.first === broker.last - 9, 'retention');
});

test('a history of nothing is inherited too', async (t) => {
  const { options, first, broker } = await begin(t, { historyCount: 0 });
  await broker.append([draft('a', { topics: ['cached/a'] }), ...drafts(10)]);
  const inheritance = await prepareInheritance(broker, options);
  await broker.append([draft('b', { topics: ['cached/b'] })]);
  await inheritance.switch(() => first.handOver());
  assert.deepEqual(sequencesOf(await broker.latest()), [1, 12]);
  assert.deepEqual(sequencesOf(await broker.append(drafts(1))), [13]);
});

test('an order that begins anew while it is copied is copied from its beginning', async (t) => {
  const source = await openLocal({
    ...OPTIONS,
    isCopy: true,
    historyCount: 100_000,
    historyBytes: 1e9,
    maxQueueBytes: 1e8,
  });
  const broker = new SwitchBroker(source, OPTIONS);
  t.after(() => broker.close());
  await source.append(drafts(5000));
  const copied = prepareInheritance(broker, { ...OPTIONS });
  await endOfTurn();
  await source.restart({ epoch: 7, key: new Uint8Array(16), last: 100 });
  await source.append(drafts(2));
  const inheritance = await copied;
  await source.restart({ epoch: 8, key: new Uint8Array(16), last: 200 });
  await source.append(drafts(3));
  await inheritance.switch(async () => {});
  assert.deepEqual([broker.epoch, broker.first, broker.last], [8, 201, 203]);
  assert.notEqual(broker.current, source);
});
