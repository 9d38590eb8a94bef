/*
 * Who is subscribed to what: events about subscriptions, and the subscription API, in both dialects of Mercure.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MemoryBroker } from '../broker/memory.js';
import { draftGrants, Session } from '../hub/access/grants.js';
import { parseSelector } from '../hub/matching/selectors.js';
import { Presence } from '../hub/presence/index.js';
import { isTextOfStream } from '../hub/presence/others.js';
import { RemotePresence } from '../hub/presence/remote.js';
import { PresenceServer } from '../hub/presence/server.js';
import { changeOf, countIn, subscriptionsIn, textOf } from '../hub/presence/texts.js';
import { HoldfastError } from '../lib/errors.js';
import { KINDS, listening } from './helpers/hold.js';
import { datasOf, draftToken, legacyToken, PATH, startHub, tokenOf } from './helpers/hub.js';
import { until } from './helpers/until.js';

const UUID = /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const LIST = `${PATH}/subscriptions`;
/** A token of draft-08 for everything. */
const ALL = () => draftToken({ subscribe: ['*'] });
const LEGACY_ALL = legacyToken({ subscribe: ['*'] });

/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });

/** @param {{ subscribe: ({ match: string, match_type?: string })[], payload?: object }[]} details @returns {string} a token of draft-08 */
function detailed(...details) {
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const authorization_details = details.map(({ subscribe, payload }) => ({
    type: 'https://mercure.rocks/authorization-detail',
    actions: ['subscribe'],
    topics: subscribe,
    ...(payload ? { payload } : {}),
  }));
  return tokenOf({ exp, aud: `http://localhost${PATH}`, authorization_details }, { typ: 'at+jwt' });
}

/** @param {import('node:test').TestContext} t @param {import('./helpers/hold.js').Kind} kind @param {object} [options] */
async function start(t, kind, options) {
  const started = await startHub(t, kind, { subscriptions: true, ...options });
  /** @param {string} path @param {string | null} [token] @param {Record<string, string>} [headers] */
  const ask = async (path, token = ALL(), headers = {}) => {
    // The tokens are for the hub at the default port.
    const all = { Host: 'localhost', ...(token ? bearer(token) : {}), ...headers };
    const sent = request({ port: started.port, path, headers: all, agent: false }).end();
    const [response] = await once(sent, 'response');
    response.setEncoding('utf8');
    let text = '';
    for await (const part of response) text += part;
    return {
      status: response.statusCode,
      headers: new Headers(response.headers),
      text,
      json: () => JSON.parse(text),
    };
  };
  /** @param {string} [token] @param {string} [query] a client that gets the events */
  const watch = (token = ALL(), query = 'match=*') => started.subscribe(query, bearer(token));
  /** On the list once it is announced. @param {number} count */
  const untilListed = (count) =>
    until(async () => (await ask(LIST)).json().subscriptions.length === count, `${count} on the list`);
  return { ...started, ask, watch, untilListed };
}

/** @param {{ events: () => import('./helpers/hub.js').ReadEvent[] }} client @returns {any[]} what presence has told it */
const toldTo = (client) => datasOf(client).map((data) => JSON.parse(data ?? ''));

