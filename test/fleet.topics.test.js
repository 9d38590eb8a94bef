/*
 * Streams that subscribe to topics, of both dialers, against a hub that is right or wrong on purpose.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCauses } from '../fleet/drone/causes.js';
import { changedParams, defaultParams } from '../fleet/drone/params.js';
import { dataOf } from '../fleet/drone/topics/publication.js';
import { subscriptionOf } from '../fleet/drone/topics/subscription.js';
import { HubFixture } from './fixtures/hub.js';
import { testEach } from './helpers/dialers.js';
import { until } from './helpers/until.js';

/** @typedef {import('./helpers/dialers.js').Dial} Dial */
/** @typedef {import('./helpers/dialers.js').Dialled} Dialled */
/** @typedef {import('../fleet/drone/dial.js').Counters} Counters */

const PUBLISHER = 1_763_733_211_123;
/** What has to do with publications and cursors. */
const NAMES = /** @type {const} */ ([
  'churned',
  'resumed',
  'restarted',
  'gaps',
  'delivered',
  'missed',
  'discarded',
  'duplicated',
  'outOfOrder',
  'recovered',
  'strayed',
]);

/** @param {Counters} counters @returns {Record<string, number>} those that are not 0 */
function found(counters) {
  return Object.fromEntries(NAMES.flatMap((name) => (counters[name] === 0 ? [] : [[name, counters[name]]])));
}

/** Publishes numbered messages, as the fleet does. */
class Numbered {
  /** @param {HubFixture} hub */
  constructor(hub) {
    this.hub = hub;
    /** @type {Map<string, number>} */
    this.numbers = new Map();
  }

  /** @param {string} topic @param {number} [count] @param {import('../fleet/drone/topics/publication.js').Clock} [clock] */
  publish(topic, count = 1, clock = 'monotonic') {
    for (let i = 0; i < count; i++) {
      const number = (this.numbers.get(topic) ?? 0) + 1;
      this.numbers.set(topic, number);
      this.hub.publish(topic, dataOf({ publisher: PUBLISHER, number, clock, topic }, 0));
    }
  }
}

/**
 * A hub, and a dialer that subscribes to it.
 * @param {import('node:test').TestContext} t @param {Dial} dial
 * @param {ConstructorParameters<typeof HubFixture>[0]} how of the hub
 * @param {Record<string, string>} [params] of the drone
 */
async function start(t, dial, how, params = {}) {
  const hub = new HubFixture(how);
  const port = await hub.start(t);
  const dialled = await dial([port], targetOf(params));
  return { hub, port, dialled, numbered: new Numbered(hub) };
}

/** @param {Record<string, string>} params */
function targetOf(params) {
  const given = Object.entries({ topic: 'room/{n%2}', ...params });
  return { subscription: subscriptionOf(changedParams(defaultParams(), given)), allowsMessages: true };
}

/** Opens streams, and waits until the hub has them. @param {{ hub: HubFixture, dialled: Dialled }} both @param {number} count */
async function open({ hub, dialled }, count) {
  await dialled.open(count);
  await until(() => hub.streams.size === count, 'the hub has all streams');
}

/** @param {Dialled} dialled @param {Record<string, number>} expected of `NAMES`, those that are not 0 */
async function untilFound(dialled, expected) {
  const isThere = (/** @type {Counters} */ counters) =>
    JSON.stringify(found(counters)) === JSON.stringify(expected);
  await dialled.until(isThere, JSON.stringify(expected));
}

/** @param {HubFixture} hub @returns {string[]} the topics of all requests */
const topicsOf = (hub) => hub.requests.map(({ url }) => String(new URL(url, 'http://a').searchParams));

testEach('each stream asks for its own topics, with its number in the fleet', async (t, dial) => {
  const params = { topic: 'caf\u00e9/{n%3} a&b/{n/2}', first: '3', step: '2' };
  const both = await start(t, dial, {}, params);
  await open(both, 3);
  const expected = [3, 5, 7].map((n) => `match=${`caf\u00e9/${n % 3} a&b/${Math.floor(n / 2)}`}`);
  const asked = both.hub.requests.map(({ url }) => decodeURIComponent(url.split('?')[1]));
  assert.deepEqual(asked.sort(), expected.sort());
  for (const { url, headers } of both.hub.requests) {
    assert.match(url, /^\/\.well-known\/mercure\?match=/);
    assert.deepEqual(
      [headers.accept, headers.authorization, headers['last-event-id']],
      ['text/event-stream', undefined, undefined],
    );
  }
});

