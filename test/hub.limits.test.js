/*
 * What one client may use: streams and opens of an address, streams of a subject, topics of a stream, bytes of a publication.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Buckets } from '../hub/streams/buckets.js';
import { Limits } from '../hub/streams/limits.js';
import { KINDS } from './helpers/hold.js';
import { datasOf, legacyToken, PATH, PUBLISHER, startHub } from './helpers/hub.js';
import { randomNumbers } from './helpers/random.js';
import { until } from './helpers/until.js';

/** No proxies: the clients of these tests come from 127.0.0.1. @type {readonly string[]} */
const proxies = [];
const NONE = { streamsPerAddress: 0, streamsPerSubject: 0, opensPerAddress: 0, proxies };

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** A clock that tests set. */
function clock() {
  const time = { nowMs: 0 };
  return { time, nowMs: () => time.nowMs };
}

for (const kind of KINDS) {
  describe(`limits of a hub on a Hold in ${kind}`, () => {
    test('an address has exactly so many streams at a time, however they are opened and end', async (t) => {
      const { hub, subscribe, port } = await startHub(t, kind, { maxStreamsPerAddress: 3, proxies });
      const clients = [];
      for (let i = 0; i < 3; i++) clients.push(await subscribe('match=a'));
      const refused = await subscribe('match=a');
      assert.deepEqual([refused.head().status, refused.head().headers['retry-after']], [429, '10']);
      assert.match(
        refused.received,
        /\r\n\r\ntoo many streams from your address: at most 3 at a time \(max-streams-per-address\)\n$/,
      );
      const inJs = await fetch(`http://localhost:${port}${PATH}`, {
        method: 'QUERY',
        body: new URLSearchParams('match=a'),
      });
      assert.equal(inJs.status, 429);
      assert.equal(hub.counters().hubLimitedStreamsPerAddress, 2);
      for (let round = 0; round < 3; round++) {
        clients[round].close();
        await until(async () => {
          const again = await subscribe('match=a');
          return again.head().status === 200;
        }, 'there is room again');
        assert.equal((await subscribe('match=a')).head().status, 429);
      }
    });

    test('a request that opens no stream takes nothing', async (t) => {
      const { hub, subscribe, port, publish } = await startHub(t, kind, {
        maxStreamsPerAddress: 1,
        maxReplayBytes: 100,
        proxies,
      });
      for (let i = 0; i < 5; i++) await fetch(`http://localhost:${port}${PATH}?match=a`, { method: 'HEAD' });
      for (let i = 0; i < 5; i++) await publish({ topic: 'a', data: 'x'.repeat(80) });
      const part = await subscribe('match=a&last_event_id=earliest');
      await part.untilClosed(); // the rest of the replay is for the next request
      assert.equal((await subscribe('match=%00')).head().status, 400);
      const stream = await subscribe('match=a');
      assert.equal(stream.head().status, 200);
      stream.close();
      await until(() => hub.core.limits?.sites?.shares.size === 0, 'nothing is kept');
    });

    test('a subject has exactly so many streams, whatever its tokens and addresses', async (t) => {
      const { hub, subscribe } = await startHub(t, kind, { maxStreamsPerSubject: 2 });
      const as = (/** @type {string} */ sub, jti = '') => ({
        Authorization: `Bearer ${legacyToken({ subscribe: ['a'] }, { sub, jti })}`,
      });
      const first = await subscribe('match=a', as('ann', '1'));
      await subscribe('match=b', as('ann', '2'));
      const refused = await subscribe('match=a', as('ann', '3'));
      assert.equal(refused.head().status, 429);
      assert.match(
        refused.received,
        /too many streams of your user: at most 2 at a time \(max-streams-per-subject\)/,
      );
      assert.equal((await subscribe('match=a', as('bob'))).head().status, 200);
      for (let i = 0; i < 3; i++) assert.equal((await subscribe('match=a')).head().status, 200); // without a token
      first.close();
      await until(async () => (await subscribe('match=a', as('ann', '4'))).head().status === 200, 'room');
      assert.ok(hub.counters().hubLimitedStreamsPerSubject >= 1);
    });

    test('an address opens exactly so many streams at once', async (t) => {
      const { hub, subscribe } = await startHub(t, kind, { maxOpensPerAddress: 3, proxies });
      const limits = /** @type {Limits} */ (hub.core.limits);
      const { time, nowMs } = clock();
      limits.opens = new Buckets(3, nowMs);
      for (let i = 0; i < 3; i++) assert.equal((await subscribe('match=a')).head().status, 200);
      const refused = await subscribe('match=a', { Authorization: 'Bearer x.y.z' }); // not even its token is looked at
      assert.deepEqual([refused.head().status, refused.head().headers['retry-after']], [429, '1']);
      assert.match(refused.received, /at most 3 per second \(max-opens-per-address\)/);
      time.nowMs = 334;
      assert.equal((await subscribe('match=a')).head().status, 200);
      assert.equal((await subscribe('match=a')).head().status, 429);
      assert.equal(hub.counters().hubLimitedOpensPerAddress, 2);
    });

    test('proxies are exempt', async (t) => {
      const { subscribe } = await startHub(t, kind, { maxStreamsPerAddress: 1, maxOpensPerAddress: 1 });
      for (let i = 0; i < 5; i++) assert.equal((await subscribe('match=a')).head().status, 200);
    });

    test('a stream that has to wait for its replay counts when it opens', async (t) => {
      const { subscribe, publish } = await startHub(t, kind, {
        maxStreamsPerAddress: 2,
        windowBytes: 1,
        proxies,
      });
      for (let i = 0; i < 3; i++) await publish({ topic: 'a', data: String(i) });
      const clients = await Promise.all(
        Array.from({ length: 6 }, () => subscribe('match=a&last_event_id=earliest')),
      );
      const statuses = clients.map((client) => client.head().status);
      assert.deepEqual(statuses.sort(), [200, 200, 429, 429, 429, 429]);
      for (const client of clients.filter((one) => one.head().status === 200))
        await until(() => datasOf(client).length === 3, 'the replay');
    });

    test('a stream has at most so many topics', async (t) => {
      const { hub, subscribe } = await startHub(t, kind, { maxSelectors: 3 });
      assert.equal((await subscribe('match=a&match=b&match=c')).head().status, 200);
      const refused = await subscribe('match=a&match=b&match=c&match=d');
      assert.equal(refused.head().status, 400);
      assert.match(refused.received, /at most 3 topics, not 4 \(max-topics-per-stream\)/);
      assert.equal(hub.counters().hubLimitedTopicsPerStream, 1);
    });

    test('the body of a publication has at most so many bytes', async (t) => {
      const { hub, publish } = await startHub(t, kind, { maxBodyBytes: 1024 });
      const overhead = 'topic=a&data='.length;
      assert.equal((await publish(`topic=a&data=${'x'.repeat(1024 - overhead)}`)).status, 200);
      const refused = await publish(`topic=a&data=${'x'.repeat(1025 - overhead)}`);
      assert.deepEqual([refused.status, refused.text], [413, 'got 1025 bytes, expected 1024 at most\n']);
      assert.deepEqual([hub.counters().hubLimitedPublication, hub.counters().hubPublished], [1, 1]);
    });

    test('its open streams are counted, and no others', async (t) => {
      const { hub, hold, subscribe, port } = await startHub(t, kind);
      const clients = [await subscribe('match=a'), await subscribe('match=b')];
      const controller = new AbortController();
      const { signal } = controller;
      const body = 'match=a';
      const inJs = fetch(`http://localhost:${port}${PATH}`, { method: 'QUERY', body, signal, headers: FORM });
      assert.equal((await inJs).status, 200);
      await until(() => hub.counters().hubOpened === 3, 'all are open');
      assert.equal(hold.counters().updates, 3);
      clients[0].close();
      controller.abort();
      await until(() => hold.counters().updates === 1, 'two have ended');
      assert.equal(hold.counters().streams, 1);
    });

    test('the hub counts what it does', async (t) => {
      const { hub, subscribe, publish } = await startHub(t, kind);
      const first = await subscribe('match=a');
      const cursor = first.events()[0].id ?? '';
      for (const data of ['1', '2']) await publish({ topic: 'a', data });
      await publish({ topic: 'a', data: '3', id: 'urn:x' });
      await publish({ topic: 'a', data: '3', id: 'urn:x' });
      await subscribe('match=a', { 'Last-Event-ID': cursor });
      await subscribe('match=a', { 'Last-Event-ID': 'unknown' });
      await subscribe('match=a', { 'Last-Event-ID': 'earliest' });
      assert.equal((await subscribe('match=a', { Authorization: 'Bearer x.y.z' })).head().status, 401);
      const { Authorization } = { Authorization: `Bearer ${PUBLISHER}x` };
      assert.equal((await publish({ topic: 'a' }, { Authorization })).status, 401);
      const counts = Object.entries(hub.counters()).filter(([, count]) => count > 0);
      assert.deepEqual(Object.fromEntries(counts), {
        hubOpened: 4,
        hubPublished: 3,
        hubDuplicates: 1,
        hubRecoveries: 3,
        hubEarliest: 2,
        hubReplayed: 6,
        hubTokensRefused: 2,
      });
    });
  });
}