for (const kind of KINDS) {
  describe(`presence of a hub on a Hold in ${kind}`, () => {
    test('each subscription is announced when it begins and when it ends', async (t) => {
      const { subscribe, watch } = await start(t, kind);
      const watcher = await watch();
      const client = await subscribe('match=https://x.example/a*b&match_urlpattern=https://x.example/:id');
      await until(() => datasOf(watcher).length === 3, 'its own, and those of the client');
      const [own, exact, pattern] = toldTo(watcher);
      assert.deepEqual([own.match_type, own.match, own.active], ['exact', '*', true]);
      assert.match(exact.subscriber, UUID);
      assert.equal(exact.subscriber, pattern.subscriber);
      assert.notEqual(exact.subscriber, own.subscriber);
      const subscriber = exact.subscriber.replaceAll(':', '%3A');
      assert.deepEqual(exact, {
        id: `${LIST}/exact/https%3A%2F%2Fx.example%2Fa%2Ab/${subscriber}`,
        type: 'subscription',
        match_type: 'exact',
        match: 'https://x.example/a*b',
        subscriber: exact.subscriber,
        active: true,
      });
      assert.equal(pattern.id, `${LIST}/urlpattern/https%3A%2F%2Fx.example%2F%3Aid/${subscriber}`);
      client.close();
      await until(() => datasOf(watcher).length === 5, 'the end');
      assert.deepEqual(toldTo(watcher).slice(3), [
        { ...exact, active: false },
        { ...pattern, active: false },
      ]);
      const events = watcher.events().filter(({ data }) => data !== undefined);
      for (const { type, id } of events) assert.deepEqual([type, id?.[0]], ['mercure', '#']);
    });

    test('streams of 0.x are announced in its form', async (t) => {
      const { subscribe } = await start(t, kind);
      const token = legacyToken({ subscribe: [`${LIST}/{topic}/{subscriber}`] });
      const watcher = await subscribe(`topic=${LIST}/{topic}/{subscriber}`, bearer(token));
      const payload = { name: 'Ann' };
      const client = await subscribe('topic=https://x.example/{id}', bearer(legacyToken({ payload })));
      client.close();
      await until(() => datasOf(watcher).length === 3, 'its own, the beginning and the end');
      const [, began, ended] = toldTo(watcher);
      assert.deepEqual(began, {
        '@context': 'https://mercure.rocks/',
        id: `${LIST}/https%3A%2F%2Fx.example%2F%7Bid%7D/${began.subscriber.replaceAll(':', '%3A')}`,
        type: 'Subscription',
        topic: 'https://x.example/{id}',
        subscriber: began.subscriber,
        active: true,
        payload,
      });
      assert.deepEqual(ended, { ...began, active: false });
      assert.ok(watcher.events().every(({ type }) => type === undefined));
    });

    test('a stream gets its own events if it asks for them, and nobody gets events without a grant for them', async (t) => {
      const { subscribe, watch, untilListed } = await start(t, kind);
      const own = await watch(
        draftToken({ subscribe: ['*'] }),
        `match=a&match_urlpattern=${LIST}/:type/:match/:subscriber`,
      );
      await until(() => datasOf(own).length === 2, 'both of its own');
      const others = [
        await subscribe('match=*'),
        await watch(draftToken({ subscribe: ['a', 'b'] }), 'match=*'),
        await watch(legacyToken({ subscribe: [LIST] }), 'match=*'),
      ];
      await untilListed(5);
      for (const other of others) assert.deepEqual(datasOf(other), []);
    });

    test('the payload is that of the first detail whose topics match the text of the subscription', async (t) => {
      const { subscribe, ask, untilListed } = await start(t, kind);
      const token = detailed(
        { subscribe: [{ match: 'other' }], payload: { n: 0 } },
        { subscribe: [{ match: 'https://x.example/:id', match_type: 'urlpattern' }], payload: { n: 1 } },
        { subscribe: [{ match: '*' }], payload: { n: 2 } },
      );
      await subscribe('match=https://x.example/7&match=y', bearer(token));
      await untilListed(2);
      const { subscriptions } = (await ask(LIST)).json();
      assert.deepEqual(
        subscriptions.map((/** @type {any} */ { match, payload }) => [match, payload]),
        [
          ['https://x.example/7', { n: 1 }],
          ['y', { n: 2 }],
        ],
      );
    });

    test('a request that opens no stream announces nothing', async (t) => {
      const { subscribe, watch, port, ask } = await start(t, kind, { maxSelectors: 2 });
      const watcher = await watch();
      await until(() => datasOf(watcher).length === 1, 'its own');
      for (const query of ['', 'match=a&match=b&match=c', 'match_urlpattern=%7B'])
        assert.equal((await subscribe(query)).head().status, 400);
      assert.equal((await subscribe('match=a', bearer('x.y.z'))).head().status, 401);
      await fetch(`http://localhost:${port}${PATH}?match=a`, { method: 'HEAD' });
      const client = await subscribe('match=last');
      await until(() => datasOf(watcher).length === 2, 'the last one');
      assert.equal(toldTo(watcher)[1].match, 'last');
      client.close();
      await until(() => datasOf(watcher).length === 3, 'its end');
      assert.equal((await ask(LIST)).json().subscriptions.length, 1);
    });

    test('the list is as the draft has it', async (t) => {
      const { subscribe, ask, untilListed } = await start(t, kind);
      const empty = await ask(LIST);
      assert.deepEqual(
        [empty.status, empty.json()],
        [200, { id: LIST, type: 'subscriptions', subscriptions: [] }],
      );
      assert.deepEqual(
        [empty.headers.get('etag'), empty.headers.get('link')],
        [
          '"earliest"',
          `<${PATH}>; rel="mercure"; last-event-id="earliest"; type="mercure"; content-type="application/json"`,
        ],
      );
      await subscribe('match=a');
      await subscribe('match=a&match_urlpattern=a');
      await untilListed(3);
      const { status, headers, json } = await ask(LIST);
      assert.deepEqual([status, headers.get('content-type')], [200, 'application/json']);
      assert.match(headers.get('cache-control') ?? '', /must-revalidate/);
      const { subscriptions } = json();
      const one = subscriptions[0];
      assert.deepEqual(one, {
        id: `${LIST}/exact/a/${one.subscriber.replaceAll(':', '%3A')}`,
        type: 'subscription',
        match_type: 'exact',
        match: 'a',
        subscriber: one.subscriber,
        active: true,
      });
      const exact = (await ask(`${LIST}/exact/a`)).json();
      assert.deepEqual([exact.id, exact.subscriptions.length], [`${LIST}/exact/a`, 2]);
      const patterns = (await ask(`${LIST}/urlpattern/a`)).json().subscriptions;
      assert.deepEqual([patterns.length, patterns[0].match_type], [1, 'urlpattern']);
      assert.deepEqual((await ask(`${LIST}/exact/nobody`)).json().subscriptions, []);
      assert.deepEqual((await ask(one.id)).json(), one);
    });

    test('the list is as 0.x has it for its tokens', async (t) => {
      const { subscribe, ask, untilListed } = await start(t, kind);
      await subscribe(
        'topic=https://x.example/{id}&topic=a',
        bearer(legacyToken({ payload: { name: 'Ann' } })),
      );
      await untilListed(2);
      const { status, headers, json } = await ask(LIST, LEGACY_ALL);
      assert.deepEqual([status, headers.get('content-type')], [200, 'application/ld+json']);
      const lastEventID = /last-event-id="(#[^"]+)"/.exec(headers.get('link') ?? '')?.[1];
      const { subscriptions, ...rest } = json();
      const context = { '@context': 'https://mercure.rocks/' };
      assert.deepEqual(rest, { ...context, id: LIST, type: 'Subscriptions', lastEventID });
      const topic = 'https://x.example/{id}';
      const { id, subscriber } = subscriptions[0];
      const one = { id, type: 'Subscription', topic, subscriber, active: true, payload: { name: 'Ann' } };
      assert.deepEqual(subscriptions[0], one);
      const ofTopic = await ask(`${LIST}/${encodeURIComponent(topic)}`, LEGACY_ALL);
      assert.deepEqual(ofTopic.json().subscriptions, [one]);
      assert.deepEqual((await ask(id, LEGACY_ALL)).json(), { ...context, lastEventID, ...one });
      const inDraft = (await ask(LIST)).json().subscriptions;
      assert.deepEqual(
        inDraft.map((/** @type {any} */ { match_type, match }) => [match_type, match]),
        [
          ['uritemplate', topic],
          ['exact', 'a'],
        ],
      );
      assert.deepEqual((await ask(inDraft[0].id)).json(), inDraft[0]);
    });

    test('the list has a cursor from which its changes follow, and an ETag', async (t) => {
      const { subscribe, ask, watch, untilListed, publish } = await start(t, kind);
      const client = await subscribe('match=a');
      await untilListed(1);
      const first = await ask(LIST);
      const etag = first.headers.get('etag') ?? '';
      const cursor = /last-event-id="(#[^"]+)"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
      assert.equal(etag, `"${cursor}"`);
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const same = await ask(LIST, ALL(), { 'If-None-Match': known });
        assert.deepEqual([same.status, same.text, same.headers.get('etag')], [304, '', etag]);
        assert.match(same.headers.get('link') ?? '', /rel="mercure"/);
      }
      client.close();
      await untilListed(0);
      const changed = await ask(LIST, ALL(), { 'If-None-Match': etag });
      assert.deepEqual([changed.status, changed.json().subscriptions], [200, []]);
      const watcher = await watch(ALL(), `match=*&last_event_id=${encodeURIComponent(cursor)}`);
      await until(() => datasOf(watcher).length === 2, 'the end, and its own');
      assert.deepEqual(
        toldTo(watcher).map(({ match, active }) => [match, active]),
        [
          ['a', false],
          ['*', true],
        ],
      );
      const before = (await ask(LIST)).headers.get('etag');
      await publish({ topic: 'any', data: '1' });
      assert.notEqual((await ask(LIST)).headers.get('etag'), before);
    });

    test('a list needs a token whose grants match the path of the request', async (t) => {
      const { subscribe, ask, untilListed } = await start(t, kind);
      await subscribe('match=https://x.example/a');
      await untilListed(1);
      const path = `${LIST}/exact/https%3A%2F%2Fx.example%2Fa`;
      const grant = (/** @type {string[]} */ ...subscribe) => draftToken({ subscribe });
      const statuses = async (/** @type {[string, string | null][]} */ ...cases) =>
        Promise.all(cases.map(async ([url, token]) => (await ask(url, token)).status));
      assert.deepEqual(
        await statuses(
          [LIST, grant(LIST)],
          [path, grant(LIST)],
          [path, grant(path)],
          [`${path}?x=1`, grant(path)],
          [path.replaceAll('%3A', ':').replaceAll('%2F', '%2f'), grant(path)],
          [LIST, grant(path)],
          [LIST, grant('https://x.example/a')],
          [LIST, draftToken({ publish: ['*'] })],
          [LIST, null],
          [LIST, 'x.y.z'],
        ),
        [200, 403, 200, 200, 200, 403, 403, 403, 401, 401],
      );
      const pattern = detailed({ subscribe: [{ match: `${LIST}/exact/*`, match_type: 'urlpattern' }] });
      assert.deepEqual(await statuses([path, pattern], [LIST, pattern]), [200, 403]);
      const template = legacyToken({ subscribe: [`${LIST}{/topic}{/subscriber}`] });
      const legacy = `${LIST}/https%3A%2F%2Fx.example%2Fa`;
      assert.deepEqual(await statuses([LIST, template], [legacy, template]), [200, 200]);
      assert.deepEqual(await statuses([LIST, legacyToken({ subscribe: ['x'] })]), [401]); // 0.x has no 403
      const refused = await ask(LIST, grant('x'));
      assert.match(refused.headers.get('www-authenticate') ?? '', /error="insufficient_scope"/);
      const anonymous = await ask(LIST, null);
      assert.match(anonymous.headers.get('www-authenticate') ?? '', /^Bearer resource_metadata=/);
    });

    test('what is not there is 404, an unknown type 400, another method 405', async (t) => {
      const { subscribe, ask, untilListed, port } = await start(t, kind);
      await subscribe('match=a');
      await untilListed(1);
      const { subscriber } = (await ask(LIST)).json().subscriptions[0];
      const other = subscriber.replace(/.$/, (/** @type {string} */ digit) => (digit === '0' ? '1' : '0'));
      for (const [path, status] of /** @type {const} */ ([
        [`${LIST}/exact/a/${subscriber}`, 200],
        [`${LIST}/exact/a/${other}`, 404],
        [`${LIST}/exact/b/${subscriber}`, 404],
        [`${LIST}/urlpattern/a/${subscriber}`, 404],
        [`${LIST}/exact/a/`, 404],
        [`${LIST}/`, 404],
        [`${LIST}/exact/a/${subscriber}/x`, 404],
        [`${LIST}/regexp/a`, 400],
        [`${LIST}/Exact/a`, 400],
        [`${LIST}/exact/%ff`, 400],
        [`${LIST}/exact/%zz`, 400],
      ]))
        assert.equal((await ask(path)).status, status, path);
      const posted = await fetch(`http://localhost:${port}${LIST}`, {
        method: 'POST',
        headers: bearer(ALL()),
      });
      assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
      const head = await fetch(`http://localhost:${port}${LIST}`, {
        method: 'HEAD',
        headers: bearer(LEGACY_ALL),
      });
      assert.deepEqual([head.status, await head.text(), head.headers.has('etag')], [200, '', true]);
    });

    test('without the option there is no list and no event, and the metadata say so', async (t) => {
      const { hub, subscribe, ask, watch, publish } = await start(t, kind, { subscriptions: false });
      assert.equal(hub.core.presence, null);
      const watcher = await watch();
      await subscribe('match=a');
      await publish({ topic: 'a', data: 'last' });
      await until(() => datasOf(watcher).includes('last'), 'the last one');
      assert.deepEqual(datasOf(watcher), ['last']);
      assert.equal((await ask(LIST)).status, 404);
      const metadata = '/.well-known/oauth-protected-resource/.well-known/mercure';
      assert.equal((await ask(metadata)).json().mercure_subscriptions, undefined);
      const on = await start(t, kind);
      assert.equal((await on.ask(metadata)).json().mercure_subscriptions, true);
    });

    test('pages of other origins may use it, if they are on the list', async (t) => {
      const { ask } = await start(t, kind, { corsOrigins: ['https://app.example'] });
      const allowed = await ask(LIST, ALL(), { Origin: 'https://app.example' });
      assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://app.example');
      assert.match(allowed.headers.get('access-control-expose-headers') ?? '', /ETag.*Link/);
      assert.match(allowed.headers.get('vary') ?? '', /Authorization.*Origin/);
      const refused = await ask(LIST, null, { Origin: 'https://app.example' });
      assert.deepEqual(
        [refused.status, refused.headers.get('access-control-allow-origin')],
        [401, 'https://app.example'],
      );
    });

    test('when the list takes too much memory, new streams get 503 until others end', async (t) => {
      const { hub, subscribe, untilListed } = await start(t, kind, {
        maxPresenceBytes: 7 * (96 + 2 * '8=topic-0'.length),
      });
      const clients = [];
      for (let i = 0; i < 7; i++) clients.push(await subscribe(`match=topic-${i}`));
      const refused = await subscribe('match=more');
      assert.deepEqual([refused.head().status, refused.head().headers['retry-after']], [503, '10']);
      assert.match(refused.received, /max-presence/);
      assert.deepEqual([hub.counters().hubLimitedPresence, hub.counters().hubOpened], [1, 7]);
      clients[0].close();
      await untilListed(6);
      assert.equal((await subscribe('match=more')).head().status, 200);
    });

    test('streams that an application has opened itself are listed too', async (t) => {
      const { hub, untilListed, ask } = await start(t, kind);
      const application = createServer((_, response) => {
        void hub.subscribe(response, { topics: 'a', patterns: 'https://x.example/:id' });
      });
      const port = await listening(t, application);
      const controller = new AbortController();
      await fetch(`http://localhost:${port}/`, { signal: controller.signal });
      await untilListed(2);
      const { subscriptions } = (await ask(LIST)).json();
      const matches = subscriptions.map((/** @type {any} */ { match }) => match);
      assert.deepEqual(matches, ['a', 'https://x.example/:id']);
      controller.abort();
      await untilListed(0);
    });

    test('if presence does not answer in time, the list is 503', async (t) => {
      const { hub, ask, subscribe } = await start(t, kind, { subscriptions: false });
      /** @type {import('../hub/presence/messages.js').ToPresence[]} */
      const sent = [];
      const remote = new RemotePresence({ send: (message) => void sent.push(message), answerMs: 50 });
      hub.attend(remote);
      await subscribe('match=a');
      const late = await ask(LIST);
      assert.deepEqual([late.status, late.headers.get('retry-after')], [503, '1']);
      assert.deepEqual(
        sent.map(({ type }) => type),
        ['attendance', 'list'],
      );
      const found = { sequence: 0, count: 0, state: /** @type {const} */ ('whole') };
      remote.listed({ type: 'listed', id: 1, found }); // too late: nobody waits for it
      const asked = ask(LIST);
      await until(() => sent.length === 3, 'the next question');
      remote.listed({ type: 'listed', id: 2, part: '{"id":"x"}' });
      remote.listed({ type: 'listed', id: 2, found });
      assert.deepEqual((await asked).json().subscriptions, [{ id: 'x' }]);
      remote.room({ type: 'room', isFull: true });
      assert.equal((await subscribe('match=a')).head().status, 503);
    });

    test('the list of very many does not keep the event loop from other work', async (t) => {
      const COUNT = 100_000;
      const { hub, ask } = await start(t, kind);
      const presence = /** @type {import('../hub/presence/local.js').LocalPresence} */ (hub.core.presence)
        .presence;
      presence.announcements.broker = new MemoryBroker({ ...LIMITS, maxQueueBytes: 1e9 });
      for (let i = 0; i < COUNT; i++) presence.enter(t, i, `8=https://x.example/${i}\t{"name":"Ann"}`);
      await presence.flush();
      let turns = 0;
      const timer = setInterval(() => turns++, 1);
      const { json } = await ask(LIST);
      clearInterval(timer);
      assert.equal(json().subscriptions.length, COUNT);
      assert.ok(turns > 50, `only ${turns} turns`); // it takes about a second in all
      const { id } = json().subscriptions[COUNT / 2];
      assert.equal((await ask(id)).status, 200);
    });
  });
}

