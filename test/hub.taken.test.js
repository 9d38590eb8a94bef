/*
 * Streams that come from another process: the hub gets to know from their channels what it has to keep for them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryBroker } from '../hub/brokers.js';
import { Hub } from '../hub/index.js';
import { NEEDS_NATIVE, startHold } from './helpers/hold.js';
import { datasOf, draftToken, legacyToken, SECRET, startHub } from './helpers/hub.js';
import { until } from './helpers/until.js';

/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });

/** @param {import('node:test').TestContext} t @param {Partial<import('../hub/settings.js').HubOptions>} [options] */
async function startBoth(t, options) {
  const broker = new MemoryBroker();
  t.after(() => broker.close());
  const old = await startHub(t, 'native', { broker, ...options });
  const policy = {
    headers: Hub.headers,
    address: true,
    decide: () => /** @type {const} */ ({ refuse: 503 }),
  };
  const { hold, closes } = startHold(t, 'native', { policy });
  const hub = new Hub({ hold, jwt: { secret: SECRET }, anonymous: true, broker, ...options });
  await hub.start();
  /** Hands all streams over. @returns {Promise<import('../hub/streams/taken.js').Stream[]>} those that are taken in */
  const move = async (/** @type {(hub: Hub) => any[]} */ notesOf = () => []) => {
    const [from, to] = [old.hold.handover, hold.handover];
    assert.ok(from && to);
    /** @type {import('../hub/streams/taken.js').Stream[]} */
    const taken = [];
    to.connect(from.offer().map((name) => ({ shard: 0, name, weight: 1 })));
    await Promise.all([old.hub.settled(), hub.settled()]);
    await from.move({ ms: 300, wantsIds: false });
    hub.learn(JSON.parse(JSON.stringify(notesOf(old.hub))));
    await from.release();
    await to.go({
      quiet: hub.quiet,
      onTaken: (stream) => {
        taken.push(stream);
        hub.takeIn(stream);
      },
    });
    from.withdraw();
    return taken;
  };
  const publish = (/** @type {string | string[]} */ topics, isPrivate = false) =>
    hub.publish({ topic: topics, data: JSON.stringify(topics), private: isPrivate });
  return { ...old, old, hub, hold, newCloses: closes, move, publish };
}

const KEPT = [
  { what: 'a pattern', query: 'match_urlpattern=https://x.example/:id', topics: ['https://x.example/1'] },
  { what: 'a relative pattern', query: 'match_urlpattern=/items/:id', topics: ['/items/1'] },
  { what: 'a template', query: 'topic=https://x.example/{id}', topics: ['https://x.example/1'] },
  { what: 'all topics', query: 'match=*', topics: ['anything'] },
  {
    what: 'a granted pattern',
    query: 'topic=https://x.example/{id}',
    token: legacyToken({ subscribe: ['https://x.example/{id}'] }),
    topics: ['https://x.example/1'],
    isPrivate: true,
  },
  {
    what: 'a grant of another topic',
    query: 'match=a',
    token: draftToken({ subscribe: ['mine'] }),
    topics: ['a', 'mine'],
    isPrivate: true,
  },
  {
    what: 'several grants of other topics',
    query: 'topic=a{/more}&topic=b',
    token: legacyToken({ subscribe: ['mine/{id}', 'ours', 'x'] }),
    topics: ['b', 'mine/7'],
    isPrivate: true,
  },
];

for (const { what, query, token, topics, isPrivate } of KEPT)
  test(
    `a stream with ${what} gets its publications in the next process, until it ends`,
    NEEDS_NATIVE,
    async (t) => {
      const { subscribe, publish, move, hub, hold } = await startBoth(t);
      const client = await subscribe(query, token ? bearer(token) : {});
      await publish(topics, isPrivate);
      assert.equal((await move()).length, 1);
      await publish(topics, isPrivate);
      await publish('nothing for it', true);
      await publish(topics, isPrivate);
      await until(() => datasOf(client).length === 3, '3 publications');
      assert.deepEqual(new Set(datasOf(client)), new Set([JSON.stringify(topics)]));
      assert.equal(hub.counters().hubOpened, 0);
      assert.equal(hub.core.places.size, 1);
      client.close();
      await until(() => hold.counters().streams === 0 && hub.core.places.size === 0, 'its end');
      const { uses, open, covered, granted } = hub.core.audience;
      assert.deepEqual([uses.size, open.size, covered.size, granted.size], [0, 0, 0, 0]);
    },
  );

