import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Publications } from '../primary/publications.js';

const MiB = 1_048_576;

/** @typedef {import('../primary/messages.js').Publish} Publish */

/** @param {{ maxQueueBytes?: number, answerMs?: number, workers?: number }} [how] */
function start({ maxQueueBytes = 16 * MiB, answerMs = 60_000, workers = 1 } = {}) {
  const publications = new Publications({ maxQueueBytes, answerMs });
  const readers = Array.from({ length: workers }, () => {
    /** @type {Publish[]} */
    const got = [];
    const worker = { got };
    publications.add(worker, (message) => got.push(message));
    return worker;
  });
  const answer = (/** @type {number} */ index, /** @type {number} */ count, answers = { listeners: 1 }) => {
    for (const { id } of readers[index].got.splice(0, count))
      publications.answered(readers[index], { type: 'published', id, ...answers });
  };
  return { publications, readers, answer };
}

test('a publication goes to every worker, and its outcome is the sum of their listeners', async () => {
  const { publications, readers, answer } = start({ workers: 3 });
  const outcome = publications.publish('news', 'hello');
  for (const { got } of readers)
    assert.deepEqual(got, [{ type: 'publish', id: 1, channel: 'news', message: 'hello' }]);
  for (const index of [0, 1, 2]) answer(index, 1, { listeners: index });
  assert.deepEqual(await outcome, { listeners: 3, unanswered: 0 });
  assert.equal(publications.bytes, 0);
});

test('a worker has 64 unanswered publications at most, and the next one is sent after an answer', () => {
  const { publications, readers, answer } = start();
  for (let i = 0; i < 100; i++) void publications.publish('news', String(i));
  assert.equal(readers[0].got.length, 64);
  answer(0, 1);
  assert.deepEqual([readers[0].got.length, readers[0].got.at(-1)?.message], [64, '64']);
});

test('a worker has 1 MiB of unanswered publications at most, unless a single one is larger', () => {
  const { publications, readers, answer } = start();
  for (let i = 0; i < 40; i++) void publications.publish('news', 'x'.repeat(65_000));
  assert.equal(readers[0].got.length, 16);
  answer(0, 16);
  void publications.publish('news', 'x'.repeat(2 * MiB));
  answer(0, 16);
  assert.equal(readers[0].got.length, 8);
  answer(0, 8);
  assert.equal(readers[0].got[0].message.length, 2 * MiB);
});

test('channels take turns, and the publications of a channel keep their order', () => {
  const { publications, readers, answer } = start();
  for (let i = 0; i < 64 + 3; i++) void publications.publish('flood', `flood ${i}`);
  for (let i = 0; i < 2; i++) void publications.publish('other', `other ${i}`);
  void publications.publish('third', 'third');
  answer(0, 64);
  const messages = readers[0].got.map(({ message }) => message);
  assert.deepEqual(messages, ['flood 64', 'other 0', 'third', 'flood 65', 'other 1', 'flood 66']);
});

test('what waits is bounded in bytes: a publication that would exceed that is refused, and none after the answers', async () => {
  const { publications, readers, answer } = start({ maxQueueBytes: MiB, workers: 2 });
  const accepted = Array.from({ length: 15 }, () => publications.publish('news', 'x'.repeat(65_536)));
  assert.ok(publications.bytes > 15 * 65_536 && publications.bytes <= MiB);
  await assert.rejects(publications.publish('other', 'x'.repeat(65_536)), {
    code: 'BUSY',
    message: /^too many publications: \d+ bytes of publications are waiting, and --max-queue is 1048576$/,
  });
  answer(0, 15);
  await assert.rejects(publications.publish('other', 'x'.repeat(65_536)), { code: 'BUSY' });
  answer(1, 15);
  await Promise.all(accepted);
  assert.equal(publications.bytes, 0);
  void publications.publish('other', 'x'.repeat(65_536));
  assert.equal(readers[0].got.length, 1);
});

test('empty messages are bounded too', async () => {
  const { publications } = start({ maxQueueBytes: MiB });
  for (let i = 0; i < 5000; i++) publications.publish('n', '').catch(() => {});
  await assert.rejects(publications.publish('n', ''), { code: 'BUSY' });
});

test('what a worker that died had counts as answered, both what it was sent and what waited for it', async () => {
  const { publications, readers, answer } = start({ workers: 2 });
  const outcomes = Array.from({ length: 70 }, () => publications.publish('news', 'hello'));
  answer(0, 64);
  answer(0, 6);
  publications.remove(readers[1]);
  for (const outcome of outcomes) assert.deepEqual(await outcome, { listeners: 1, unanswered: 0 });
  assert.equal(publications.bytes, 0);
  publications.answered(readers[1], { type: 'published', id: 1, listeners: 1 }); // too late to matter
  assert.equal(publications.bytes, 0);
});

test('a worker that is silent delays the outcome until the deadline, but not the delivery by the others', async () => {
  const { publications, readers, answer } = start({ workers: 2, answerMs: 20 });
  for (let i = 0; i < 100; i++) void publications.publish('news', String(i));
  answer(0, 64);
  assert.equal(readers[0].got.length, 36);
  const outcome = publications.publish('news', 'last');
  answer(0, 37);
  assert.deepEqual(await outcome, { listeners: 1, unanswered: 1 });
  assert.ok(publications.bytes > 0, 'it is still waiting for the silent worker');
});

test('if a worker has no room for a publication, its publisher is told, even if others delivered it', async () => {
  const { publications, readers, answer } = start({ workers: 2 });
  const outcome = publications.publish('news', 'hello');
  answer(0, 1);
  publications.answered(readers[1], { type: 'published', id: readers[1].got[0].id, busy: true });
  await assert.rejects(outcome, { code: 'BUSY', message: /1 worker had no room/ });
  assert.equal(publications.bytes, 0);
});

test('what a worker finds wrong with a publication is the fault of its publisher', async () => {
  const { publications, readers } = start();
  const outcome = publications.publish('news', 'hello');
  publications.answered(readers[0], { type: 'published', id: 1, problem: 'the channel is strange' });
  await assert.rejects(outcome, { code: 'BAD_ARGUMENT', message: 'the channel is strange' });
});

test('without workers there are no listeners', async () => {
  const { publications } = start({ workers: 0 });
  assert.deepEqual(await publications.publish('news', 'hello'), { listeners: 0, unanswered: 0 });
  assert.equal(publications.bytes, 0);
});