const LIMITS = {
  historyCount: 10_000,
  historyAgeMs: 1e9,
  historyBytes: 1e8,
  maxQueueBytes: 1e6,
  isCached: () => false,
};

/** @param {import('node:test').TestContext} t */
function presenceAlone(t) {
  const keepsAlive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(keepsAlive));
  const broker = new MemoryBroker(LIMITS);
  /** @type {unknown[]} */
  const errors = [];
  const onError = (/** @type {unknown} */ error) => void errors.push(error);
  const presence = new Presence({ broker, path: PATH, mostBytes: 1e6, onError });
  const told = async () => {
    const publications = await broker.read(0, 10_000);
    return publications.map(({ data }) => JSON.parse(data));
  };
  return { broker, presence, errors, told };
}

test('when a worker dies, its streams are off the list at once, and their end is announced', async (t) => {
  const { presence, told } = presenceAlone(t);
  const [one, other] = [{}, {}];
  for (let i = 0; i < 1200; i++) presence.enter(one, i, `8=${i}`);
  presence.enter(other, 1, '8=other\n~x');
  await presence.flush();
  presence.retire(one);
  assert.equal(presence.count, 2);
  const found = await presence.list({ dialect: 'draft', keys: null, subscriber: '', unless: [] }, () => {});
  assert.deepEqual([found.count, found.sequence], [2, 1202]);
  await presence.flush();
  const all = await told();
  assert.equal(all.length, 2402);
  const ended = all.filter(({ active }) => !active).map(({ id }) => id);
  const began = all.filter(({ active }) => active).map(({ id }) => id);
  assert.deepEqual(ended.sort(), began.filter((id) => !/other|~|urlpattern/.test(id)).sort());
  presence.retire(other);
  await presence.flush();
  assert.deepEqual([presence.count, presence.bytes, (await told()).length], [0, 0, 2404]);
});

