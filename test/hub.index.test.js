/*
 * The hub on a Hold: publications reach the streams that asked for them and may read them, and nothing is lost or repeated.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Hub } from '../hub/index.js';
import { parseSelector } from '../hub/matching/selectors.js';
import { Audience } from '../hub/streams/audience.js';
import { KINDS, startHold } from './helpers/hold.js';
import { datasOf, draftToken, legacyToken, PATH, PUBLISHER, SECRET, startHub } from './helpers/hub.js';
import { randomNumbers } from './helpers/random.js';
import { until } from './helpers/until.js';

for (const kind of KINDS) {
  describe(`a hub on a Hold in ${kind}`, () => {
    test('delivers what is published to those who asked for it, with the id that the publisher got', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const client = await subscribe('match=a');
      const other = await subscribe('match=b');
      const published = await publish({ topic: 'a', data: 'line 1\nline 2', type: 'news' });
      assert.deepEqual(
        [published.status, published.headers.get('content-type')],
        [200, 'text/plain; charset=utf-8'],
      );
      await until(() => datasOf(client).length === 1, 'the event');
      const [position, event] = client.events();
      assert.match(position.id ?? '', /^#[\w-]{22}$/);
      assert.deepEqual(event, { type: 'news', id: published.text, data: 'line 1\nline 2' });
      assert.deepEqual(datasOf(other), []);
    });

    test('delivers once to a stream that asked in several ways', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const query = 'match=https://x.example/1&match_urlpattern=https://x.example/:id&match=*&match=other';
      const client = await subscribe(query);
      await publish(
        new URLSearchParams([
          ['topic', 'https://x.example/1'],
          ['topic', 'other'],
          ['data', 'once'],
        ]),
      );
      await publish({ topic: 'y', data: 'last' });
      await until(() => datasOf(client).includes('last'), 'the last one');
      assert.deepEqual(datasOf(client), ['once', 'last']);
    });

    test('delivers what is larger than the queue of its Hold', async (t) => {
      const holdOptions = { maxQueueBytes: 10_000, maxBacklogBytes: 1e6 };
      const { subscribe, publish } = await startHub(t, kind, { onError: assert.ifError }, holdOptions);
      const client = await subscribe('match=a');
      for (const size of [1, 9000, 50_000, 9000, 20_000, 1])
        await publish({ topic: 'a', data: 'x'.repeat(size) });
      await until(() => datasOf(client).length === 6, 'all of them');
      assert.deepEqual(
        datasOf(client).map((data) => data?.length),
        [1, 9000, 50_000, 9000, 20_000, 1],
      );
    });

    test('answers 503 if what was published long ago can not be collected in time', async (t) => {
      const onError = assert.ifError;
      const { hub, subscribe, publish } = await startHub(t, kind, { windowBytes: 1, onError }, { onError });
      const before = encodeURIComponent(hub.core.cursor);
      await publish({ topic: 'a', data: '1' });
      const { recovery } = hub.core.order;
      const { mostWaitMs } = recovery;
      recovery.mostWaitMs = -1;
      const { status, headers } = (await subscribe(`match=a&last_event_id=${before}`)).head();
      assert.deepEqual([status, headers['retry-after']], [503, '1']);
      recovery.mostWaitMs = mostWaitMs;
      const client = await subscribe(`match=a&last_event_id=${before}`);
      await until(() => datasOf(client).length === 1, 'the replay');
    });

    test('takes templates and topics of 0.x', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const client = await subscribe('topic=https://x.example/books/{id}&topic=plain');
      await publish({ topic: 'https://x.example/books/7', data: '1' });
      await publish({ topic: 'https://x.example/cars/7', data: '2' });
      await publish({ topic: 'plain', data: '3' });
      await until(() => datasOf(client).includes('3'), 'the last one');
      assert.deepEqual(datasOf(client), ['1', '3']);
    });

    test('delivers private publications only to those whose grants match one of the topics', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const as = (/** @type {string[]} */ ...topics) => ({
        Authorization: `Bearer ${draftToken({ subscribe: topics })}`,
      });
      const clients = {
        nobody: await subscribe('match=a'),
        other: await subscribe('match=a', as('b')),
        exact: await subscribe('match=a', as('a')),
        all: await subscribe('match=*', as('*')),
        alternate: await subscribe('match=a', as('users/7')),
        own: await subscribe('match=*', as('users/7')),
      };
      const [a, alternate] = [['a'], ['a', 'users/7']];
      for (const [data, topics] of [
        ['1', a],
        ['2', alternate],
      ]) {
        const form = new URLSearchParams([
          ['data', String(data)],
          ['private', ''],
          ...[...topics].map((topic) => ['topic', topic]),
        ]);
        await publish(form);
      }
      await publish({ topic: 'a', data: 'public' });
      for (const client of Object.values(clients))
        await until(() => datasOf(client).includes('public'), 'the public one');
      const got = Object.entries(clients).map(([name, client]) => [
        name,
        datasOf(client).slice(0, -1).join(),
      ]);
      assert.deepEqual(Object.fromEntries(got), {
        nobody: '',
        other: '',
        exact: '1,2',
        all: '1,2',
        alternate: '2',
        own: '2',
      });
    });

    test('a client that comes back gets what it missed, and then what is published', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const first = await subscribe('match=a');
      const cursor = first.events().at(-1)?.id ?? '';
      first.close();
      for (const data of ['1', '2']) await publish({ topic: 'a', data });
      const second = await subscribe('match=a', { 'Last-Event-ID': cursor });
      assert.equal(second.head().headers['mercure-last-event-id'], cursor);
      await publish({ topic: 'a', data: '3' });
      await until(() => datasOf(second).includes('3'), 'the live one');
      assert.deepEqual(datasOf(second), ['1', '2', '3']);
    });

    test('the same id is stored and delivered once', async (t) => {
      const { subscribe, publish } = await startHub(t, kind);
      const client = await subscribe('match=a');
      for (const data of ['1', '2'])
        assert.equal((await publish({ topic: 'a', data, id: 'urn:x' })).text, 'urn:x');
      await publish({ topic: 'a', data: 'last' });
      await until(() => datasOf(client).includes('last'), 'the last one');
      assert.deepEqual(datasOf(client), ['1', 'last']);
    });

    test('a JSON array publishes up to 1,000 publications, in order, all or nothing', async (t) => {
      const { subscribe, port } = await startHub(t, kind);
      const client = await subscribe('match=a');
      const post = (/** @type {unknown} */ body) =>
        fetch(`http://localhost:${port}${PATH}`, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${PUBLISHER}` },
        });
      const list = Array.from({ length: 1000 }, (_, i) => ({ topic: 'a', data: String(i) }));
      const ids = await (await post(list)).json();
      assert.equal(new Set(ids).size, 1000);
      await until(() => datasOf(client).length === 1000, 'all of them');
      assert.deepEqual(
        datasOf(client),
        list.map(({ data }) => data),
      );
      assert.equal((await post([...list, list[0]])).status, 413);
      const topics = Array.from({ length: 1000 }, (_, i) => `t${i}`);
      const many = await post([...Array(10).fill({ topics }), { topic: 'a', data: 'x' }]);
      assert.deepEqual(
        [many.status, await many.text()],
        [413, 'a request can have at most 10000 topics, not 10001\n'],
      );
      const wrong = await post([
        { topic: 'a', data: 'x' },
        { topic: '*', data: 'y' },
      ]);
      assert.deepEqual(
        [wrong.status, await wrong.text()],
        [400, 'publication 1: the topic * is reserved: it selects all topics\n'],
      );
      assert.equal(datasOf(client).length, 1000);
    });

    test('streams end when their token expires, and when it is revoked', async (t) => {
      const { hub, subscribe, closes } = await startHub(t, kind);
      const exp = Math.floor(Date.now() / 1000) + 2;
      const client = await subscribe('match=a', {
        Authorization: `Bearer ${legacyToken({ subscribe: ['a'] }, { exp })}`,
      });
      const revoked = await subscribe('match=a', {
        Authorization: `Bearer ${legacyToken({ subscribe: ['a'] }, { sub: 'user-7' })}`,
      });
      await client.untilClosed();
      assert.ok(Date.now() / 1000 < exp + 1.5);
      hub.revoke({ subject: 'user-7' });
      await revoked.untilClosed();
      await until(() => closes.length === 2, 'both are reported');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['expired', 'revoked'],
      );
    });

    test('patterns are counted while streams use them', async (t) => {
      const { hub, subscribe } = await startHub(t, kind);
      const token = legacyToken({ subscribe: ['users/7'] });
      const clients = [];
      for (let i = 0; i < 5; i++)
        clients.push(
          await subscribe(`topic=https://x.example/{id}&topic=b`, { Authorization: `Bearer ${token}` }),
        );
      assert.deepEqual([hub.core.places.size, hub.core.audience.uses.size], [5, 3]);
      for (const client of clients) client.close();
      await until(() => hub.core.places.size === 0, 'they are gone');
      const { uses, open, covered, granted } = hub.core.audience;
      assert.deepEqual([uses.size, open.size, covered.size, granted.size], [0, 0, 0, 0]);
    });

    test('with publications and forced reconnects, every client gets each publication exactly once, in order', async (t) => {
      const TOTAL = 1500;
      const { hub, subscribe } = await startHub(t, kind, { windowBytes: 60_000 });
      const draw = randomNumbers(7);
      const queries = [
        'match=a',
        'match=a&match=b',
        'match_urlpattern=https://x.example/:id',
        'match=*',
        'topic=https://x.example/{id}&topic=a',
      ];
      /** @type {{ query: string, got: (string | undefined)[], client: Awaited<ReturnType<typeof subscribe>>, isBusy: boolean }[]} */
      const readers = [];
      for (const query of [...queries, ...queries])
        readers.push({ query, got: [], client: await subscribe(query), isBusy: false });
      /** @type {string[][]} */
      const log = [];
      const reconnect = async (/** @type {(typeof readers)[number]} */ reader) => {
        reader.isBusy = true;
        const seen = reader.client.events();
        const cursor = seen.at(-1)?.id ?? '';
        reader.client.close();
        reader.got.push(...datasOf(reader.client));
        await new Promise((resolve) => setTimeout(resolve, draw(20)));
        reader.client = await subscribe(reader.query, { 'Last-Event-ID': cursor });
        assert.equal(reader.client.head().headers['mercure-last-event-id'], cursor);
        reader.isBusy = false;
      };
      const busy = [];
      for (let i = 0; i < TOTAL; i++) {
        const topics = [['a'], ['b'], ['a', 'b'], [`https://x.example/${draw(5)}`]][draw(4)];
        log.push(topics);
        const published = hub.publish({ topics, data: String(i), ...(draw(3) ? {} : { id: `urn:${i}` }) });
        if (draw(4) === 0) await published;
        const reader = readers[draw(readers.length)];
        if (i % 15 === 0 && !reader.isBusy) busy.push(reconnect(reader));
        if (draw(40) === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await hub.publish({ topics: ['a', 'b', 'https://x.example/end'], data: 'end' });
      await Promise.all(busy);
      for (const { client } of readers) await until(() => datasOf(client).includes('end'), 'the end');
      for (const { query, got, client } of readers) {
        const wants = (/** @type {string} */ topic) =>
          query.includes('*') ||
          new URLSearchParams(query).getAll('match').includes(topic) ||
          new URLSearchParams(query).getAll('topic').includes(topic) ||
          (/x\.example/.test(query) && topic.startsWith('https:'));
        const due = log.flatMap((topics, i) => (topics.some(wants) ? [String(i)] : []));
        assert.deepEqual([...got, ...datasOf(client)], [...due, 'end'], query);
      }
    });
  });
}