testEach('in the dialect of 0.x, topics have another parameter', async (t, dial) => {
  const both = await start(t, dial, {}, { 'mercure-legacy': '1' });
  await open(both, 2);
  assert.deepEqual(topicsOf(both.hub).sort(), ['topic=room%2F0', 'topic=room%2F1']);
});

testEach('each stream sends the token of its place, or all send the same', async (t, dial) => {
  for (const [shared, expected] of /** @type {const} */ ([
    ['0', ['a', 'b', 'c']],
    ['1', ['a', 'a', 'a']],
  ])) {
    // biome-ignore format: a table
    const both = await start(t, dial, {}, { 'token-secret': 'x', 'token-shared': shared });
    both.dialled.dialer.setTokens(0, ['', 'b', 'c']);
    both.dialled.dialer.setTokens(0, ['a']);
    await open(both, 3);
    const sent = both.hub.requests.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));
    assert.deepEqual(sent.sort(), expected);
  }
});

testEach(
  'publications that arrive once and in order are delivered, and their age is measured',
  async (t, dial) => {
    const both = await start(t, dial, {});
    await open(both, 4);
    both.numbered.publish('room/0', 10);
    both.numbered.publish('room/1', 5);
    both.numbered.publish('room/1', 5, 'wall');
    both.numbered.publish('room/2', 5);
    await untilFound(both.dialled, { delivered: 40 });
    const { messages, lost, failed } = both.dialled.counters;
    assert.deepEqual([messages, lost, failed], [40, noCauses(), noCauses()]);
    const { count, max } = both.dialled.histograms.delivery;
    assert.ok(count === 40 && max < 10_000_000, `${count} ${max}`);
  },
);

testEach('a stream of several topics is checked for each of them', async (t, dial) => {
  const hub = new HubFixture();
  const port = await hub.start(t);
  const { subscription } = targetOf({});
  const other = targetOf({ topic: 'caf\u00e9' }).subscription;
  const topics = [...(subscription?.topics ?? []), ...(other?.topics ?? [])];
  const request = [{ kind: /** @type {const} */ ('text'), by: 1, text: 'GET /.well-known/mercure?match=room/0&match=caf%C3%A9 HTTP/1.1\r\nHost: a\r\n\r\n' }]; // biome-ignore format: one line
  const dialled = await dial([port], { subscription: subscription && { ...subscription, topics, request } });
  await open({ hub, dialled }, 1);
  const numbered = new Numbered(hub);
  for (let i = 0; i < 5; i++) {
    numbered.publish('room/0', 2);
    numbered.publish('caf\u00e9');
  }
  await untilFound(dialled, { delivered: 15 });
});

testEach('what is not ours only moves the cursor', async (t, dial) => {
  const both = await start(t, dial, {}, { topic: 'room' });
  await open(both, 1);
  for (const data of ['hello', '{"n":1}', '']) both.hub.publish('room', data);
  await both.dialled.until(({ messages }) => messages === 3, 'messages');
  both.dialled.dialer.churn(1);
  await until(() => both.hub.requests.length === 2, 'it is back');
  assert.equal(both.hub.requests[1].headers['last-event-id'], '#3');
  await untilFound(both.dialled, { churned: 1, resumed: 1 });
});

/** A fault, how often, and what 100 publications to 2 streams then become. @type {[import('./fixtures/hub.js').Fault, number, Record<string, number>][]} */
const FAULTS = [
  ['lose', 40, { delivered: 195, missed: 5 }],
  ['duplicate', 40, { delivered: 200, duplicated: 5 }],
  ['reorder', 40, { delivered: 200, outOfOrder: 5 }],
  ['stray', 40, { delivered: 200, strayed: 5 }],
];

for (const [fault, every, expected] of FAULTS) {
  testEach(`it is noticed if a hub does this: ${fault}`, async (t, dial) => {
    const both = await start(t, dial, { fault, every }, { topic: 'room' });
    await open(both, 2);
    both.numbered.publish('room', 101);
    const [delivered, ...others] = Object.entries(expected);
    // The publication after the last one that is left out, or late, is there too.
    await untilFound(both.dialled, Object.fromEntries([[delivered[0], delivered[1] + 2], ...others]));
  });
}

