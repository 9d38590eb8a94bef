/*
 * WebSockets of the hub: what they get, what their clients may say, and who may open them.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { Hub } from '../hub/index.js';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { KINDS, listening, startHold } from './helpers/hold.js';
import { legacyToken, PATH, SECRET } from './helpers/hub.js';
import { openLines, openSocket, poll, socketClient } from './helpers/hubsockets.js';
import { Reader } from './helpers/reader.js';
import { SURFACES, startSurface } from './helpers/surfaces.js';
import { until } from './helpers/until.js';

const CURSOR = /^#[\w-]{22}$/;
/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
/** @param {string | undefined} cursor */
const after = (cursor) => `lastEventID=${encodeURIComponent(cursor ?? '')}`;
const ALL = bearer(legacyToken({ publish: ['*'], subscribe: ['*'] }));
const COOKIE = { Cookie: `mercureAuthorization=${legacyToken({ publish: ['*'], subscribe: ['*'] })}` };
const STRANGER = { 'X-Forwarded-For': '1.2.3.4' };

for (const surface of SURFACES)
  describe(`WebSockets on ${surface}`, () => {
    test('the first message is the cursor, then come publications as JSON, live and in a replay alike', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const before = hub.cursor;
      const live = await openSocket(t, port, 'match=*', ALL);
      assert.deepEqual(live.messages, [{ cursor: before }]);
      const ids = await hub.publish([
        { topic: 'a', data: '1' },
        { topic: ['é', 'b'], data: 'a\r\nb\u2028"\\🙂', type: 't', retry: 7, id: 'urn:grüße' },
        { topic: ['x', 'y'], data: '', private: true },
      ]);
      await live.untilDatas(['', '', '']);
      assert.deepEqual(live.texts.slice(1), [
        `{"id":"${ids[0]}","topic":"a","data":"1"}`,
        `{"id":"urn:grüße","type":"t","topic":"é","data":"a\\r\\nb\u2028\\"\\\\🙂"}`,
        `{"id":"${ids[2]}","data":""}`,
      ]);
      const again = await openSocket(t, port, `match=*&${after(before)}`, ALL);
      await again.untilDatas(['', '', '']);
      assert.deepEqual(again.texts, live.texts);
    });

    test('a cursor that is of no use is reported in the first message, and in the head', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      await hub.publish({ topic: 'a', data: '1' });
      const lost = await openSocket(t, port, `match=a&${after('nonsense')}`);
      assert.deepEqual(lost.messages, [{ cursor: hub.cursor, missing: true }]);
      assert.equal(lost.headers['mercure-last-event-id'], 'earliest');
      const earliest = await openSocket(t, port, 'match=a&lastEventID=earliest');
      await earliest.untilDatas(['1']);
      assert.equal('missing' in earliest.messages[0], false);
    });

    test('after more than fits into a replay it is closed, and the client goes on with the id of its last message', async (t) => {
      const { port, hub } = await startSurface(t, surface, { maxReplayBytes: 2000 });
      const datas = Array.from({ length: 50 }, (_, i) => `${i}`.padStart(100, '.'));
      let cursor = hub.cursor;
      await hub.publish(datas.map((data) => ({ topic: 'a', data })));
      const got = [];
      for (let i = 0; got.length < datas.length; i++) {
        const client = await openSocket(t, port, `match=a&${after(cursor)}`);
        await until(() => client.closed || client.datas().at(-1) === datas.at(-1), 'a part');
        if (client.closed) assert.equal(client.closed.code, 1001);
        got.push(...client.datas());
        cursor = client.messages.at(-1)?.id ?? '';
        assert.ok(i < 30);
      }
      assert.deepEqual(got, datas);
    });

    test('its client publishes, and gets the id once it is stored', async (t) => {
      const { port, hub, subscribe } = await startSurface(t, surface);
      const events = await subscribe('match=a');
      const client = await openSocket(t, port, 'match=a', ALL);
      const { id, ...rest } = await client.ask({ publish: { topic: 'a', data: '1', type: 't' } });
      assert.deepEqual(rest, {});
      assert.equal(id, hub.cursor);
      assert.deepEqual(
        await client.ask({ publish: { topic: ['b', 'a'], data: '2', id: 'own', private: true } }),
        { id: 'own' },
      );
      const { ids } = await client.ask({
        publish: [
          { topic: 'a', data: '3' },
          { topic: 'a', data: '4', id: 'x' },
        ],
      });
      assert.equal(ids?.[1], 'x');
      await client.untilDatas(['1', '2', '3', '4']);
      assert.deepEqual(client.datas(), ['1', '2', '3', '4']);
      await until(() => events.events().some(({ data }) => data === '4'), 'the events');
      assert.equal(hub.counters().hubPublished, 4);
    });

    test('without a ref, the answer has none', async (t) => {
      const { port } = await startSurface(t, surface);
      const client = await openSocket(t, port, '', ALL);
      client.send({ publish: { topic: 'a', id: 'mine' } });
      client.send({ publish: { topic: '*' } });
      client.send({ subscribe: 'a', ref: 'seven' });
      await until(() => client.messages.length === 4, 'the answers');
      assert.deepEqual(client.messages.slice(1, 3), [
        { id: 'mine' },
        { error: 'the topic * is reserved: it selects all topics', status: 400 },
      ]);
      assert.equal(client.messages[3].ref, 'seven');
    });

    test('its client subscribes and unsubscribes; what comes is what it asks for now', async (t) => {
      const { port, hub, hold } = await startSurface(t, surface, { subscriptions: true });
      const client = await openSocket(t, port, 'match=a');
      const topics = ['b', { match: '/items/:id', match_type: 'urlpattern' }, { match: 'c' }];
      assert.match((await client.ask({ subscribe: topics })).cursor ?? '', CURSOR);
      assert.equal(hub.presence?.count, 4);
      assert.equal(hub.core.places.size, 1);
      for (const topic of ['a', 'b', '/items/7', 'c', 'd']) await hub.publish({ topic, data: topic });
      await client.untilDatas(['a', 'b', '/items/7', 'c']);
      const gone = ['a', { match: '/items/:id', match_type: 'urlpattern' }, 'never'];
      assert.match((await client.ask({ unsubscribe: gone })).cursor ?? '', CURSOR);
      assert.equal(hub.core.places.size, 0);
      assert.equal(hub.core.audience.uses.size, 0);
      for (const topic of ['a', '/items/8', 'b']) await hub.publish({ topic, data: `${topic}!` });
      await client.untilDatas(['a', 'b', '/items/7', 'c', 'b!']);
      assert.deepEqual(client.datas(), ['a', 'b', '/items/7', 'c', 'b!']);
      await client.ask({ unsubscribe: ['b', 'c'] });
      assert.equal(hub.presence?.count, 0);
      await hub.publish({ topic: 'b', data: 'nobody' });
      await client.ask({ subscribe: 'b' });
      assert.equal(hub.presence?.count, 1);
      client.socket.close();
      await until(() => hold.counters().streams === 0 && hub.presence?.count === 0, 'its end');
      assert.equal(hub.core.sockets.byId.size, 0);
    });

    test('each subscription that begins or ends is announced once, with the same subscriber', async (t) => {
      const { port, hub } = await startSurface(t, surface, { subscriptions: true });
      const watcher = await openSocket(t, port, `match_urlpattern=${PATH}/subscriptions/*`, ALL);
      const client = await openSocket(t, port, 'match=a');
      for (const request of [
        { subscribe: 'b' },
        { unsubscribe: 'a' },
        { subscribe: 'a' },
        { unsubscribe: ['a', 'b'] },
        { subscribe: 'a' },
      ])
        await client.ask(request);
      client.socket.close();
      const said = () =>
        watcher
          .datas()
          .map((data) => JSON.parse(data))
          .filter(({ match }) => match === 'a' || match === 'b');
      await until(
        () => said().length === 8,
        () => JSON.stringify(said()),
      );
      assert.deepEqual(
        said()
          .map(({ match, active }) => `${match}${active ? '+' : '-'}`)
          .join(' '),
        'a+ b+ a- a+ b- a- a+ a-',
      );
      assert.equal(new Set(said().map(({ subscriber }) => subscriber)).size, 1);
      await until(() => hub.presence?.count === 1, 'only the watcher');
    });

    test('with after, it gets what it has missed of its new topics, in parts, and loses nothing', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const before = hub.cursor;
      const datas = Array.from({ length: 60 }, (_, i) => `${i}`.padStart(1000, '.'));
      await hub.publish(datas.map((data) => ({ topic: 'b', data })));
      const client = await openSocket(t, port, 'match=a');
      let [cursor, parts] = [before, 0];
      for (; ; parts++) {
        const answer = await client.ask({ subscribe: 'b', after: cursor });
        await hub.publish({ topic: 'b', data: `meanwhile ${parts}` });
        if (answer.more === undefined) {
          assert.match(answer.cursor ?? '', CURSOR);
          break;
        }
        cursor = answer.more;
      }
      assert.ok(parts > 0);
      await until(() => client.datas().includes(`meanwhile ${parts}`), 'the last one');
      const expected = [...datas, ...Array.from({ length: parts + 1 }, (_, i) => `meanwhile ${i}`)];
      assert.deepEqual(client.datas(), expected);
      assert.deepEqual(await client.ask({ subscribe: 'b', after: 'nonsense' }), {
        cursor: hub.cursor,
        missing: true,
      });
    });

    test('wrong messages get an answer, and the next ones still work', async (t) => {
      const { port } = await startSurface(t, surface, { maxSelectors: 3 });
      const client = await openSocket(t, port, 'match=a', ALL);
      const rows = /** @type {[string, RegExp][]} */ ([
        ['nonsense', /^the message is not valid JSON/],
        ['[1]', /^a message must be a JSON object/],
        ['null', /^a message must be a JSON object/],
        ['{}', /^a message must have one of subscribe, unsubscribe and publish, not nothing: send/],
        ['{"subscrib":["b"],"ref":7}', /^a message must have one of .+, not "subscrib","ref": send/],
        ['{"subscribe":["b"],"unsubscribe":["a"]}', /, not "subscribe","unsubscribe": send/],
        ['{"subscribe":["b"],"topics":1}', /^a message with subscribe has no member "topics"/],
        ['{"unsubscribe":["b"],"after":"x"}', /^a message with unsubscribe has no member "after"/],
        ['{"subscribe":["b"],"after":7}', /^after must be a string/],
        ['{"subscribe":[]}', /^the list of topics is empty/],
        ['{"subscribe":[7]}', /^a topic must be a string, or an object/],
        ['{"subscribe":[{"match":"a","match_type":"regexp"}]}', /^this match type is unknown/],
        ['{"subscribe":[{"match":"a","x":1}]}', /^a topic must be a string, or an object/],
        [
          '{"subscribe":[{"match":"https://x.example/(","match_type":"urlpattern"}]}',
          /^not a valid URL pattern/,
        ],
        ['{"subscribe":["a\\u0000"]}', /^a selector must not contain control/],
        [
          '{"subscribe":["b","c","d"]}',
          /^a stream can have at most 3 topics, not 4 \(max-topics-per-stream\)/,
        ],
        ['{"subscribe":["b","c","d","e"]}', /^a message can have at most 3 topics, not 4/],
        ['{"publish":"x"}', /^a publication is an object/],
        ['{"publish":{"data":"x"}}', /^missing "topic" parameter/],
        ['{"publish":{"topic":"a","data":7}}', /^data must be a string/],
        ['{"publish":{"topic":"a","other":7}}', /^a publication has no field "other"/],
        ['{"publish":[{"topic":"a"},{"topic":"*"}]}', /^publication 1: the topic \* is reserved/],
        [`{"publish":{"topic":"${PATH}/x"}}`, /^the topic is in the hub's own namespace/],
        ['{"publish":{"topic":"a"},"ref":{}}', /^ref must be a number/],
      ]);
      for (const [text, expected] of rows) {
        const from = client.messages.length;
        client.send(text);
        await until(() => client.messages.length > from, text);
        const { error, status } = client.messages[from];
        assert.match(error ?? '', expected, text);
        assert.equal(status, 400, text);
      }
      assert.match((await client.ask({ publish: { topic: 'a', data: 'ok' } })).id ?? '', CURSOR);
      await client.untilDatas(['ok']);
    });

    test('its token says what its client may publish and read', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const publish = { publish: { topic: 'b', data: '1' } };
      const nobody = await openSocket(t, port, 'match=a');
      assert.deepEqual(await nobody.ask(publish), { error: 'this needs an access token', status: 401 });
      const reader = await openSocket(t, port, 'match=a', bearer(legacyToken({ subscribe: ['b'] })));
      assert.deepEqual(await reader.ask(publish), {
        error: 'the access token does not allow this',
        status: 401,
      });
      await nobody.ask({ subscribe: 'b' });
      await reader.ask({ subscribe: 'b' });
      await hub.publish([
        { topic: 'b', data: 'secret', private: true },
        { topic: 'b', data: 'open' },
      ]);
      await reader.untilDatas(['', '']);
      await nobody.untilDatas(['']);
      assert.deepEqual([reader.datas(), nobody.datas()], [['secret', 'open'], ['open']]);
    });

    test('a publication is at most as large as over HTTP', async (t) => {
      const { port, hub } = await startSurface(t, surface, { maxBodyBytes: 1000 });
      const client = await openSocket(t, port, '', ALL);
      const answer = await client.ask({ publish: { topic: 'a', data: 'x'.repeat(1000) } });
      assert.match(answer.error ?? '', /^got 1\d\d\d bytes, expected 1000 at most$/);
      assert.deepEqual([answer.status, hub.counters().hubLimitedPublication], [413, 1]);
    });

    test('an upgrade to something else is ignored', async (t) => {
      const { ask } = await startSurface(t, surface);
      const headers = [
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABkAAQAAP__',
      ];
      const stream = await ask({ target: `${PATH}?match=a`, headers });
      assert.deepEqual([stream.status, stream.headers['content-type']], [200, 'text/event-stream']);
      assert.match(stream.body, /id: #[\w-]{22}\n\n/);
    });

    test('without a key for it, nobody publishes', async (t) => {
      const { port } = await startSurface(t, surface, { jwt: {} });
      const client = await openSocket(t, port, 'match=a');
      assert.equal((await client.ask({ publish: { topic: 'a' } })).status, 405);
    });

    test('browsers may send the token in the query', async (t) => {
      const { port } = await startSurface(t, surface, { anonymous: false });
      const token = legacyToken({ publish: ['a'], subscribe: ['a'] });
      await assert.rejects(openSocket(t, port, 'match=a', STRANGER), { status: 401 });
      const client = await openSocket(t, port, `match=a&authorization=${token}`, STRANGER);
      assert.match((await client.ask({ publish: { topic: 'a' } })).id ?? '', CURSOR);
    });

    test('a token that expires ends it, and so does a revoked one', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const exp = Math.floor(Date.now() / 1000) + 2;
      const short = await openSocket(t, port, 'match=a', bearer(legacyToken({ subscribe: ['a'] }, { exp })));
      const ann = await openSocket(
        t,
        port,
        'match=a',
        bearer(legacyToken({ subscribe: ['a'] }, { sub: 'ann' })),
      );
      void hub.revoke({ subject: 'ann' });
      await ann.untilClosed();
      await short.untilClosed();
      assert.deepEqual(
        [ann.closed, short.closed],
        [
          { code: 1008, reason: 'revoked' },
          { code: 1008, reason: 'expired' },
        ],
      );
    });

    test('a page of another origin opens none, unless it may use the hub', async (t) => {
      const { port } = await startSurface(t, surface, {
        corsOrigins: ['https://good.example'],
        publishOrigins: ['https://publisher.example'],
      });
      const open = (/** @type {Record<string, string>} */ headers) => openSocket(t, port, 'match=a', headers);
      const evil = { Origin: 'https://evil.example' };
      await assert.rejects(open({ ...COOKIE, ...evil }), { status: 403 });
      await assert.rejects(open({ ...COOKIE, Origin: 'null' }), { status: 403 });
      await assert.rejects(open({ ...COOKIE, Origin: `http://127.0.0.1:${port + 1}` }), { status: 403 });
      await assert.rejects(open(evil), { status: 403 }, 'this machine may read, but not every page on it');
      const own = await open({ ...COOKIE, Origin: `http://127.0.0.1:${port}` });
      const listed = await open({ ...COOKIE, Origin: 'https://good.example' });
      for (const client of [own, listed])
        assert.deepEqual(await client.ask({ publish: { topic: 'a' } }), {
          error: 'publishing with a cookie needs an Origin that is listed in publish-origins',
          status: 400,
        });
      const publisher = await open({ ...COOKIE, Origin: 'https://publisher.example' });
      assert.match((await publisher.ask({ publish: { topic: 'a' } })).id ?? '', CURSOR);
    });

    test('a list with every origin is for pages without a cookie', async (t) => {
      const { port } = await startSurface(t, surface, { corsOrigins: ['*'] });
      const evil = { Origin: 'https://evil.example' };
      await openSocket(t, port, 'match=a', evil);
      await assert.rejects(openSocket(t, port, 'match=a', { ...COOKIE, ...evil }), { status: 403 });
    });

    test('what is wrong with a request is said before the upgrade', async (t) => {
      const { port } = await startSurface(t, surface);
      await assert.rejects(openSocket(t, port, 'Match=a'), { status: 400, text: /^"Match" is no parameter/ });
      await assert.rejects(openSocket(t, port, 'match=a', bearer('nonsense')), { status: 401 });
    });

    test('it counts for the limits of an address, and subscribing for the rate of opens', async (t) => {
      const { port, hub } = await startSurface(t, surface, {
        maxStreamsPerAddress: 1,
        maxOpensPerAddress: 2,
        proxies: [],
      });
      const client = await openSocket(t, port, 'match=a');
      await assert.rejects(openSocket(t, port, 'match=a'), { status: 429 });
      const { status, error } = await client.ask({ subscribe: 'b' });
      assert.equal(status, 429);
      assert.match(error ?? '', /max-opens-per-address/);
      client.socket.close();
      await until(() => hub.core.limits?.sites?.shares.size === 0, 'room');
    });

    test('answers come in the order of the requests, and publications in that order too', async (t) => {
      const { port } = await startSurface(t, surface);
      const client = await openSocket(t, port, '', ALL);
      const count = 300;
      client.send({ subscribe: 'a', ref: -1 });
      for (let i = 0; i < count; i++) {
        client.send({ publish: { topic: 'a', data: `${i}` }, ref: i });
        if (i % 100 === 50) client.send({ subscribe: `topic${i}`, after: 'earliest', ref: i + 0.5 });
        if (i % 100 === 70) client.send('nonsense');
      }
      client.send({ unsubscribe: 'a', ref: count });
      await until(() => client.messages.some(({ ref }) => ref === count), 'the last answer');
      const refs = client.messages.flatMap(({ ref }) => ref ?? []).map(Number);
      assert.deepEqual(
        refs,
        [...refs].sort((one, other) => one - other),
      );
      assert.equal(refs.length, count + 5);
      assert.deepEqual(
        client.datas(),
        Array.from({ length: count }, (_, i) => `${i}`),
      );
    });

    test('a client that asks and does not read is slow, however much the hub would answer', async (t) => {
      const { port, hub, closes } = await startSurface(t, surface, {}, { maxBacklogBytes: 100_000 });
      await hub.publish(Array.from({ length: 100 }, () => ({ topic: 'a', data: 'x'.repeat(10_000) })));
      const client = await openSocket(t, port, 'match=b');
      client.socket.pause();
      const request = JSON.stringify({ subscribe: 'a', after: 'earliest' });
      await until(() => {
        for (let i = 0; i < 50; i++) client.socket.send(request);
        return closes.some(({ reason }) => reason === 'slow');
      }, 'it is slow');
    });

    test('a client that says more than is carried out is refused, and can go on', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      /** @type {(() => void)[]} */
      const waiting = [];
      const { append } = hub.core.broker;
      hub.core.broker.append = async (drafts) => {
        await new Promise((resolve) => waiting.push(() => resolve(undefined)));
        return append.call(hub.core.broker, drafts);
      };
      const client = await openSocket(t, port, '', ALL);
      for (let i = 0; i < 1100; i++) client.send({ publish: { topic: 'a' }, ref: i });
      await until(() => client.messages.length === 101, 'a hundred refusals');
      assert.deepEqual(client.messages[1], {
        ref: 1000,
        error: 'too many requests of yours wait to be answered: at most 1000; try again later',
        status: 429,
      });
      hub.core.broker.append = append;
      for (const go of waiting) go();
      await until(() => client.messages.length === 1101, 'all answers');
      assert.match((await client.ask({ publish: { topic: 'a' } })).id ?? '', CURSOR);
    });

    test('messages of other WebSockets go to the application', async (t) => {
      /** @type {string[]} */
      const heard = [];
      const { port, hold } = await startSurface(
        t,
        surface,
        {},
        {
          onMessage: (_, data) => void heard.push(data),
        },
      );
      const client = await openSocket(t, port, 'match=a');
      client.send('{"subscribe":"b"}');
      await until(() => client.messages.length === 2, 'an answer');
      assert.deepEqual(heard, []);
      hold.reportMessage(12345, 'for the application');
      assert.deepEqual(heard, ['for the application']);
    });

    test('one publication reaches every kind of client alike, and none is lost over reconnects', async (t) => {
      const { port, hub } = await startSurface(t, surface);
      const count = 200;
      const events = new Reader(t, [port], `${PATH}?match=a`);
      await until(() => events.isOpen, 'the events');
      const lines = new Again(
        (cursor) => openLines(t, port, `match=a&${cursor}`),
        (client) => client.close(),
      );
      const sockets = new Again(
        (cursor) => openSocket(t, port, `match=a&${cursor}`),
        (client) => client.socket.terminate(),
      );
      await lines.open(hub.cursor);
      await sockets.open(hub.cursor);
      /** @type {string[]} */
      const polled = [];
      const polls = (async () => {
        for (let cursor = hub.cursor; polled.length < count; ) {
          const reply = await poll(port, `match=a&wait=20&${after(cursor)}`);
          for (const { data = '' } of reply.messages) polled.push(data);
          cursor = reply.header ?? cursor;
        }
      })();
      const expected = Array.from({ length: count }, (_, i) => `${i}`);
      for (const data of expected) {
        await hub.publish({ topic: 'a', data });
        if (Number(data) % 20 === 7) events.request?.destroy();
        if (Number(data) % 20 === 11) await lines.again();
        if (Number(data) % 20 === 13) await sockets.again();
      }
      await polls;
      await until(
        () => [events.datas, lines.datas(), sockets.datas()].every((datas) => datas.length >= count),
        'all',
      );
      for (const datas of [events.datas, lines.datas(), sockets.datas(), polled])
        assert.deepEqual(datas, expected);
    });
  });

