/*
 * Polls of the hub: a request waits until there is something to say, and is then answered.
 */
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { describe, test } from 'node:test';
import { legacyToken, PATH } from './helpers/hub.js';
import { poll } from './helpers/hubsockets.js';
import { SURFACES, startSurface } from './helpers/surfaces.js';
import { until } from './helpers/until.js';

const JSON_TYPE = { Accept: 'application/json' };
const CURSOR = /^#[\w-]{22}$/;
/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
/** @param {{ data?: string }[]} messages */
const datasOf = (messages) => messages.map(({ data }) => data);
/** @param {string | undefined | null} cursor */
const after = (cursor) => `lastEventID=${encodeURIComponent(cursor ?? '')}`;

for (const surface of SURFACES)
  describe(`polls on ${surface}`, () => {
    test('a poll waits for the next publication, and the one after it for what followed', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface);
      const first = poll(port, 'match=a', { headers: JSON_TYPE });
      await until(() => hold.counters().streams === 1, 'a poll that waits');
      await hub.publish({ topic: 'b', data: 'not for it' });
      const id = await hub.publish({ topic: 'a', type: 't', data: '1\n"é"' });
      const reply = await first;
      assert.equal(reply.status, 200);
      assert.equal(
        reply.text,
        `{"messages":[{"id":"${id}","type":"t","topic":"a","data":"1\\n\\"é\\""}],"cursor":"${id}"}\n`,
      );
      assert.equal(reply.header, id);
      for (const [name, value] of [
        ['content-type', 'application/json'],
        ['cache-control', 'no-store'],
        ['x-content-type-options', 'nosniff'],
      ])
        assert.equal(reply.headers.get(name), value, name);
      await hub.publish([{ topic: 'a', data: '2' }, { topic: 'b' }, { topic: 'a', data: '3', id: 'own' }]);
      const second = await poll(port, `match=a&${after(reply.cursor)}`, { headers: JSON_TYPE });
      assert.deepEqual(datasOf(second.messages), ['2', '3']);
      assert.equal(second.messages[1].id, 'own');
      assert.equal(second.cursor, hub.cursor);
      assert.equal(second.header, hub.cursor);
    });

    test('what was published before is told in the same bytes as what is published while it waits', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface);
      const before = hub.cursor;
      const waiting = poll(port, 'match=*&wait=20', { headers: bearer(legacyToken({ subscribe: ['*'] })) });
      await until(() => hold.counters().streams === 1, 'a poll that waits');
      await hub.publish({
        topic: ['a', 'b'],
        type: 't',
        retry: 7,
        private: true,
        data: '\u2028\u0000\r\n"\\🙂',
      });
      const live = await waiting;
      const replayed = await poll(port, `match=*&${after(before)}`, {
        headers: { ...JSON_TYPE, ...bearer(legacyToken({ subscribe: ['*'] })) },
      });
      assert.equal(replayed.text, live.text);
      assert.equal('topic' in live.messages[0], false, 'it could be one that the client may not know');
    });

    test('without a publication in time, the answer is 204 with the cursor', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const before = hub.cursor;
      const { status, text, header } = await poll(port, 'match=a&wait=0.3');
      assert.deepEqual([status, text, header], [204, '', before]);
      await hub.publish({ topic: 'a', data: 'later' });
      assert.deepEqual(datasOf((await poll(port, `match=a&wait=5&${after(header)}`)).messages), ['later']);
    });

    test('with wait=0 it does not wait', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface);
      const none = await poll(port, `match=a&wait=0`);
      assert.deepEqual([none.status, none.header], [204, hub.cursor]);
      await hub.publish({ topic: 'a', data: '1' });
      const one = await poll(port, `match=a&wait=0&${after(none.header)}`);
      assert.deepEqual([one.status, datasOf(one.messages)], [200, ['1']]);
      const all = await poll(port, 'match=a&wait=0&lastEventID=earliest');
      assert.deepEqual([datasOf(all.messages), all.missing], [['1'], undefined]);
      assert.equal(hold.counters().opened, 0);
    });

    test('a cursor that is of no use is reported at once, and there is one to go on with', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      await hub.publish({ topic: 'a', data: '1' });
      for (const cursor of ['', 'never-published', '#AAAAAAAAAAAAAAAAAAAAAA']) {
        const reply = await poll(port, `match=a&wait=30&${after(cursor)}`);
        assert.equal(reply.text, `{"messages":[],"cursor":"${hub.cursor}","missing":true}\n`, cursor);
      }
    });

    test('a long replay comes in parts, and nothing is left out or repeated', async (t) => {
      const { port, hub } = await startSurface(t, surface, { maxReplayBytes: 2000 });
      const before = hub.cursor;
      const datas = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(100, '.'));
      await hub.publish(datas.map((data) => ({ topic: 'a', data })));
      const got = [];
      let [cursor, polls] = [/** @type {string | undefined} */ (before), 0];
      for (; got.length < datas.length; polls++) {
        const reply = await poll(port, `match=a&wait=5&${after(cursor)}`);
        assert.match(reply.cursor ?? '', CURSOR);
        got.push(...datasOf(reply.messages));
        cursor = reply.cursor;
      }
      assert.deepEqual(got, datas);
      assert.ok(polls > 5, `${polls} polls`);
    });

    test('a poll without a cursor gets the last publication of cached topics', async (t) => {
      const { port, hub } = await startSurface(t, surface, { cacheTopics: ['a'] });
      await hub.publish([
        { topic: 'a', data: 'old' },
        { topic: 'a', data: 'new' },
        { topic: 'b', data: 'x' },
      ]);
      const reply = await poll(port, 'match=a&match=b', { headers: JSON_TYPE });
      assert.deepEqual(datasOf(reply.messages), ['new']);
      assert.equal((await poll(port, `match=a&wait=0&${after(reply.cursor)}`)).status, 204);
    });

    test('grants and tokens are those of streams', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface, { anonymous: false });
      const asked = (/** @type {string} */ token) =>
        poll(port, `match=a&match=b&wait=0&lastEventID=earliest`, {
          headers: { 'X-Forwarded-For': '1.2.3.4', ...(token ? bearer(token) : {}) },
        });
      await hub.publish([
        { topic: 'a', data: 'secret', private: true },
        { topic: 'b', data: 'open' },
      ]);
      assert.equal((await asked('')).status, 401);
      assert.equal((await asked('nonsense')).status, 401);
      assert.deepEqual(datasOf((await asked(legacyToken({ subscribe: ['x'] }))).messages), ['open']);
      assert.deepEqual(datasOf((await asked(legacyToken({ subscribe: ['a'] }))).messages), [
        'secret',
        'open',
      ]);
      const exp = Math.floor(Date.now() / 1000) + 2;
      const soon = await poll(port, 'match=a&wait=50', {
        headers: bearer(legacyToken({ subscribe: ['a'] }, { exp })),
      });
      assert.equal(soon.status, 204, 'its token has expired');
      assert.ok(Date.now() / 1000 < exp + 2);
      await until(() => hold.counters().streams === 0, 'its end');
    });

    test('polls that wait count as streams of their address, and are not on the list of subscriptions', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface, {
        maxStreamsPerAddress: 2,
        proxies: [],
        subscriptions: true,
      });
      const waiting = [poll(port, 'match_urlpattern=/a/:id&wait=30'), poll(port, 'match=a&wait=30')];
      await until(() => hold.counters().streams === 2, 'two polls that wait');
      assert.equal((await poll(port, 'match=a&wait=30')).status, 429);
      assert.equal((await poll(port, 'match=a&wait=0')).status, 204, 'it takes no place');
      assert.equal(hub.presence?.count, 0);
      await hub.publish({ topic: ['/a/1', 'a'], data: '1' });
      for (const { messages } of await Promise.all(waiting)) assert.deepEqual(datasOf(messages), ['1']);
      await until(() => hub.core.limits?.sites?.shares.size === 0 && hub.core.places.size === 0, 'room');
    });

    test('wrong requests', async (t) => {
      const { port } = await startSurface(t, surface);
      for (const wait of ['61', '-1', 'x', ''])
        assert.match((await poll(port, `match=a&wait=${wait}`)).text, /^wait takes 0 to 60 seconds/, wait);
      assert.deepEqual((await poll(port, 'wait=1')).text, 'missing "match" subscription parameter\n');
    });

    test('a QUERY has topics and wait in its body', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const before = hub.cursor;
      await hub.publish({ topic: 'a', data: '1' });
      const body = new URLSearchParams({ match: 'a', wait: '5', last_event_id: before });
      const reply = await poll(port, '', { method: 'QUERY', body });
      assert.deepEqual(datasOf(reply.messages), ['1']);
      const waiting = poll(port, '', {
        method: 'QUERY',
        body: 'match=a',
        headers: { ...JSON_TYPE, 'Content-Type': 'application/x-www-form-urlencoded' },
      });
      await until(() => hub.core.counts.hubOpened === 1, 'a poll that waits');
      await hub.publish({ topic: 'a', data: '2' });
      assert.deepEqual(datasOf((await waiting).messages), ['2']);
    });

    test('one connection carries poll after poll', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      t.after(() => agent.destroy());
      const ports = new Set();
      let cursor = '';
      for (let i = 0; i < 5; i++) {
        const path = `${PATH}?match=a&wait=20${cursor && `&${after(cursor)}`}`;
        const body = new Promise((resolve, reject) => {
          get({ port, host: '127.0.0.1', path, agent }, (response) => {
            ports.add(response.socket.localPort);
            let text = '';
            response.on('data', (data) => {
              text += data;
            });
            response.on('end', () => resolve(text));
          }).on('error', reject);
        });
        await until(() => hold.counters().streams === 1, 'a poll that waits');
        await hub.publish({ topic: 'a', data: `${i}` });
        const { messages, cursor: next } = JSON.parse(await body);
        assert.deepEqual(datasOf(messages), [`${i}`]);
        cursor = next;
      }
      assert.equal(ports.size, 1);
    });

    test('pages of other origins can read where they are', async (t) => {
      const { port } = await startSurface(t, surface, { corsOrigins: ['https://good.example'] });
      const { headers } = await poll(port, 'match=a&wait=0', { headers: { Origin: 'https://good.example' } });
      assert.equal(headers.get('access-control-allow-origin'), 'https://good.example');
      assert.match(headers.get('access-control-expose-headers') ?? '', /Last-Event-ID/);
    });

    test('when the order begins anew, polls that wait are answered', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface);
      const waiting = poll(port, 'match=a&wait=50');
      await until(() => hold.counters().streams === 1, 'a poll that waits');
      hub.core.reset();
      assert.equal((await waiting).status, 204);
    });
  });