test('streams of exact topics are not even reported, and go on', NEEDS_NATIVE, async (t) => {
  const { subscribe, publish, move, hub, hold, newCloses } = await startBoth(t);
  const clients = [
    await subscribe('match=a&match=b'),
    await subscribe('match=b', bearer(draftToken({ subscribe: ['*'] }))),
  ];
  assert.deepEqual(await move(), []);
  assert.equal(hold.counters().streams, 2);
  await publish('b');
  for (const client of clients) await until(() => datasOf(client).length === 1, 'a publication');
  void hub.revoke({ topic: 'b' });
  for (const client of clients) await client.untilClosed();
  assert.deepEqual(
    newCloses.map(({ reason }) => reason),
    ['revoked', 'revoked'],
  );
});

test(
  'streams that were taken count for the limits of an address and of a subject',
  NEEDS_NATIVE,
  async (t) => {
    const limits = { maxStreamsPerAddress: 2, maxStreamsPerSubject: 2, proxies: [] };
    const { subscribe, move, hub, hold } = await startBoth(t, limits);
    const token = draftToken({}, { sub: 'ann' });
    const clients = [await subscribe('match=a', bearer(token)), await subscribe('match=a', bearer(token))];
    const [{ subject, address }] = await move();
    assert.ok(subject > 0 && address.includes('127.0.0.1'));
    const { core } = hub;
    assert.throws(() => core.limits?.take(address, 0), { counter: 'hubLimitedStreamsPerAddress' });
    assert.throws(() => core.limits?.take('', subject), { counter: 'hubLimitedStreamsPerSubject' });
    for (const client of clients) client.close();
    await until(() => hold.counters().streams === 0, 'the end');
    await until(
      () => core.limits?.sites?.shares.size === 0 && core.limits.subjects?.shares.size === 0,
      'room',
    );
  },
);

const MANY = Array.from({ length: 20 }, (_, i) => `${'x'.repeat(100)}${i}`);

test(
  'what the channels of a stream do not say ends it, and its client comes back',
  NEEDS_NATIVE,
  async (t) => {
    const { subscribe, move, hub, newCloses } = await startBoth(t);
    const client = await subscribe('match=a', bearer(draftToken({ subscribe: MANY })));
    await move();
    await client.untilClosed();
    assert.equal(newCloses.length, 1);
    assert.equal(hub.core.places.size, 0);
  },
);

test('grants that are too long for a channel come in a note', NEEDS_NATIVE, async (t) => {
  const { subscribe, move, publish, old, hub } = await startBoth(t);
  const client = await subscribe('match=a', bearer(draftToken({ subscribe: MANY })));
  await move((oldHub) => oldHub.notes());
  await publish(['a', MANY[3]], true);
  await until(() => datasOf(client).length === 1, 'the publication');
  assert.equal(hub.notes().length, 1);
  client.close();
  await until(() => hub.notes().length === 0, 'it is forgotten');
  assert.equal(old.hub.notes().length, 1); // nobody has told it that the stream has moved: its process ends
});

test("streams that are not the hub's are none of its business", async (t) => {
  const { hub } = await startHub(t, 'JS', { maxStreamsPerAddress: 1, proxies: [] });
  hub.takeIn({ id: 5, channels: ['news'], subject: 0, address: '10.0.0.1' });
  hub.takeIn({ id: 6, channels: [], subject: 0, address: '10.0.0.1' });
  assert.deepEqual([hub.core.places.size, hub.core.limits?.sites?.shares.size], [0, 0]);
  assert.deepEqual(hub.quiet, []);
});
