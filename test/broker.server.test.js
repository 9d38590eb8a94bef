/*
 * One broker and several workers, connected by what a channel between processes does: messages become text, and arrive in order.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openLocal } from '../broker/local.js';
import { RemoteBroker } from '../broker/remote.js';
import { BrokerServer } from '../broker/server.js';
import { dispatch } from '../lib/dispatch.js';
import { OPTIONS } from './helpers/brokers.js';
import { until } from './helpers/until.js';

/** @typedef {import('../broker/messages.js').ToRemote} ToRemote */
/** @typedef {import('./helpers/brokers.js').Options} Options */

/** @param {import('node:test').TestContext} t @param {Partial<Options>} [options] */
async function serve(t, options) {
  return (await serveCopy(t, options)).server;
}

/** @param {import('node:test').TestContext} t @param {Partial<Options>} [options] */
async function serveCopy(t, options) {
  const copy = await openLocal({ ...OPTIONS, ...options });
  const server = new BrokerServer(copy);
  t.after(() => server.close());
  return { server, copy };
}

/** @param {BrokerServer} server @param {{ answerMs?: number }} [options] */
function connect(server, { answerMs = 30_000 } = {}) {
  const worker = {};
  /** @type {ToRemote[]} what arrived while it was suspended */
  const late = [];
  /** @type {ToRemote[]} */
  const arrived = [];
  const state = { isSuspended: false, isDead: false };
  const arrive = (/** @type {ToRemote} */ message) => {
    if (state.isSuspended) return void late.push(message);
    arrived.push(message);
    if (message.type === 'feed') remote.feed(message);
    else if (message.type === 'reset') remote.reset(message);
    else remote.answer(message);
  };
  const handlers = server.handlersOf(worker);
  const place = server.add(worker, (message) => {
    const text = JSON.stringify(message);
    setImmediate(() => arrive(JSON.parse(text)));
  });
  const remote = new RemoteBroker({
    place,
    maxQueueBytes: OPTIONS.maxQueueBytes,
    answerMs,
    send: (message) => {
      const text = JSON.stringify(message);
      setImmediate(() => state.isDead || dispatch(handlers, JSON.parse(text)));
    },
  });
  /** @type {number[]} */
  const followed = [];
  /** @type {[number, number, number, number][]} epoch, first byte of the key, first, last */
  const resets = [];
  remote.follow(
    (publications) => void followed.push(...publications.map(({ sequence }) => sequence)),
    () => {
      resets.push([remote.epoch, remote.key[0], remote.first, remote.last]);
      followed.push(0);
    },
  );
  const suspend = () => {
    state.isSuspended = true;
  };
  const resume = () => {
    state.isSuspended = false;
    for (const message of late.splice(0)) arrive(message);
  };
  const die = () => {
    state.isDead = true;
    server.remove(worker);
  };
  return { remote, followed, resets, arrived, suspend, resume, die };
}

/** @param {number} count @param {string} [data] */
const drafts = (count, data = 'hello') =>
  Array.from({ length: count }, () => ({ topics: ['news'], data, private: false }));

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('every worker gets every publication once, in one order, whoever published it', async (t) => {
  const server = await serve(t);
  const workers = [connect(server), connect(server), connect(server)];
  const appends = range(1, 50).flatMap((count) =>
    workers.map(({ remote }) => remote.append(drafts(count % 4))),
  );
  const receipts = (await Promise.all(appends)).flat();
  const sequences = receipts.map(({ sequence }) => sequence).sort((a, b) => a - b);
  assert.deepEqual(sequences, range(1, receipts.length));
  await until(() => workers.every(({ remote }) => remote.last === receipts.length), 'all have come');
  for (const { followed } of workers) assert.deepEqual(followed, sequences);
});

test('the drafts of a turn are one message, and so are the publications of a turn', async (t) => {
  const server = await serve(t);
  const { remote, arrived } = connect(server);
  await Promise.all(range(1, 100).map(() => remote.append(drafts(1))));
  assert.equal(arrived.length, 1);
});