test('events that can not be stored are tried again, in order', async (t) => {
  const { broker, presence, errors, told } = presenceAlone(t);
  const append = broker.append.bind(broker);
  let failures = 0;
  broker.append = async (drafts) => {
    if (failures++ < 3) throw new HoldfastError('BUSY', 'no room');
    return append(drafts);
  };
  presence.enter(broker, 1, '8=a');
  presence.leave(broker, 1);
  await presence.flush();
  assert.deepEqual(
    (await told()).map(({ match, active }) => [match, active]),
    [
      ['a', true],
      ['a', false],
    ],
  );
  assert.deepEqual([failures, errors], [5, []]); // the end is never tried together with its beginning
});

test('streams are refused while too many events wait for the broker', async (t) => {
  const { broker, presence } = presenceAlone(t);
  const append = broker.append.bind(broker);
  broker.append = async () => {
    throw new HoldfastError('BUSY', 'no room');
  };
  for (let i = 0; i < 50_000; i++) {
    presence.enter(broker, i, '8=a');
    presence.leave(broker, i);
  }
  assert.deepEqual([presence.isFull, presence.count], [true, 0]);
  broker.append = append;
  await presence.flush();
  assert.equal(presence.isFull, false);
});

test('a store that fails is reported once, and tried again', async (t) => {
  const { broker, presence, errors, told } = presenceAlone(t);
  const append = broker.append.bind(broker);
  let isBroken = true;
  broker.append = async (drafts) => {
    if (isBroken) throw new HoldfastError('STORE', 'disk full');
    return append(drafts);
  };
  presence.enter(broker, 1, '8=a');
  await until(() => errors.length === 1, 'the error');
  isBroken = false;
  await presence.flush();
  assert.deepEqual([(await told()).length, errors.length], [1, 1]);
});

