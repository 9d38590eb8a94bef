import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { native, problem } from '../native/index.js';
import { StreamHolder } from '../transport/holder.js';
import { until } from './helpers/until.js';

const skip = native ? false : `the native core is unavailable: ${problem}`;
/** @type {(() => void | Promise<void>)[]} */
const ends = [];
after(() => Promise.all(ends.map((end) => end())));

/** @param {number} shards @param {Partial<import('../transport/options.js').HoldOptions>} [options] */
function open(shards, options = {}) {
  const decide = () => /** @type {const} */ ({ hold: 'events', channels: ['news'] });
  const holder = new StreamHolder({ shards, policy: { headers: [], decide }, ...options }, native, {
    sharesPort: true,
  });
  ends.push(() => holder.close());
  return holder;
}

/** @param {number} port @returns {Promise<{ text: () => string, isClosed: () => boolean }>} once it has the head of the response */
function client(port) {
  return new Promise((resolve, reject) => {
    let text = '';
    let isClosed = false;
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    ends.push(() => void socket.destroy());
    socket.on('error', reject).on('close', () => {
      isClosed = true;
    });
    socket.on('data', (data) => {
      text += data;
      if (text.includes('\r\n\r\n')) resolve({ text: () => text, isClosed: () => isClosed });
    });
  });
}

/** @param {StreamHolder} holder */
const handoverOf = (holder) => /** @type {import('../transport/handover.js').Handover} */ (holder.handover);

/** Every shard of one takes from every shard of the other. @param {StreamHolder} from @param {StreamHolder} to @param {number} shards of `to` */
function joinUp(from, to, shards) {
  const names = handoverOf(from).offer();
  const all = names.flatMap((name) =>
    Array.from({ length: shards }, (_, shard) => ({ shard, name, weight: 1 })),
  );
  handoverOf(to).connect(all);
}

const ROUND = { ms: 10_000, wantsIds: true };

test('streams move to another Hold with the port, and are neither opened nor closed', { skip }, async () => {
  const [from, to] = [open(2), open(3)];
  const port = await from.listen(0, '127.0.0.1');
  const clients = await Promise.all(Array.from({ length: 20 }, () => client(port)));
  joinUp(from, to, 3);
  void from.publish('news', 'before');
  const { prepared, left } = await handoverOf(from).move(ROUND);
  assert.deepEqual([prepared, left], [20, 0]);
  const ids = await handoverOf(from).release();
  /** @type {number[]} */
  const taken = [];
  const count = await handoverOf(to).go({ quiet: [], onTaken: ({ id }) => taken.push(id) });
  assert.equal(count, 20);
  assert.deepEqual(ids.filter((_, i) => i % 2 === 1).sort(), taken.sort(), 'the new ids');
  assert.equal(await to.publish('news', 'after'), 20);
  await until(() => clients.every((one) => one.text().includes('after')), 'the second message');
  for (const one of clients) {
    assert.deepEqual(one.text().match(/(?<=data: )\w+/g), ['before', 'after']);
    assert.equal(one.isClosed(), false);
  }
  await client(port);
  const [old, now] = [from.counters(), to.counters()];
  assert.deepEqual([old.streams, old.opened, now.streams, now.opened], [0, 20, 21, 1]);
  assert.equal(
    Object.values(old.closed).reduce((sum, each) => sum + each, 0),
    0,
  );
});

test('a tag moves along, and streams with one are always reported', { skip }, async () => {
  /** @type {number[]} */
  const ids = [];
  const decide = (/** @type {unknown} */ _head, /** @type {number} */ id) => {
    ids.push(id);
    return /** @type {const} */ ({ hold: 'text', channels: ['news'] });
  };
  const [holder, to] = [open(1, { policy: { headers: [], decide } }), open(1)];
  const own = await holder.listen(0, '127.0.0.1');
  await client(own);
  await client(own);
  holder.shards?.tag(ids[0], 'Ann');
  joinUp(holder, to, 1);
  await handoverOf(holder).move(ROUND);
  await handoverOf(holder).release();
  /** @type {string[]} */
  const tags = [];
  await handoverOf(to).go({ quiet: ['new'], onTaken: ({ tag, channels }) => tags.push(tag, ...channels) });
  assert.deepEqual(tags, ['Ann', 'news']);
});

test('what is taken back goes on, and what was said meanwhile takes effect then', { skip }, async () => {
  const [from, to] = [open(2), open(1)];
  const port = await from.listen(0, '127.0.0.1');
  const one = await client(port);
  joinUp(from, to, 1);
  assert.equal((await handoverOf(from).move(ROUND)).prepared, 1);
  const published = from.publish('news', 'meanwhile');
  handoverOf(to).drop();
  handoverOf(from).takeBack();
  assert.equal(await published, 1);
  await until(() => one.text().includes('meanwhile'), 'the message');
  await client(port);
  assert.deepEqual([from.counters().streams, to.counters().streams], [2, 0]);
});

test('a round with nobody on the other side is an error, and everything goes on', { skip }, async () => {
  const from = open(1);
  const port = await from.listen(0, '127.0.0.1');
  const one = await client(port);
  handoverOf(from).offer();
  await assert.rejects(handoverOf(from).move(ROUND), { code: 'HANDOVER' });
  handoverOf(from).takeBack();
  assert.equal(await from.publish('news', 'still'), 1);
  await until(() => one.text().includes('still'), 'the message');
});

test('a Hold that is closed in a round closes its streams', { skip }, async () => {
  const [from, to] = [open(1), open(1)];
  const one = await client(await from.listen(0, '127.0.0.1'));
  joinUp(from, to, 1);
  await handoverOf(from).move(ROUND);
  handoverOf(to).drop();
  await from.close();
  await until(() => one.isClosed(), 'the end of the stream');
});

test('connecting to an offer that has ended is an error', { skip }, async () => {
  const [from, to] = [open(1), open(1)];
  const [name] = handoverOf(from).offer();
  handoverOf(from).withdraw();
  await until(() => {
    try {
      handoverOf(to).connect([{ shard: 0, name, weight: 1 }]);
      return false;
    } catch (error) {
      assert.equal(/** @type {NodeJS.ErrnoException} */ (error).code, 'ECONNREFUSED');
      return true;
    }
  }, 'the end of the offer');
});
