/*
 * Presence, limits, revocations and the admin port of a server whose streams are in several workers.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clientsOf, datasOf, draftToken, legacyToken, PATH, SECRET } from './helpers/hub.js';
import { startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const LIST = `${PATH}/subscriptions`;
const CLIENTS = 12;
const MOST_ATTEMPTS = 20;
const ALL = { Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}` };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

/** @param {import('node:test').TestContext} t @param {string[]} args */
async function start(t, ...args) {
  const server = await startServer(t, ['--workers', '2', '--jwt-secret', SECRET, '--anonymous', ...args]);
  /** @param {string} path @param {Record<string, string>} headers @param {string} body */
  const post = async (path, headers, body) => {
    const url = `http://127.0.0.1:${server.adminPort}${path}`;
    const response = await fetch(url, { method: 'POST', headers, body });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return { server, post, ...clientsOf(t, server.port) };
}

/** @param {{ port: number }} server @param {string} [path] */
async function listed({ port }, path = LIST) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: ALL });
  assert.equal(response.status, 200);
  return /** @type {any} */ (await response.json()).subscriptions;
}

/**
 * Opens streams until both workers have some: who gets a connection is up to the kernel.
 * @template T @param {{ untilTotals: Function, frame: Function }} server @param {() => Promise<T>} open @returns {Promise<T[]>}
 */
async function inBothWorkers(server, open) {
  /** @type {T[]} */
  const clients = [];
  for (let i = 0; i < MOST_ATTEMPTS; i++) {
    clients.push(...(await Promise.all(Array.from({ length: CLIENTS }, open))));
    await server.untilTotals(
      (/** @type {{ streams: number }} */ { streams }) => streams === clients.length,
      'all',
    );
    const { workers } = await server.frame();
    if (workers.every((/** @type {any} */ { values }) => values.streams > 0)) return clients;
  }
  throw new Error(`one worker got all of ${clients.length} streams`);
}

/** @param {{ events: () => import('./helpers/hub.js').ReadEvent[] }} client @returns {any[]} */
const toldTo = (client) => datasOf(client).map((data) => JSON.parse(data ?? ''));

