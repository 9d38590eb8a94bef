/*
 * Streams of a hub that move to the hub of another Hold, as in another process: both follow one broker.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Hold, Hub, MemoryBroker } from 'holdfast';
import { labelOf } from '../hub/access/grants.js';
import { native, problem } from '../native/index.js';
import { get, rawClient } from './helpers/client.js';
import { until } from './helpers/until.js';

const skip = native ? false : `the native core is unavailable: ${problem}`;
const BOOKS = 'https://example.com/books/1';
const ALTERNATE = 'https://example.com/users/ann';

/** @typedef {import('../transport/holder.js').StreamHolder} StreamHolder */
/** @typedef {import('../hub/index.js').Hub} InnerHub */

/**
 * @param {import('node:test').TestContext} t @param {MemoryBroker} broker
 * @param {Partial<import('holdfast').HubOptions>} [options] @param {import('holdfast').HoldOptions} [holdOptions]
 */
async function start(t, broker, options, holdOptions) {
  const hold = new Hold(holdOptions);
  const hub = new Hub({ hold, broker, anonymous: true, ...options });
  await hub.start();
  t.after(() => hold.close());
  return {
    hold: /** @type {StreamHolder} */ (/** @type {unknown} */ (hold)),
    hub: /** @type {InnerHub} */ (/** @type {unknown} */ (hub)),
  };
}

/** @typedef {Awaited<ReturnType<typeof start>>} Side */

/** @param {{ received: string }} client @returns {string[]} */
const datasOf = ({ received }) => [...received.matchAll(/^data: (.*)$/gm)].map(([, data]) => data);

/** All streams. @param {Side} from @param {Side} to @returns {Promise<number[]>} what became of their ids */
async function move(from, to) {
  const [giver, taker] = [from.hold.handover, to.hold.handover];
  assert.ok(giver && taker);
  taker.connect(giver.offer().map((name) => ({ shard: 0, name, weight: 1 })));
  await Promise.all([from.hub.settled(), to.hub.settled()]);
  await giver.move({ ms: 10_000, wantsIds: true });
  const ids = await giver.release();
  to.hub.learn(from.hub.notes());
  await taker.go({ quiet: to.hub.quiet, onTaken: (stream) => to.hub.takeIn(stream) });
  return ids;
}

/**
 * A server whose streams are what `subscribe` says, in order.
 * @param {import('node:test').TestContext} t @param {MemoryBroker} broker @param {import('holdfast').SubscribeOptions[]} wanted
 */
async function open(t, broker, wanted) {
  let next = 0;
  const server = createServer((_, response) => void side.hub.subscribe(response, wanted[next++]));
  const decide = () => /** @type {const} */ ({ pass: true });
  const side = await start(t, broker, {}, { policy: { headers: [], decide }, server });
  const port = await side.hold.listen(0, '127.0.0.1');
  const clients = [];
  for (let i = 0; i < wanted.length; i++) {
    const client = rawClient(port, get());
    t.after(() => client.close());
    await until(() => side.hub.core.counts.hubOpened === i + 1, 'a stream');
    clients.push(client);
  }
  return { side, clients };
}

test('patterns, and private publications with alternate topics, reach streams that have moved, once', {
  skip,
}, async (t) => {
  const broker = new MemoryBroker();
  const { side, clients } = await open(t, broker, [
    { topics: [BOOKS] },
    { patterns: ['https://example.com/books/:id'] },
    { topics: '*', grants: [ALTERNATE] },
    {
      topics: [BOOKS],
      grants: { topics: [ALTERNATE, 'https://example.com/other'], patterns: ['https://example.com/more/*'] },
    },
  ]);
  const other = await start(t, broker);
  await side.hub.publish({ topics: [BOOKS], data: 'before' });
  await move(side, other);
  await other.hub.publish({ topics: [BOOKS], data: 'public' });
  await other.hub.publish({ topics: [BOOKS, ALTERNATE], data: 'private', private: true });
  await until(() => datasOf(clients[3]).includes('private'), 'the private one');
  const [all, both] = [
    ['before', 'public', 'private'],
    ['before', 'public'],
  ];
  assert.deepEqual(
    clients.map((client) => datasOf(client)),
    [both, both, all, all],
  );
  assert.equal(other.hub.core.counts.hubOpened, 0);
  for (const client of clients) client.close();
  await until(() => other.hold.counters().streams === 0, 'the end of the streams');
  assert.deepEqual([other.hub.core.audience.uses.size, other.hub.core.places.size], [0, 0]);
});

test('streams that moved count against the limits, even if they are too many', { skip }, async (t) => {
  const broker = new MemoryBroker();
  const { side, clients } = await open(
    t,
    broker,
    [1, 2, 3].map(() => ({ topics: [BOOKS], subject: 'ann' })),
  );
  const other = await start(t, broker, { maxStreamsPerSubject: 2 });
  await move(side, other);
  const take = () => other.hub.core.limits?.take('192.0.2.1', labelOf('ann'));
  assert.throws(take, { status: 429 });
  clients[0].close();
  clients[1].close();
  await until(() => other.hub.core.limits?.subjects?.byStream.size === 1, 'the end of two streams');
  assert.doesNotThrow(take);
});
