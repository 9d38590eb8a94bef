/*
 * The order of the publications begins anew, or has a gap: the streams end, and their clients come again with the cursors they have.
 * On both kinds of Hold.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openLocal } from '../broker/local.js';
import { get, rawClient } from './helpers/client.js';
import { KINDS, listening } from './helpers/hold.js';
import { datasOf, eventsIn, headIn, legacyToken, PATH, startHub } from './helpers/hub.js';
import { until } from './helpers/until.js';

const LIMITS = { historyCount: 1000, historyAgeMs: 1e9, historyBytes: 1e9, maxQueueBytes: 1e7 };

/** @param {number} epoch @param {number} last */
const order = (epoch, last) => ({ epoch, key: new Uint8Array(16).fill(epoch), last });

/** @param {{ events: () => import('./helpers/hub.js').ReadEvent[] }} client */
const lastIdOf = (client) => client.events().at(-1)?.id ?? '';

for (const kind of KINDS)
  describe(`a hub whose order begins anew (${kind})`, () => {
    /**
     * @param {import('node:test').TestContext} t
     * @param {Partial<import('../hub/settings.js').HubOptions>} [options]
     * @param {import('holdfast').HoldOptions} [holdOptions]
     */
    const start = async (t, options, holdOptions) => {
      const isCached = (/** @type {string} */ topic) => topic === 'cached';
      const copy = await openLocal({ ...LIMITS, store: '', syncs: true, isCached, isCopy: true });
      t.after(() => copy.close());
      /** @type {unknown[]} */
      const errors = [];
      const given = {
        broker: copy,
        onError: (/** @type {unknown} */ error) => errors.push(error),
        ...options,
      };
      const started = await startHub(t, kind, given, holdOptions);
      t.after(() => assert.deepEqual(errors, []));
      const publish = (/** @type {string} */ topic, /** @type {string} */ data) =>
        copy.append([{ topics: [topic], data, private: false }]);
      return { ...started, copy, publish };
    };

    test('ends its streams, and a client that comes again with its cursor is told that publications may be lost', async (t) => {
      const { copy, publish, subscribe, closes, hub, hold } = await start(t, {}, { pingIntervalMs: 50 });
      const client = await subscribe('match=a');
      const other = await subscribe('match=%2A');
      await publish('a', '1');
      await copy.restart(order(7, 1000));
      await publish('a', '2');
      for (const one of [client, other]) {
        await one.untilClosed();
        assert.deepEqual(datasOf(one), ['1'], 'nothing of the next order');
        for (const { id } of one.events()) assert.equal(hub.core.order.cursors.read(id ?? ''), undefined);
      }
      await until(() => closes.length === 2, 'their ends');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['restarted', 'restarted'],
      );
      const again = await subscribe('match=a', { 'Last-Event-ID': lastIdOf(client) });
      assert.equal(again.head().headers['mercure-last-event-id'], 'earliest');
      await publish('a', '3');
      await until(() => datasOf(again).length === 1, 'what is published then');
      assert.deepEqual(datasOf(again), ['3']);
      assert.equal(hub.core.order.cursors.read(lastIdOf(again)), 1002);
      const position = again.events().length;
      await until(() => again.events().length > position, 'a ping with a cursor of the next order');
      assert.equal(hub.core.order.cursors.read(lastIdOf(again)), 1002);
      assert.equal(hold.counters().streams, 1);
      assert.equal(hub.core.places.size, 0);
    });

    test('after a gap, a client gets what is stored, and is told that publications may be lost', async (t) => {
      const { copy, publish, subscribe, hub } = await start(t);
      const client = await subscribe('match=a');
      await publish('a', '1');
      await until(() => datasOf(client).length === 1, 'the event');
      await copy.restart({ epoch: copy.epoch, key: copy.key, last: 500 });
      await publish('a', '501');
      await client.untilClosed();
      const again = await subscribe('match=a', { 'Last-Event-ID': lastIdOf(client) });
      await until(() => datasOf(again).length === 1, 'the replay');
      assert.deepEqual(datasOf(again), ['501']);
      assert.equal(again.head().headers['mercure-last-event-id'], 'earliest');
      const cursor = encodeURIComponent(hub.cursor);
      const next = await subscribe(`match=a&last_event_id=${cursor}`);
      await publish('a', '502');
      await until(() => datasOf(next).length === 1, 'the next');
      assert.deepEqual(datasOf(next), ['502']);
    });

    test('replays nothing to a stream that is being opened: its client comes again', async (t) => {
      const { copy, publish, subscribe, hub } = await start(t, { windowBytes: 1 });
      const before = hub.cursor;
      for (let i = 0; i < 20; i++) await publish('a', String(i));
      const { read } = copy;
      /** @type {(() => void)[]} */
      const releases = [];
      copy.read = async (...asked) => {
        const found = await read.apply(copy, asked);
        await new Promise((resolve) => void releases.push(() => resolve(undefined)));
        return found;
      };
      const { prepare } = hub.core;
      let asked = 0;
      hub.core.prepare = (...given) => {
        asked++;
        return prepare.apply(hub.core, given);
      };
      const opening = [
        subscribe(`match=a&last_event_id=${encodeURIComponent(before)}`),
        subscribe(`match=${'x'}&last_event_id=${encodeURIComponent(hub.cursor)}`), // nothing to collect
        subscribe('match=a', { 'Last-Event-ID': before }),
      ];
      await until(() => asked === opening.length && releases.length > 0, 'three requests, and a recovery');
      const ready = hub.core.prepare(undefined, hub.core.placeOf([], null));
      const lost = hub.core.prepare('#nobody', hub.core.placeOf([], null));
      copy.read = read;
      await copy.restart(order(7, 0));
      await publish('a', 'new');
      for (const release of releases) release();
      for (const client of await Promise.all(opening)) {
        await client.untilClosed();
        assert.equal(client.head().status, 200);
        assert.deepEqual(datasOf(client), []);
      }
      for (const one of [await ready, await lost])
        assert.deepEqual(one.begin(), { text: '', isWhole: false });
      const again = await subscribe(`match=a&last_event_id=${encodeURIComponent(before)}`);
      assert.equal(again.head().headers['mercure-last-event-id'], 'earliest');
    });

    test('ends streams on responses of an application too, even while they become streams', async (t) => {
      const { hub, copy, publish, closes, hold } = await start(t);
      const { createServer } = await import('node:http');
      /** @type {Promise<number>[]} */
      const ids = [];
      const port = await listening(
        t,
        createServer(
          (_request, response) => void ids.push(hub.subscribe(response, { topics: 'a', patterns: '*' })),
        ),
      );
      const open = () => {
        const client = rawClient(port, get({}));
        t.after(client.close);
        return Object.assign(client, { events: () => eventsIn(client.received) });
      };
      const first = open();
      await until(() => ids.length === 1, 'a request');
      await ids[0];
      const { adopt } = hold;
      hold.adopt = async (...given) => {
        const id = await adopt.apply(hold, given);
        await copy.restart(order(8, 10)); // in between
        await publish('a', 'new');
        return id;
      };
      const second = open();
      for (const client of [first, second]) {
        await client.untilClosed();
        assert.equal(headIn(client.received).status, 200);
      }
      assert.deepEqual([datasOf(first), second.events()], [[], []]);
      await until(() => closes.length === 2, 'their ends');
      hold.adopt = adopt;
      const { catchUp } = hub.core.joining;
      hub.core.joining.catchUp = async (...given) => {
        await publish('a', 'meanwhile');
        hub.core.joining.catchUp = catchUp;
        hub.core.order.recovery.isReady = () => false;
        hub.core.order.recovery.prepare = () => copy.restart(order(9, 20));
        return catchUp.apply(hub.core.joining, given);
      };
      const third = open();
      await third.untilClosed();
      assert.deepEqual(datasOf(third), []);
      await until(() => closes.length === 3, 'its end');
      assert.deepEqual([hub.core.places.size, hub.core.joining.ids.size, hold.counters().streams], [0, 0, 0]);
    });

    test('what waits for room in the Hold is dropped, and nobody waits for it', async (t) => {
      const { copy, hub, hold, subscribe } = await start(t);
      const client = await subscribe('match=a');
      const { publish } = hold;
      hold.publish = (channels, message, options) => {
        if (message !== null) throw Object.assign(new Error('no room'), { code: 'BUSY' });
        return publish.call(hold, channels, message, options);
      };
      await copy.append([{ topics: ['a'], data: 'old', private: false }]);
      assert.equal(hub.counters().hubWaiting, 1);
      await copy.restart(order(7, 5));
      assert.equal(hub.counters().hubWaiting, 0);
      const { appends } = /** @type {import('../broker/memory.js').MemoryBroker} */ (copy);
      await until(() => appends.bytes === 0, 'nothing waits');
      hold.publish = publish;
      await client.untilClosed();
      const next = await subscribe('match=a');
      await copy.append([{ topics: ['a'], data: 'new', private: false }]);
      await until(() => datasOf(next).length === 1, 'the event');
      assert.deepEqual(datasOf(next), ['new']);
      await wait(20);
      assert.deepEqual(datasOf(client), []);
    });

    test('learns the last publications of cached topics again', async (t) => {
      const { copy, publish, subscribe } = await start(t, { cacheTopics: ['cached'] });
      await publish('cached', 'old');
      assert.deepEqual(datasOf(await subscribe('match=cached')), ['old']);
      const { latest } = copy;
      copy.latest = async () => [
        { sequence: 3, at: 0, topics: ['cached'], data: 'elsewhere', private: false },
      ];
      await copy.restart(order(7, 5));
      copy.latest = latest;
      await until(async () => datasOf(await subscribe('match=cached'))[0] === 'elsewhere', 'it is known');
    });

    test('the list of subscriptions follows, with a cursor of the next order', async (t) => {
      const { copy, subscribe, port, hub } = await start(t, { subscriptions: true });
      const list = async () => {
        const token = legacyToken({ subscribe: ['*'] });
        const headers = { Authorization: `Bearer ${token}` };
        const response = await fetch(`http://localhost:${port}${PATH}/subscriptions`, { headers });
        const { subscriptions, lastEventID } = await response.json();
        return { count: subscriptions.length, lastEventID };
      };
      const client = await subscribe('topic=a');
      await until(async () => (await list()).count === 1, 'one is listed');
      await copy.restart(order(7, 50));
      await client.untilClosed();
      await until(async () => (await list()).count === 0, 'its end');
      const again = await subscribe('topic=a');
      await until(async () => (await list()).count === 1, 'it is there again');
      const { lastEventID } = await list();
      assert.ok((hub.core.order.cursors.read(lastEventID) ?? 0) > 50);
      assert.ok(again.events().length > 0);
    });

    test('an id that was given for a publication of the order before is none of the next one', async (t) => {
      const { copy, hub } = await start(t);
      const { append } = copy;
      copy.append = async (drafts) => {
        const receipts = await append.call(copy, drafts);
        await copy.restart(order(7, 0));
        return receipts;
      };
      const id = await hub.publish({ topic: 'a', data: 'x' });
      assert.equal(hub.core.order.cursors.read(id), undefined);
    });
  });