test('much of a turn is sent in several messages, and the order stays', async (t) => {
  const server = await serve(t, { maxQueueBytes: 100e6 });
  const { remote, arrived, followed } = connect(server);
  const [receipts] = await Promise.all([
    server.broker.append(drafts(40, 'x'.repeat(50_000))),
    remote.append(drafts(2)),
  ]);
  assert.equal(receipts.length, 40);
  assert.deepEqual(followed, range(1, 42));
  assert.ok(arrived.length > 5, `${arrived.length} messages`);
});

test('a worker that starts gets its place, and everything after it exactly once', async (t) => {
  const server = await serve(t);
  const first = connect(server);
  /** @type {ReturnType<typeof connect>[]} */
  const others = [];
  let published = 0;
  for (let round = 0; round < 30; round++) {
    published += 3;
    void first.remote.append(drafts(3));
    if (round % 3 === 0) others.push(connect(server)); // sometimes between an append and its feed
    if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
    others.push(connect(server));
  }
  await until(() => [first, ...others].every(({ remote }) => remote.last === published), 'all have come');
  for (const { followed } of others) {
    const [start = published + 1] = followed;
    assert.deepEqual(followed, range(start, published));
  }
  const starts = others.map(({ followed }) => followed.length);
  assert.ok(new Set(starts).size > 5, `${starts}`);
  for (const { remote } of others)
    assert.deepEqual([remote.epoch, remote.key], [server.broker.epoch, server.broker.key]);
});

test('what a worker has not delivered is bounded, nothing is lost, and other workers are told BUSY', async (t) => {
  const server = await serve(t, { maxQueueBytes: 100_000 });
  const [slow, other] = [connect(server), connect(server)];
  slow.suspend();
  let accepted = 0;
  /** @type {unknown} */
  let problem;
  for (let count = 0; count < 100 && !problem; count++)
    await other.remote.append(drafts(1, 'x'.repeat(10_000))).then(
      () => accepted++,
      (error) => {
        problem = error;
      },
    );
  assert.equal(/** @type {any} */ (problem).code, 'BUSY');
  assert.equal(accepted, 9);
  slow.resume();
  await until(() => other.remote.append(drafts(1)).catch(() => null), 'there is room again');
  await until(() => slow.followed.length > accepted, 'all have come');
  assert.deepEqual(slow.followed.slice(0, accepted), range(1, accepted));
});

test('a worker that dies is forgotten, and what it had not delivered does not count any more', async (t) => {
  const server = await serve(t, { maxQueueBytes: 100_000 });
  const [dying, other] = [connect(server), connect(server)];
  dying.suspend();
  for (let count = 0; count < 9; count++) await other.remote.append(drafts(1, 'x'.repeat(10_000)));
  void dying.remote.append(drafts(1)).catch(() => {});
  await assert.rejects(other.remote.append(drafts(1, 'x'.repeat(10_000))), { code: 'BUSY' });
  dying.die();
  await other.remote.append(drafts(1, 'x'.repeat(10_000)));
  assert.equal(server.seats.size, 1);
});

test('a listener that waits delays what its worker acknowledges', async (t) => {
  const server = await serve(t, { maxQueueBytes: 100_000 });
  const { remote } = connect(server);
  /** @type {(() => void)[]} */
  const releases = [];
  remote.follow(() => new Promise((resolve) => void releases.push(resolve)));
  for (let count = 0; count < 9; count++) await remote.append(drafts(1, 'x'.repeat(10_000)));
  await assert.rejects(remote.append(drafts(1, 'x'.repeat(10_000))), { code: 'BUSY' });
  for (const release of releases.slice(1)) release();
  await assert.rejects(
    remote.append(drafts(1, 'x'.repeat(10_000))),
    { code: 'BUSY' },
    'the first still waits',
  );
  releases[0]();
  await until(() => remote.append(drafts(1)).catch(() => null), 'there is room again');
});

