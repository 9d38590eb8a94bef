/*
 * Streams of the hub as lines of JSON.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { legacyToken, PATH } from './helpers/hub.js';
import { openLines } from './helpers/hubsockets.js';
import { SURFACES, startSurface } from './helpers/surfaces.js';
import { until } from './helpers/until.js';

/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
/** @param {string | undefined | null} cursor */
const after = (cursor) => `last_event_id=${encodeURIComponent(cursor ?? '')}`;
const AS = bearer(legacyToken({ subscribe: ['*'] }));

for (const surface of SURFACES)
  describe(`lines of JSON on ${surface}`, () => {
    test('live and in a replay, a publication is the same line', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const before = hub.cursor;
      const live = await openLines(t, port, 'match=*', { headers: AS });
      const ids = await hub.publish([
        { topic: 'a', data: '1' },
        { topic: ['é', 'b'], data: 'a\r\nb\u2028\u0000"\\🙂', type: 't', retry: 7, id: 'urn:grüße' },
        { topic: ['x', 'y'], data: '', private: true },
        { topic: 'z', data: 'z', private: true },
      ]);
      await live.untilCount(4);
      assert.equal(
        live.text,
        [
          `{"id":"${ids[0]}","topic":"a","data":"1"}`,
          `{"id":"urn:grüße","type":"t","topic":"é","data":"a\\r\\nb\u2028\\u0000\\"\\\\🙂"}`,
          `{"id":"${ids[2]}","data":""}`,
          `{"id":"${ids[3]}","topic":"z","data":"z"}`,
          '',
        ].join('\n'),
      );
      const again = await openLines(t, port, `match=*&${after(before)}`, { headers: AS });
      await again.untilCount(4);
      assert.equal(again.text, live.text);
    });

    test('the head says where the stream begins, and whether the cursor was of use', async (t) => {
      const { port, hub } = await startSurface(t, surface, { corsOrigins: ['https://good.example'] });
      const before = hub.cursor;
      await hub.publish({ topic: 'a', data: '1' });
      const headersOf = async (/** @type {string} */ query) => {
        const { status, headers } = await openLines(t, port, query, {
          headers: { Origin: 'https://good.example' },
        });
        assert.equal(status, 200);
        assert.match(
          headers.get('access-control-expose-headers') ?? '',
          /Last-Event-ID, .*Mercure-Last-Event-ID/,
        );
        assert.equal(headers.get('content-type'), 'application/x-ndjson');
        assert.equal(headers.get('cache-control'), 'private, no-cache, no-store, must-revalidate, max-age=0');
        return [headers.get('last-event-id'), headers.get('mercure-last-event-id')];
      };
      assert.deepEqual(await headersOf('match=a'), [hub.cursor, null]);
      assert.deepEqual(await headersOf(`match=a&${after(before)}`), [before, before]);
      assert.deepEqual(await headersOf('match=a&last_event_id=earliest'), [before, 'earliest']);
      assert.deepEqual(await headersOf('match=a&last_event_id=nonsense'), [hub.cursor, 'earliest']);
      assert.deepEqual(await headersOf(`topic=a&${after(before)}`), [before, before]);
    });

    test('a client that comes back with the id of its last line misses nothing', async (t) => {
      const { port, hub } = await startSurface(t, surface, { maxReplayBytes: 2000 });
      const datas = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(100, '.'));
      const first = await openLines(t, port, 'match=a');
      const got = [];
      await hub.publish({ topic: 'a', data: datas[0] });
      await first.untilCount(1);
      got.push(...first.datas());
      let { id } = first.messages()[0];
      first.close();
      await hub.publish(datas.slice(1).map((data) => ({ topic: 'a', data })));
      for (let parts = 0; got.length < datas.length; parts++) {
        const next = await openLines(t, port, `match=a&${after(id)}`);
        await until(() => next.isOver || next.datas().at(-1) === datas.at(-1), 'a part');
        got.push(...next.datas());
        id = next.messages().at(-1)?.id;
        assert.ok(parts < 50);
      }
      assert.deepEqual(got, datas);
    });

    test('a QUERY has its topics in its body', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const client = await openLines(t, port, '', {
        method: 'QUERY',
        body: new URLSearchParams({ match: 'a' }),
      });
      await hub.publish({ topic: 'a', data: '1' });
      await client.untilCount(1);
      assert.deepEqual(client.datas(), ['1']);
    });

    test('it is on the list of subscriptions like any stream, and is revoked like any', async (t) => {
      const { port, hub, closes } = await startSurface(t, surface, { subscriptions: true });
      const client = await openLines(t, port, 'match=a');
      await until(() => hub.presence?.count === 1, 'its subscription');
      void hub.revoke({ topic: 'a' });
      await client.untilOver();
      await until(() => hub.presence?.count === 0, 'its end');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['revoked'],
      );
    });

    test('the most wanted type of Accept decides, and events are what there was before', async (t) => {
      const { ask } = await startSurface(t, surface);
      const typeFor = async (/** @type {string} */ accept) =>
        (await ask({ method: 'HEAD', target: `${PATH}?match=a`, headers: [`Accept: ${accept}`] })).headers[
          'content-type'
        ];
      assert.equal(await typeFor('*/*'), 'text/event-stream');
      assert.equal(await typeFor('text/html, */*;q=0.8'), 'text/event-stream');
      assert.equal(await typeFor('text/event-stream, application/x-ndjson'), 'text/event-stream');
      assert.equal(await typeFor('text/event-stream;q=0.5, application/x-ndjson'), 'application/x-ndjson');
    });
  });