testEach(
  'streams that are cut off end with a reset, stay away, and come back at their places for what they missed',
  async (t, dial) => {
    const both = await start(t, dial, {}, { topic: 'room/{n}' });
    /** @type {string[]} */
    const ends = [];
    both.hub.server.on('connection', (socket) => {
      socket.on('error', (/** @type {NodeJS.ErrnoException} */ { code = '' }) => ends.push(code));
    });
    await open(both, 6);
    for (let n = 0; n < 6; n++) both.numbered.publish(`room/${n}`);
    await untilFound(both.dialled, { delivered: 6 });
    both.dialled.dialer.close(4, true);
    await until(() => ends.length === 4, 'the hub has lost them');
    assert.deepEqual(ends, Array(4).fill('ECONNRESET'));
    const { open: stayed, inFlight, closed, lost } = both.dialled.take();
    assert.deepEqual([stayed, inFlight, closed, lost], [2, 0, 4, noCauses()]);
    for (let n = 0; n < 6; n++) both.numbered.publish(`room/${n}`, 2);
    await untilFound(both.dialled, { delivered: 10 });
    both.dialled.dialer.open(4);
    await untilFound(both.dialled, { resumed: 4, delivered: 18, recovered: 8 });
    const asked = topicsOf(both.hub);
    assert.deepEqual(
      asked.slice(6).sort(),
      [2, 3, 4, 5].map((n) => `match=room%2F${n}`),
    );
  },
);

testEach('more streams than there are can be cut off, and none', async (t, dial) => {
  const both = await start(t, dial, {}, { topic: 'room/{n}' });
  await open(both, 3);
  both.dialled.dialer.close(0, true);
  both.dialled.dialer.close(5, true);
  await both.dialled.until(({ open: count, closed }) => count === 0 && closed === 3, 'all are away');
  both.dialled.dialer.close(1, true);
  await both.dialled.open(3);
  assert.equal(both.dialled.counters.inFlight, 0);
});

testEach(
  'a stream that is closed on purpose comes back with its cursor and recovers what it missed',
  async (t, dial) => {
    const both = await start(t, dial, {}, { topic: 'room/{n}' });
    await open(both, 10);
    for (let n = 0; n < 10; n++) both.numbered.publish(`room/${n}`);
    await untilFound(both.dialled, { delivered: 10 });
    // The hub gets publications before it gets the streams back.
    both.hub.server.once('connection', () => {
      for (let n = 0; n < 10; n++) both.numbered.publish(`room/${n}`, 2);
    });
    both.dialled.dialer.churn(10);
    assert.equal(both.dialled.take().open + both.dialled.counters.inFlight, 10);
    await both.dialled.until(({ churned, open: count, inFlight }) => churned === 10 && count === 10 && inFlight === 0, 'all are back'); // biome-ignore format: one line
    await both.dialled.until(({ delivered }) => delivered === 30, 'all is delivered');
    const { churned, closed, opened, missed, duplicated, outOfOrder, lost } = both.dialled.counters;
    assert.deepEqual([churned, closed, opened, missed, duplicated, outOfOrder], [10, 10, 20, 0, 0, 0]);
    assert.deepEqual(lost, noCauses());
    const { recovered, resumed } = both.dialled.counters;
    assert.ok(recovered > 0 && resumed === 10, `${recovered} ${resumed}`);
  },
);

testEach('a stream that is lost comes back with its cursor, at its place', async (t, dial) => {
  const both = await start(t, dial, {}, { topic: 'room/{n}', 'token-secret': 'x' });
  both.dialled.dialer.setTokens(0, ['a', 'b', 'c']);
  await open(both, 3);
  for (let n = 0; n < 3; n++) both.numbered.publish(`room/${n}`, n + 1);
  await untilFound(both.dialled, { delivered: 6 });
  both.hub.drop();
  await both.dialled.until(({ open: count }) => count === 0, 'all are lost');
  for (let n = 0; n < 3; n++) both.numbered.publish(`room/${n}`);
  both.dialled.dialer.open(3);
  await untilFound(both.dialled, { resumed: 3, delivered: 9, recovered: 3 });
  const asked = both.hub.requests.slice(3).map(({ url, headers }) => {
    const topic = new URL(url, 'http://a').searchParams.get('match');
    return `${topic} ${headers.authorization} ${headers['last-event-id']}`;
  });
  const expected = ['room/0 Bearer a #1', 'room/1 Bearer b #3', 'room/2 Bearer c #6'];
  assert.deepEqual(asked.sort(), expected);
  assert.equal(both.dialled.histograms.delivery.count, 6, 'what was recovered says nothing about delivery');
});