test('a primary that does not answer in time is BUSY, and its late answers are ignored', async (t) => {
  const server = await serve(t);
  const { remote, followed, suspend, resume } = connect(server, { answerMs: 50 });
  suspend();
  await assert.rejects(remote.append(drafts(2)), {
    name: 'HoldfastError',
    code: 'BUSY',
    message: 'the primary did not answer within 50 ms: the publications may be stored or not',
  });
  const questions = [remote.read(0, 10), remote.find('x'), remote.latest()];
  for (const question of questions)
    await assert.rejects(question, { code: 'BUSY', message: 'the primary did not answer within 50 ms' });
  resume();
  assert.deepEqual(followed, [1, 2]);
  assert.equal((await remote.read(0, 10)).length, 2);
  assert.deepEqual([remote.bytes, remote.parts.size, remote.pending.questions.size], [0, 0, 0]);
});

test('workers learn how far retention has moved, also when nothing is published', async (t) => {
  const server = await serve(t, { historyAgeMs: 200 });
  const { remote } = connect(server);
  await remote.append(drafts(5));
  assert.equal(remote.first, 1);
  await until(() => remote.first === 6, 'they have expired', 10_000);
});

test('the last publications of many cached topics come in several messages', async (t) => {
  const server = await serve(t, { maxQueueBytes: 100e6, historyBytes: 100e6 });
  const { remote, arrived } = connect(server);
  const data = 'x'.repeat(10_000);
  await remote.append(range(1, 200).map((n) => ({ topics: [`cached/${n}`], data, private: false })));
  const before = arrived.length;
  const latest = await remote.latest();
  assert.deepEqual(
    latest.map(({ sequence }) => sequence),
    range(1, 200),
  );
  assert.ok(arrived.length - before > 5);
});

test('an error of the broker reaches the publisher with its code', async (t) => {
  const server = await serve(t);
  const { remote } = connect(server);
  await server.close();
  await assert.rejects(remote.append(drafts(1)), { name: 'HoldfastError', code: 'CLOSED' });
});

/** @param {number} epoch @param {number} last */
const order = (epoch, last) => ({ epoch, key: new Uint8Array(16).fill(epoch), last });

test('an order that begins anew comes to all workers between the publications before and those after', async (t) => {
  const { server, copy } = await serveCopy(t);
  const workers = [connect(server), connect(server)];
  const before = workers.map(({ remote }) => remote.append(drafts(3)));
  await until(() => copy.last === 6, 'they are stored');
  await copy.restart(order(7, 100));
  const late = connect(server);
  const after = workers.map(({ remote }) => remote.append(drafts(2)));
  const receipts = await Promise.all([...before, ...after]);
  assert.deepEqual(
    receipts.flat().map(({ sequence }) => sequence),
    [...range(1, 6), ...range(101, 104)],
  );
  await until(() => [...workers, late].every(({ remote }) => remote.last === 104), 'all have come');
  for (const { remote, followed, resets } of workers) {
    assert.deepEqual(followed, [...range(1, 6), 0, ...range(101, 104)]);
    assert.deepEqual(resets, [[7, 7, 101, 100]]);
    assert.deepEqual([remote.epoch, remote.first], [7, 101]);
  }
  assert.deepEqual([late.followed, late.resets], [range(101, 104), []]);
});

test('what is sent of the order before says nothing of the next one', async (t) => {
  const { server, copy } = await serveCopy(t);
  const { arrived, remote } = connect(server);
  const appended = copy.append(drafts(2));
  copy.follow(() => void copy.restart(order(7, 1000)));
  await appended;
  await until(() => remote.last === 1000, 'the reset');
  const feeds = arrived.map((message) => [message.type, 'first' in message ? message.first : 0]);
  assert.deepEqual(feeds, [
    ['feed', 1],
    ['reset', 0],
  ]);
});