for (const { name, scheme, needs, start } of [
  {
    name: 'node:http',
    scheme: 'ws',
    needs: {},
    start: (/** @type {import('node:test').TestContext} */ _, /** @type {Hub} */ hub) =>
      createServer(hub.handler),
  },
  {
    name: 'node:https',
    scheme: 'wss',
    needs: NEEDS_TLS,
    start: (/** @type {import('node:test').TestContext} */ t, /** @type {Hub} */ hub) =>
      createSecureServer(makeCertificate(t).read(), hub.handler),
  },
])
  test(`on ${name}, a WebSocket gets what is published while it is opened`, needs, async (t) => {
    const { hold } = startHold(t, KINDS[0]);
    const hub = new Hub({ hold, jwt: { secret: SECRET }, anonymous: true });
    await hub.start();
    const port = await listening(t, start(t, hub).on('upgrade', hub.upgrade));
    let count = 0;
    const publish = setInterval(() => void hub.publish({ topic: 'a', data: `${count++}` }), 1);
    t.after(() => clearInterval(publish));
    const clients = [];
    for (let i = 0; i < 20; i++) {
      const before = hub.cursor;
      const from = count;
      const socket = new WebSocket(`${scheme}://127.0.0.1:${port}${PATH}?match=a&${after(before)}`, {
        headers: ALL,
        rejectUnauthorized: false,
      });
      t.after(() => socket.terminate());
      const client = socketClient(socket);
      clients.push({ client, from });
      await until(() => client.messages.length > 0, 'it is open');
    }
    clearInterval(publish);
    assert.match((await clients[0].client.ask({ publish: { topic: 'a', data: 'last' } })).id ?? '', CURSOR);
    for (const { client, from } of clients) {
      await until(() => client.datas().at(-1) === 'last', 'the last one');
      const [first] = client.datas();
      assert.ok(Number(first) <= from, `${first} after ${from}`);
      const numbers = Array.from({ length: count - Number(first) }, (_, i) => `${Number(first) + i}`);
      assert.deepEqual(client.datas(), [...numbers, 'last']);
    }
  });

/**
 * A client that comes back with the id of its last message.
 * @template {{ messages: any, datas: () => string[] }} Client
 */
class Again {
  /** @param {(cursor: string) => Promise<Client>} connect @param {(client: Client) => void} close */
  constructor(connect, close) {
    this.connect = connect;
    this.close = close;
    /** @type {string[]} */
    this.before = [];
    this.cursor = '';
    /** @type {Client | null} */
    this.client = null;
  }

  /** @param {string} cursor */
  async open(cursor) {
    this.cursor = cursor;
    this.client = await this.connect(after(cursor));
  }

  async again() {
    const { client } = this;
    if (!client) return;
    this.close(client);
    const messages = typeof client.messages === 'function' ? client.messages() : client.messages;
    const last = messages.findLast((/** @type {{ id?: string }} */ { id }) => id !== undefined);
    this.before.push(...client.datas());
    await this.open(last?.id ?? this.cursor);
  }

  /** @returns {string[]} */
  datas() {
    return [...this.before, ...(this.client?.datas() ?? [])];
  }
}