test('what was decided about a client here does not hold for one elsewhere that sends the same head', async (t) => {
  const { hold } = startHold(t, KINDS[0]);
  const hub = new Hub({ hold, jwt: { secret: SECRET } });
  await hub.start();
  // A Hold gives equal heads the same headers.
  const head = { method: 'GET', target: `${PATH}?match=a`, headers: { host: 'localhost' } };
  const from = (/** @type {string} */ address) => hub.decide({ ...head, address }, 1);
  for (const [address, isHere] of /** @type {const} */ ([
    ['127.0.0.1', true],
    ['203.0.113.7', false],
    ['127.0.0.1', true],
  ]))
    assert.equal('hold' in (await from(address)), isHere, address);
});

test('a private publication is not offered to the patterns of those who may not read it', () => {
  const audience = new Audience();
  const any = parseSelector('template', '{+any}', 'http://localhost/.well-known/mercure');
  const place = audience.placeOf([any], null);
  audience.enter(place);
  const [channel] = place.channels;
  assert.equal(audience.channelsAbout('a').includes(channel), true);
  assert.equal(audience.channelsOf({ topics: ['a'], private: false }).includes(channel), true);
  assert.deepEqual(audience.channelsOf({ topics: ['a'], private: true }), ['\u0001a=a']);
  audience.leave(place);
  assert.equal(audience.channelsOf({ topics: ['a'], private: false }).length, 2);
});