test('what a worker asked before the order began anew is BUSY, and what it asks then is answered', async (t) => {
  const { server, copy } = await serveCopy(t);
  const { remote } = connect(server);
  await remote.append([{ ...drafts(1)[0], id: 'a', topics: ['cached/a'] }, ...drafts(9)]);
  await copy.restart(order(7, 0)); // the worker has not heard of it
  void copy.append([{ ...drafts(1)[0], id: 'a', topics: ['cached/a'] }]);
  // More than are asked at a time.
  const questions = range(0, 9).map((after) => remote.read(after, 10));
  questions.push(/** @type {any} */ (remote.find('a')), remote.latest());
  assert.notEqual(remote.epoch, 7);
  /** @type {unknown[]} */
  const again = [];
  remote.follow(
    () => {},
    () => void again.push(remote.read(0, 10), remote.find('a'), remote.latest()),
  );
  for (const outcome of await Promise.allSettled(questions))
    assert.equal(outcome.status === 'rejected' && outcome.reason.code, 'BUSY');
  const [read, found, latest] = /** @type {any[]} */ (await Promise.all(again));
  assert.deepEqual([read.length, found, latest.length], [1, 1, 1]);
  assert.deepEqual([remote.parts.size, remote.pending.questions.size, remote.reads.answers.size], [0, 0, 0]);
});