for (const transport of TRANSPORTS) {
  describe(`a server with the ${transport} transport`, () => {
    test('the list has the streams of all workers, whichever worker is asked', async (t) => {
      const { server, subscribe } = await start(t, '--transport', transport, '--subscriptions');
      for (let i = 0; i < CLIENTS; i++) await subscribe(`match=topic-${i}`);
      const topics = Array.from({ length: CLIENTS }, (_, i) => `topic-${i}`).sort();
      for (let i = 0; i < 8; i++) {
        const subscriptions = await listed(server);
        assert.deepEqual(subscriptions.map((/** @type {any} */ { topic }) => topic).sort(), topics);
        assert.equal(new Set(subscriptions.map((/** @type {any} */ { id }) => id)).size, CLIENTS);
      }
      const [one] = await listed(server, `${LIST}/topic-3`);
      assert.equal(one.topic, 'topic-3');
      await server.untilTotals(({ hubSubscriptions }) => hubSubscriptions === CLIENTS, 'they are counted');
    });

    test('when a worker dies, its streams are off the list, and their end is announced', async (t) => {
      const { server, subscribe } = await start(t, '--transport', transport, '--subscriptions');
      const clients = await inBothWorkers(server, () => subscribe('match=*', ALL));
      process.kill(server.workerPids[0], 'SIGKILL');
      await until(() => clients.some((client) => client.closed), 'its streams end');
      const left = clients.filter((client) => !client.closed);
      const gone = clients.length - left.length;
      await until(
        () => left.every((client) => toldTo(client).filter(({ active }) => !active).length === gone),
        'they are told',
      );
      const ended = toldTo(left[0])
        .filter(({ active }) => !active)
        .map(({ id }) => id);
      const subscriptions = await until(async () => {
        const list = await listed(server).catch(() => null); // a connection may go to the worker that died
        return list?.length === left.length && list;
      }, 'the others are on the list');
      for (const { id } of subscriptions) assert.ok(!ended.includes(id));
    });

    test('streams are revoked by subject, token and topic in all workers within a second, and others stay', async (t) => {
      const { subscribe, post, server } = await start(t, '--transport', transport);
      const as = (/** @type {object} */ claims) => ({ Authorization: `Bearer ${legacyToken({}, claims)}` });
      const open = async (/** @type {string} */ query, /** @type {object} */ claims) =>
        Promise.all(Array.from({ length: 6 }, () => subscribe(query, as(claims))));
      const groups = {
        subject: await open('match=a', { sub: 'ann' }),
        token: await open('match=a', { jti: 'jti-7' }),
        topic: await open('match=room/1&match=b', {}),
        pattern: await open('topic=room/{n}', {}),
        other: await open('match=a', { sub: 'bob', jti: 'jti-8' }),
      };
      const revoke = async (/** @type {Record<string, string>} */ headers, /** @type {string} */ body) => {
        const { status, text } = await post('/revoke', headers, body);
        assert.deepEqual([status, text], [202, 'revoked in 2 workers\n']);
        return performance.now();
      };
      const isOver = async (
        /** @type {number} */ sinceMs,
        /** @type {(keyof typeof groups)[]} */ ...names
      ) => {
        for (const name of names) for (const client of groups[name]) await client.untilClosed();
        const tookMs = performance.now() - sinceMs;
        assert.ok(tookMs < 1000, `${tookMs} ms`);
      };
      await isOver(await revoke(FORM, 'subject=ann&token=jti-7'), 'subject', 'token');
      await isOver(await revoke(JSON_TYPE, '[{"topic":"room/1"},{"topic":"x"}]'), 'topic', 'pattern');
      for (const client of groups.other) assert.equal(client.closed, false);
      await server.untilTotals(({ closedRevoked }) => closedRevoked === 24, 'they are counted');
    });

    test('when the list is full, no worker takes more streams until some have ended', async (t) => {
      const limit = ['--subscriptions', '--max-presence', '65536'];
      const { server, subscribe } = await start(t, '--transport', transport, ...limit);
      const query = Array.from({ length: 90 }, (_, i) => `match=${'x'.repeat(50)}${i}`).join('&');
      const clients = [];
      for (let client = await subscribe(query); client.head().status === 200; client = await subscribe(query))
        clients.push(client);
      assert.ok(clients.length >= 7 && clients.length < 12, `${clients.length} streams`);
      await until(async () => {
        const all = await Promise.all(Array.from({ length: 8 }, () => subscribe('match=a')));
        for (const client of all) client.close();
        return all.every((client) => client.head().status === 503);
      }, 'both workers refuse');
      for (const client of clients) client.close();
      await until(async () => {
        const all = await Promise.all(Array.from({ length: 8 }, () => subscribe('match=a')));
        for (const client of all) client.close();
        return all.every((client) => client.head().status === 200);
      }, 'both workers take streams again');
      await server.untilTotals(
        ({ hubSubscriptions, hubLimitedPresence }) => hubSubscriptions === 0 && hubLimitedPresence > 8,
        'they are gone',
      );
    });

    test('limits hold in each worker', async (t) => {
      const args = ['--transport', transport, '--workers', '1', '--proxy', '192.0.2.1'];
      const { subscribe, server } = await start(
        t,
        ...args,
        '--max-streams-per-address',
        '2',
        '--max-topics-per-stream',
        '2',
      );
      for (let i = 0; i < 2; i++) assert.equal((await subscribe('match=a')).head().status, 200);
      const refused = await subscribe('match=a');
      assert.deepEqual([refused.head().status, refused.head().headers['retry-after']], [429, '10']);
      assert.equal((await subscribe('match=a&match=b&match=c')).head().status, 400);
      const is = (/** @type {Record<string, any>} */ totals) =>
        totals.hubLimitedStreamsPerAddress === 1 && totals.hubLimitedTopicsPerStream === 1;
      await server.untilTotals(is, 'they are counted');
      const metrics = await (await server.admin('/metrics')).text();
      assert.match(metrics, /^holdfast_hub_limited_total\{limit="max-streams-per-address",worker="1"\} 1$/m);
    });
  });
}