test('a stream that leaves before it entered, or twice, changes nothing', async (t) => {
  const { presence, told } = presenceAlone(t);
  presence.leave(presence, 7);
  presence.enter(presence, 7, '8=a');
  presence.leave(presence, 7);
  presence.leave(presence, 7);
  presence.retire(presence);
  presence.retire({});
  await presence.flush();
  assert.deepEqual([(await told()).length, presence.bytes, presence.count], [2, 0, 0]);
});

/** @param {Presence} presence @returns {Promise<any[]>} what is on the list */
async function listOf(presence) {
  /** @type {string[]} */
  const parts = [];
  const query = { dialect: /** @type {const} */ ('draft'), keys: null, subscriber: '', unless: [] };
  await presence.list(query, (part) => void parts.push(part));
  return JSON.parse(`[${parts.join('')}]`);
}

test('a stream that moves to another worker stays on the list with its id, and nothing is announced', async (t) => {
  const { presence, told } = presenceAlone(t);
  const [one, two, three] = [{}, {}, {}];
  for (let id = 1; id <= 4; id++) presence.enter(one, id, `8=${id}`);
  presence.enter(two, 1, '8=of two');
  await presence.flush();
  const before = await listOf(presence);
  presence.move(one, two, [1, 11, 2, 12, 99, 13, 3, 14]);
  presence.retire(one); // it has 4
  presence.move(two, three, [11, 1, 12, 2, 1, 3]);
  await presence.flush();
  const rest = before.filter(({ match }) => match !== '4');
  const byId = (/** @type {any} */ a, /** @type {any} */ b) => (a.id < b.id ? -1 : 1);
  assert.deepEqual((await listOf(presence)).sort(byId), rest.sort(byId));
  assert.deepEqual(
    (await told()).slice(5).map(({ match, active }) => [match, active]),
    [['4', false]],
  );
  presence.leave(three, 1);
  presence.leave(two, 14);
  presence.leave(one, 2);
  presence.leave(three, 9);
  await presence.flush();
  const ended = (await told()).slice(6);
  assert.deepEqual(
    ended.map(({ id }) => id),
    ['1', '3'].map((match) => before.find((one) => one.match === match)?.id),
  );
  presence.retire(three);
  presence.retire(two);
  await presence.flush();
  assert.deepEqual(
    [presence.count, presence.bytes, presence.node.owners.size, (await told()).length],
    [0, 0, 0, 10],
  );
});