test('what no worker has delivered yet does not count any more when the order begins anew', async (t) => {
  const { server, copy } = await serveCopy(t, { maxQueueBytes: 100_000 });
  const { remote, followed } = connect(server);
  /** @type {(() => void)[]} */
  const releases = [];
  remote.follow(() => new Promise((resolve) => void releases.push(resolve)));
  const fill = async () => {
    for (let count = 0; count < 9; count++) {
      await copy.append(drafts(1, 'x'.repeat(10_000)));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await fill();
  await assert.rejects(copy.append(drafts(1, 'x'.repeat(10_000))), { code: 'BUSY' });
  await copy.restart(order(7, 3));
  await fill();
  await assert.rejects(copy.append(drafts(1, 'x'.repeat(10_000))), { code: 'BUSY' });
  await until(() => followed.length === 19, 'all have come');
  for (const release of releases.slice(0, 9)) release();
  await wait(50);
  await assert.rejects(
    copy.append(drafts(1, 'x'.repeat(10_000))),
    { code: 'BUSY' },
    'what was delivered is of the order before',
  );
  assert.equal(remote.delivered, 3);
  for (const release of releases.slice(9)) release();
  await until(() => copy.append(drafts(1)).catch(() => null), 'there is room again');
});

test('a worker that has delivered something of the order before says nothing about the next', async (t) => {
  const { server, copy } = await serveCopy(t);
  const worker = {};
  const { fed } = server.handlersOf(worker);
  server.add(worker, () => {});
  const { epoch } = copy;
  await copy.append(drafts(100));
  await copy.restart(order(7, 3));
  await copy.append(drafts(1));
  fed({ type: 'fed', epoch, sequence: 100 });
  assert.equal(server.batches.length, 1);
  fed({ type: 'fed', epoch: 7, sequence: 4 });
  assert.equal(server.batches.length, 0);
});

test('while it is frozen, nothing is sent, and then everything comes in order: publications, receipts, answers', async (t) => {
  const { server, copy } = await serveCopy(t);
  const [one, other] = [connect(server), connect(server)];
  await one.remote.append(drafts(3));
  void copy.append(drafts(2));
  await copy.append(drafts(1));
  server.freeze();
  server.freeze();
  await until(() => [one, other].every(({ remote }) => remote.last === 6), 'what was fed before');
  const before = [one, other].map(({ arrived }) => arrived.length);
  const answers = [one.remote.append(drafts(2)), other.remote.append(drafts(1)), one.remote.read(5, 100)];
  await until(() => copy.last === 9, 'it goes on being stored');
  await wait(20);
  server.flush();
  server.outbox.tellFirst();
  assert.deepEqual(
    [one, other].map(({ arrived }) => arrived.length),
    before,
  );
  server.thaw();
  server.thaw();
  const [first, second, read] = await Promise.all(answers);
  assert.deepEqual(
    [first, second].flat().map(({ sequence }) => sequence),
    [7, 8, 9],
  );
  assert.deepEqual(
    read.map(({ sequence }) => sequence),
    [6, 7, 8, 9].slice(0, read.length),
  );
  for (const { remote, followed } of [one, other]) {
    await until(() => remote.last === 9, 'the rest');
    assert.deepEqual(followed, range(1, 9));
  }
  await until(() => server.batches.length === 0, 'nothing is waited for');
});

/** Nine of them. @param {import('../broker/index.js').Broker} broker */
async function fill(broker) {
  for (let count = 0; count < 9; count++) {
    await broker.append(drafts(1, 'x'.repeat(10_000)));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('what waits while it is frozen is bounded: publishers are told BUSY', async (t) => {
  const { server, copy } = await serveCopy(t, { maxQueueBytes: 100_000 });
  const { remote, followed } = connect(server);
  server.freeze();
  await fill(copy);
  await assert.rejects(copy.append(drafts(1, 'x'.repeat(10_000))), { code: 'BUSY' });
  server.thaw();
  await until(() => remote.append(drafts(1)).catch(() => null), 'there is room again');
  assert.deepEqual(followed, range(1, 10));
});

test('a worker that starts while it is frozen gets everything that waits', async (t) => {
  const { server, copy } = await serveCopy(t, { maxQueueBytes: 100_000 });
  const first = connect(server);
  await copy.append(drafts(2));
  server.freeze();
  first.die();
  await fill(copy);
  const { remote, followed } = connect(server);
  assert.equal(remote.last, 2);
  server.thaw();
  await until(() => remote.last === 11, 'all have come');
  assert.deepEqual(followed, range(3, 11));
  await until(() => copy.waitingBytes === 0, 'nothing waits');
});

test('an order that begins anew while it is frozen comes after what is before it', async (t) => {
  const { server, copy } = await serveCopy(t);
  const { remote, followed, resets, arrived } = connect(server);
  await copy.append(drafts(2));
  server.freeze();
  await copy.append(drafts(2));
  await copy.restart(order(7, 100));
  await copy.append(drafts(1));
  await copy.restart(order(8, 200));
  const late = connect(server);
  await copy.append(drafts(1));
  await wait(20);
  assert.deepEqual(followed, [1, 2]);
  server.thaw();
  for (const one of [remote, late.remote]) await until(() => one.last === 201, 'all have come');
  assert.deepEqual(followed, [1, 2, 3, 4, 0, 101, 0, 201]);
  assert.deepEqual(late.followed, [3, 4, 0, 101, 0, 201]);
  assert.deepEqual(
    resets.map(([epoch, , first, last]) => [epoch, first, last]),
    [
      [7, 101, 100],
      [8, 201, 200],
    ],
  );
  const firsts = arrived.map((message) => ('first' in message ? message.first : 0));
  assert.deepEqual(firsts, [1, 1, 0, 101, 0, 201], 'a feed is about the history of its order');
  await until(() => copy.waitingBytes === 0, 'nothing waits');
});

test('a broker that is closed for a handover has answered and fed everything, and can be read', async (t) => {
  const { server } = await serveCopy(t);
  const [one, other] = [connect(server), connect(server)];
  const receipts = one.remote.append(drafts(3));
  await until(() => server.broker.last === 3, 'they are stored');
  const place = await server.closeForHandover();
  assert.equal(place.last, 3);
  assert.equal((await receipts).length, 3);
  for (const { remote } of [one, other]) await until(() => remote.last === 3, 'all have come');
  await assert.rejects(other.remote.append(drafts(1)), { code: 'CLOSED' });
  assert.equal((await other.remote.read(0, 10)).length, 3);
});

test('an answer in parts has its time again with each of them', async () => {
  /** @type {any[]} */
  const sent = [];
  const place = { epoch: 1, key: '', first: 1, last: 3 };
  const send = (/** @type {unknown} */ message) => void sent.push(message);
  const remote = new RemoteBroker({ place, send, maxQueueBytes: 1000, answerMs: 300 });
  const found = remote.latest();
  const [{ id }] = sent;
  for (let sequence = 1; sequence <= 3; sequence++) {
    await wait(200);
    remote.answer({ type: 'answer', id, blocks: [[sequence, 0, [['a', 'x', 0]]]], more: sequence < 3 });
  }
  assert.deepEqual(
    (await found).map(({ sequence }) => sequence),
    [1, 2, 3],
  );
});