test('publications on the admin port need no token, and are those of the hub in every other way', async (t) => {
  const { server, subscribe, post } = await start(t, '--max-publication', '2000');
  const client = await subscribe('match=a');
  const one = await post(PATH, FORM, 'topic=a&data=1&type=news');
  assert.deepEqual([one.status, one.headers.get('content-type')], [200, 'text/plain; charset=utf-8']);
  const several = await post(
    PATH,
    JSON_TYPE,
    '[{"topic":"a","data":"2"},{"topic":"a","data":"3","id":"urn:x"}]',
  );
  const ids = JSON.parse(several.text);
  assert.deepEqual([several.status, ids.length, ids[1]], [200, 2, 'urn:x']);
  assert.equal((await post(PATH, FORM, 'topic=a&data=3&id=urn:x')).text, 'urn:x');
  await until(() => datasOf(client).length === 3, 'all of them');
  const events = client.events().filter(({ data }) => data !== undefined);
  assert.deepEqual(events, [
    { type: 'news', id: one.text, data: '1' },
    { id: ids[0], data: '2' },
    { id: 'urn:x', data: '3' },
  ]);
  for (const [headers, body, status] of /** @type {const} */ ([
    [FORM, '', 400],
    [FORM, 'topic=*&data=1', 400],
    [FORM, `topic=${PATH}/x&data=1`, 400],
    [FORM, 'topic=a&type=mercure', 400],
    [JSON_TYPE, '{', 400],
    [{ 'Content-Type': 'text/html' }, 'topic=a', 415],
    [FORM, `topic=a&data=${'x'.repeat(2000)}`, 413],
    [{ ...FORM, Origin: 'https://evil.example' }, 'topic=a', 403],
    [{ ...FORM, 'Sec-Fetch-Site': 'cross-site' }, 'topic=a', 403],
  ]))
    assert.equal((await post(PATH, headers, body)).status, status, body.slice(0, 40));
  await server.untilTotals(
    (totals) => totals.hubPublished === 3 && totals.hubDuplicates === 1,
    'they are counted',
  );
});

test('what can not be revoked is refused, and web pages can not revoke', async (t) => {
  const { post } = await start(t, '--workers', '1');
  for (const [headers, body, status, why] of /** @type {const} */ ([
    [FORM, '', 400, /nothing to revoke/],
    [JSON_TYPE, '[]', 400, /nothing to revoke/],
    [JSON_TYPE, '{}', 400, /nothing to revoke/],
    [JSON_TYPE, '["ann"]', 400, /an object such as/],
    [JSON_TYPE, '{"subject":7}', 400, /subject must be a text/],
    [JSON_TYPE, '{"subject":""}', 400, /subject must be a text/],
    [JSON_TYPE, '{', 400, /not valid JSON/],
    [FORM, 'user=ann', 400, /"user" can't be revoked/],
    [FORM, 'topic=*', 400, /one by one/],
    [FORM, 'topic=%00', 400, /control/],
    [FORM, 'subject=%ff', 400, /UTF-8/],
    [{ 'Content-Type': 'text/plain' }, 'subject=ann', 415, /must be/],
    [FORM, Array.from({ length: 10_001 }, (_, i) => `subject=${i}`).join('&'), 413, /at most 10000/],
    [{ ...FORM, Origin: 'https://evil.example' }, 'subject=ann', 403, /web pages/],
  ])) {
    const answer = await post('/revoke', headers, body);
    assert.equal(answer.status, status, body.slice(0, 40));
    assert.match(answer.text, why);
  }
  assert.match((await post('/revoke', JSON_TYPE, '{"subject":"ann"}')).text, /^revoked in 1 worker\n$/);
});

test('a worker that does not answer does not keep a revocation waiting', async (t) => {
  const { server, post } = await start(t, '--hung-after', '0');
  process.kill(server.workerPids[0], 'SIGSTOP');
  t.after(() => process.kill(server.workerPids[0], 'SIGCONT'));
  const { status, text, headers } = await post('/revoke', FORM, 'subject=ann');
  assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
  assert.match(text, /1 of 2 workers did not answer/);
});

test('the end of every stream is announced before the server ends', async (t) => {
  const folder = temporaryFolder(t);
  const first = await start(t, '--subscriptions', '--store', folder, '--drain', '100');
  for (let i = 0; i < CLIENTS; i++) await first.subscribe(`match=topic-${i}`);
  await first.server.stop();
  const second = await start(t, '--subscriptions', '--store', folder);
  const token = draftToken({ subscribe: ['*'] });
  const watcher = await second.subscribe('match=*&last_event_id=earliest', {
    Authorization: `Bearer ${token}`,
  });
  await until(() => toldTo(watcher).length === 2 * CLIENTS + 1, 'all of them, and its own');
  const told = toldTo(watcher).slice(0, -1);
  const idsOf = (/** @type {boolean} */ isActive) =>
    told.filter(({ active }) => active === isActive).map(({ id }) => id);
  assert.deepEqual(idsOf(false).sort(), idsOf(true).sort());
  assert.equal((await listed(second.server)).length, 1);
});