testEach(
  'a stream that comes back to a hub without its history misses publications silently',
  async (t, dial) => {
    const both = await start(t, dial, { fault: 'forget' }, { topic: 'room' });
    await open(both, 1);
    both.numbered.publish('room');
    await untilFound(both.dialled, { delivered: 1 });
    both.hub.drop();
    await both.dialled.until(({ open: count }) => count === 0, 'it is lost');
    both.numbered.publish('room', 3);
    await open(both, 1);
    both.numbered.publish('room');
    await untilFound(both.dialled, { resumed: 1, delivered: 2, missed: 3 });
  },
);

testEach('if the hub reports a gap, what is missing is counted separately, once', async (t, dial) => {
  const both = await start(t, dial, { fault: 'gap' }, { topic: 'room' });
  await open(both, 1);
  both.numbered.publish('room');
  await untilFound(both.dialled, { delivered: 1 });
  both.hub.drop();
  await both.dialled.until(({ open: count }) => count === 0, 'it is lost');
  both.numbered.publish('room', 3);
  await open(both, 1);
  both.numbered.publish('room');
  await untilFound(both.dialled, { resumed: 1, gaps: 1, delivered: 2, discarded: 3 });
});

testEach('the same subscription again keeps cursors, and another one begins without', async (t, dial) => {
  const both = await start(t, dial, {}, { topic: 'room' });
  await open(both, 1);
  both.numbered.publish('room');
  await untilFound(both.dialled, { delivered: 1 });
  both.dialled.aim([both.port], targetOf({ topic: 'room' }));
  both.dialled.dialer.churn(1);
  await untilFound(both.dialled, { churned: 1, resumed: 1, delivered: 1 });
  both.dialled.aim([both.port], targetOf({ topic: 'hall' }));
  both.dialled.dialer.churn(1);
  await until(() => both.hub.requests.length === 3, 'it is back');
  const asked = both.hub.requests.map(
    ({ url, headers }) => `${url.split('=')[1]} ${headers['last-event-id']}`,
  );
  assert.deepEqual(asked, ['room undefined', 'room #1', 'hall undefined']);
});

testEach('the last streams are closed first, and their numbers are free for others', async (t, dial) => {
  const both = await start(t, dial, {}, { topic: 'room/{n}' });
  await open(both, 6);
  both.dialled.dialer.close(3);
  await until(() => both.hub.streams.size === 3, 'the hub knows');
  const topics = () => [...both.hub.streams].flatMap((stream) => [...stream.topics]).sort();
  assert.deepEqual(topics(), ['room/0', 'room/1', 'room/2']);
  both.dialled.dialer.open(2);
  await until(() => both.hub.streams.size === 5, 'two more');
  assert.deepEqual(topics(), ['room/0', 'room/1', 'room/2', 'room/3', 'room/4']);
  await untilFound(both.dialled, {});
});

testEach('the first block of a hub is no ping', async (t, dial) => {
  const both = await start(t, dial, { pingMs: 60_000 }, { topic: 'room' });
  await open(both, 2);
  assert.deepEqual([both.dialled.counters.pings, both.dialled.histograms.lateness.count], [0, 0]);
});

testEach('pings of a hub move the cursor', async (t, dial) => {
  const both = await start(t, dial, { pingMs: 30 }, { topic: 'room' });
  await open(both, 2);
  both.hub.publish('another', 'x');
  const before = both.dialled.counters.pings;
  await both.dialled.until(({ pings }) => pings >= before + 6, 'pings');
  both.dialled.dialer.churn(2);
  await until(() => both.hub.requests.length === 4, 'they are back');
  for (const { headers } of both.hub.requests.slice(2)) assert.equal(headers['last-event-id'], '#1');
});

for (const [status, cause] of /** @type {const} */ ([
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [429, 'too-many'],
  [503, 'unavailable'],
])) {
  // biome-ignore format: a table
  testEach(`a hub that answers ${status} is a failure with the cause ${cause}`, async (t, dial) => {
    const { dialled } = await start(t, dial, { refuse: status });
    dialled.dialer.open(3);
    await dialled.until(({ failed }) => failed[cause] === 3, 'failures');
  });
}

testEach('churn without streams does nothing', async (t, dial) => {
  const { dialled } = await start(t, dial, {});
  dialled.dialer.churn(5);
  await dialled.open(1);
  const { churned, inFlight, opened } = dialled.counters;
  assert.deepEqual([churned, inFlight, opened], [0, 0, 1]);
});