test('the number of a worker that is gone is forgotten with the last of its streams', async (t) => {
  const { presence } = presenceAlone(t);
  /** @type {number[]} */
  const retired = [];
  presence.watcher = { ...presence.watcher, retired: (number) => void retired.push(number) };
  const [one, two] = [{}, {}];
  presence.enter(one, 1, '8=a');
  presence.move(one, two, [1, 2]);
  presence.retire(one);
  assert.deepEqual([presence.node.owners.size, retired], [1, []]);
  presence.leave(two, 2);
  assert.deepEqual([presence.node.owners.size, retired], [0, [1]]);
});

test('streams that move to another process keep their ids, and their beginning is announced before their end', async (t) => {
  const { presence, told, broker } = presenceAlone(t);
  const [one, heir, taker] = [{}, {}, {}];
  presence.enter(one, 1, '8=early');
  presence.enter(one, 2, '8=stays');
  await presence.flush();
  presence.enter(one, 3, '8=late\t{"a":1}');
  const before = await listOf(presence);
  const { identity } = presence;
  const next = new Presence({
    broker,
    path: PATH,
    mostBytes: 1e6,
    onError: () => {},
    identity: JSON.parse(JSON.stringify(identity)),
  });
  const entries = presence.export(one, [1, 501, 3, 503, 7, 507], heir);
  assert.equal(presence.announcements.waiting, 0, 'the next process announces it');
  next.import(taker, JSON.parse(JSON.stringify(entries)));
  next.enter(taker, 1, '8=new');
  await presence.flush();
  await next.flush();
  const listed = await listOf(next);
  for (const match of ['early', 'late'])
    assert.deepEqual(
      listed.find((stream) => stream.match === match),
      before.find((stream) => stream.match === match),
    );
  assert.equal(listed.length, 3);
  assert.equal((await listOf(presence)).length, 3, 'they stay on the list of the process before');
  next.leave(taker, 503);
  next.retire(taker);
  await next.flush();
  const events = (await told()).map(({ match, active }) => `${active ? '+' : '-'}${match}`);
  assert.deepEqual(events, ['+early', '+stays', '+late', '+new', '-late', '-early', '-new']);
  assert.deepEqual([next.count, next.bytes, next.node.owners.size], [0, 0, 0]);
  presence.retire(heir); // as if it had died
  await presence.flush();
  assert.deepEqual([presence.count, (await told()).length], [1, 9]);
});