test('without limits there is nothing to check', async (t) => {
  const { hub } = await startHub(t, 'JS');
  assert.deepEqual([hub.core.limits, hub.core.presence], [null, null]);
});

test('one client of IPv6 has a /64 of addresses, and IPv4 addresses may be written as IPv6', () => {
  const limits = new Limits({ ...NONE, streamsPerAddress: 1 });
  limits.take('2001:db8:1:2::1', 0);
  assert.throws(() => limits.take('2001:db8:1:2:ffff::9', 0), /max-streams-per-address/);
  limits.take('2001:db8:1:3::1', 0);
  limits.take('192.0.2.1', 0);
  assert.throws(() => limits.take('::ffff:192.0.2.1', 0), /max-streams-per-address/);
  limits.take('', 0);
  limits.take('', 0);
});

test('what a subject may not open does not count for its address', () => {
  const limits = new Limits({ ...NONE, streamsPerAddress: 2, streamsPerSubject: 1 });
  limits.take('192.0.2.1', 7);
  for (let i = 0; i < 5; i++) assert.throws(() => limits.take('192.0.2.1', 7), /max-streams-per-subject/);
  limits.take('192.0.2.1', 8);
  assert.throws(() => limits.take('192.0.2.1', 9), /max-streams-per-address/);
});