test('the payload of a stream is kept once, however many subscriptions have it', () => {
  const type = 'https://mercure.rocks/authorization-detail';
  const payloads = { a: { name: 'Ann' }, b: { name: 'x'.repeat(1000) } };
  const details = Object.entries(payloads).map(([start, payload]) => {
    const topics = Array.from({ length: 50 }, (_, i) => ({ match: `${start}${i}` }));
    return { type, actions: ['subscribe'], topics, payload };
  });
  const facts = { expiresAtMs: Number.POSITIVE_INFINITY, subject: 0, token: 0, audiences: null };
  const session = new Session(draftGrants(details, ''), { dialect: 'draft', ...facts });
  const topics = ['a1', 'a2', 'none', 'a3', ...Array.from({ length: 50 }, (_, i) => `b${i}`), 'none', 'a4'];
  const selectors = topics.map((topic) => parseSelector('exact', topic, ''));
  const text = textOf('draft', selectors, session);
  assert.ok(text.length < 2000, `got ${text.length} characters`);
  const expected = topics.map((topic, number) => {
    const payload = payloads[/** @type {'a' | 'b'} */ (topic[0])];
    return { key: `=${topic}`, payload: payload ? JSON.stringify(payload) : '', number };
  });
  assert.deepEqual(subscriptionsIn(text), expected);
});

test('subscriptions that change have numbers of their own, and those that stay keep theirs, and their payload', () => {
  const first = '8=a\t{"n":1}\n~/b/:id\t\n*';
  const second = changeOf(first, '8*\n=a\n=c:d\t{"n":2}\n=9\t');
  assert.equal(second.text, '85:2*\n0=a\t{"n":1}\n3=c:d\t{"n":2}\n4=9\t');
  assert.deepEqual([second.begun, second.ended], ['85:3=c:d\t{"n":2}\n4=9\t', '85:1~/b/:id\t{"n":1}']);
  assert.deepEqual(subscriptionsIn(second.text).at(-1), { key: '=9', payload: '{"n":2}', number: 4 });
  const none = changeOf(second.text, '8');
  assert.deepEqual(
    [none.text, countIn(none.text), countIn(none.ended), countIn(none.begun)],
    ['85:', 0, 4, 0],
  );
  const again = changeOf(none.text, '8=a');
  assert.deepEqual([again.text, again.begun], ['86:5=a', '86:5=a']);
  for (const text of [first, second.text, none.text, again.text]) assert.ok(isTextOfStream(text), text);
  for (const text of ['8', '8:', '85', '85:=a', '85:0', '85:0=a\n=b', '80=a', '8x:0=a'])
    assert.ok(!isTextOfStream(text), text);
});

test('another node hears of a stream whose subscriptions change', (t) => {
  const { presence } = presenceAlone(t);
  const { others } = presence;
  const node = others.begin('x'.repeat(22), 0, Buffer.alloc(16));
  assert.ok(others.enter(node, 1, 7, '8=a'));
  assert.ok(others.enter(node, 1, 7, '83:1=b\n2=c'));
  assert.equal(presence.count, 2);
  assert.deepEqual(
    [...node.streams()].map(({ text }) => text),
    ['83:1=b\n2=c'],
  );
  others.leave(node, 1, 7);
  assert.equal(presence.count, 0);
});

test('what a worker said last, and what arrives only after its death, does not come back on the list', async (t) => {
  const { presence, told } = presenceAlone(t);
  const server = new PresenceServer(presence);
  const worker = {};
  server.add(worker, async () => {});
  const { attendance } = server.handlersOf(worker);
  attendance({ type: 'attendance', entered: [[1, '8=a']], left: [] });
  server.remove(worker);
  attendance({ type: 'attendance', entered: [[2, '8=b']], left: [] });
  await presence.flush();
  assert.deepEqual([server.count, (await told()).length], [0, 2]);
});

test('a stream that comes while the last events are being finished is announced too', async (t) => {
  const { presence, told } = presenceAlone(t);
  let isFirst = true;
  presence.announcements.onProgress = () => {
    if (isFirst) queueMicrotask(() => presence.enter(presence, 2, '8=b'));
    isFirst = false;
  };
  presence.enter(presence, 1, '8=a');
  await presence.flush();
  await until(async () => (await told()).length === 2, 'both');
});

test('once the end of the streams of a dead node is announced, nothing of them is kept', async () => {
  const broker = new MemoryBroker({
    historyCount: 1000,
    historyAgeMs: 1e9,
    historyBytes: 1e9,
    maxQueueBytes: 1e9,
    isCached: () => false,
  });
  const presence = new Presence({ broker, path: PATH, mostBytes: 1e8, onError: () => {} });
  const { others } = presence;
  const bury = () => {
    const node = others.begin('dead', 1, new Uint8Array(16));
    for (let i = 0; i < 10; i++) others.enter(node, 1, i, '8=a');
    others.end(node);
    return { burial: others.bury('dead'), kept: new WeakRef(node) };
  };
  const { burial, kept } = bury();
  await until(() => burial?.isOver, 'all ends are announced');
  await presence.flush();
  assert.equal(broker.last, 10);
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  await until(() => {
    gc();
    return kept.deref() === undefined;
  }, 'the node is forgotten');
  await broker.close();
});