test('shares are forgotten when their last stream has ended, and never exceed the limit', () => {
  const limits = new Limits({ ...NONE, streamsPerAddress: 3, streamsPerSubject: 4 });
  const draw = randomNumbers(3);
  /** @type {Map<number, { address: string, subject: number }>} */
  const open = new Map();
  const countOf = (/** @type {(one: { address: string, subject: number }) => boolean} */ isIt) =>
    [...open.values()].filter(isIt).length;
  for (let id = 1; id < 20_000; id++) {
    const [address, subject] = [`192.0.2.${draw(6)}`, draw(8)];
    const hasRoom =
      countOf((one) => one.address === address) < 3 &&
      (subject === 0 || countOf((one) => one.subject === subject) < 4);
    try {
      const taken = limits.take(address, subject);
      assert.ok(hasRoom);
      if (draw(10) === 0) limits.release(taken);
      else {
        limits.keep(id, taken);
        open.set(id, { address, subject });
      }
    } catch (error) {
      if (hasRoom) throw error;
    }
    const gone = draw(id);
    limits.leave(gone);
    open.delete(gone);
  }
  for (const id of open.keys()) limits.leave(id);
  const { sites, subjects } = limits;
  assert.deepEqual(
    [sites?.shares.size, sites?.byStream.size, subjects?.shares.size, subjects?.byStream.size],
    [0, 0, 0, 0],
  );
});

test('a bucket has the tokens of one second, and fills evenly', () => {
  const { time, nowMs } = clock();
  const buckets = new Buckets(4, nowMs);
  const taken = () => {
    let count = 0;
    while (buckets.take('a')) count++;
    return count;
  };
  assert.equal(taken(), 4);
  assert.ok(buckets.take('b'));
  time.nowMs = 249;
  assert.equal(taken(), 0);
  time.nowMs = 250;
  assert.equal(taken(), 1);
  time.nowMs = 1000;
  assert.equal(taken(), 3);
  time.nowMs = 10_000;
  assert.equal(taken(), 4);
  for (let i = 1; i <= 400; i++) {
    time.nowMs = 10_000 + i * 250;
    assert.equal(taken(), 1, `after ${i} steps`);
  }
});

test('buckets that are full again are forgotten, and there are never more than a bound', () => {
  const { time, nowMs } = clock();
  const buckets = new Buckets(1, nowMs);
  for (let i = 0; i < 1000; i++) buckets.take(`site ${i}`);
  assert.equal(buckets.size, 1000);
  time.nowMs = 999;
  assert.ok(!buckets.take('site 7'));
  time.nowMs = 1000;
  assert.ok(buckets.take('site 7'));
  time.nowMs = 1999;
  assert.ok(!buckets.take('site 7'));
  time.nowMs = 3000;
  assert.ok(buckets.take('site 8'));
  assert.equal(buckets.size, 1);
  for (let i = 0; i < 1_000_000; i++) buckets.take(`attacker ${i}`);
  assert.ok(buckets.size <= 200_000, `${buckets.size} buckets`);
});
