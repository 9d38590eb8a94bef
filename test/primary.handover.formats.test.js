/*
 * WebSockets, lines of JSON and polls move to another server, or to another worker, and go on there.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { rawClient } from './helpers/client.js';
import { post, startNew, startOld, untilTotals } from './helpers/handover.js';
import { legacyToken, PATH } from './helpers/hub.js';
import { openLines, openSocket, poll } from './helpers/hubsockets.js';
import { until } from './helpers/until.js';

const skip = native ? false : 'the native core is not built';
const CURSOR = /^#[\w-]{22}$/;
const TOKEN = legacyToken({ publish: ['*'], subscribe: ['*'], payload: { name: 'Ann' } }, { sub: 'ann' });
const ALL = { Authorization: `Bearer ${TOKEN}` };

/** @param {number} port @returns {Promise<Record<string, any>[]>} of all streams */
async function subscriptionsAt(port) {
  const response = await fetch(`http://localhost:${port}${PATH}/subscriptions`, { headers: ALL });
  return /** @type {any} */ (await response.json()).subscriptions;
}

/** @param {import('node:test').TestContext} t @param {number} port */
async function openAll(t, port) {
  const anonymous = await openSocket(t, port, 'match=a&match_urlpattern=/items/:id');
  const empty = await openSocket(t, port, '', ALL);
  const trusted = await openSocket(t, port, 'match=a', ALL);
  await trusted.ask({ subscribe: ['b', { match: '/rooms/:id', match_type: 'urlpattern' }] });
  await trusted.ask({ unsubscribe: 'a' });
  const lines = await openLines(t, port, 'match=a');
  const waiting = poll(port, 'match=a&wait=50');
  return { anonymous, empty, trusted, lines, waiting };
}

for (const { how, move } of [
  {
    how: 'a new server takes over',
    move: async (
      /** @type {import('node:test').TestContext} */ t,
      /** @type {import('./helpers/handover.js').Server} */ old,
    ) => {
      await startNew(t, old, ['--subscriptions']).listening;
      assert.equal((await old.exit).code, 0, old.output.stderr);
    },
  },
  {
    how: 'the workers are replaced',
    move: async (
      /** @type {import('node:test').TestContext} */ _,
      /** @type {import('./helpers/handover.js').Server} */ old,
    ) => {
      assert.match(await post(old, '/reload'), /^202/);
      await until(
        () => /reloaded 2 of 2 workers/.test(old.output.stderr),
        () => old.output.stderr,
      );
    },
  },
])
  test(`${how}: clients of every kind go on, and those of WebSockets can publish and subscribe`, {
    skip,
  }, async (t) => {
    const old = await startOld(t, '--subscriptions');
    const { port } = old;
    const { anonymous, empty, trusted, lines, waiting } = await openAll(t, port);
    await old.untilTotals(({ streams }) => streams === 5, 'all streams');
    const before = await subscriptionsAt(port);
    assert.equal(before.length, 5);
    await move(t, old);

    const first = await trusted.ask({ publish: { topic: ['a', '/items/1', '/rooms/1'], data: '1' } });
    assert.match(first.id ?? '', CURSOR);
    assert.deepEqual(
      (await waiting).messages.map(({ data }) => data),
      ['1'],
    );
    for (const client of [anonymous, trusted]) await client.untilDatas(['1']);
    await lines.untilCount(1);
    assert.deepEqual(lines.messages()[0], { id: first.id, topic: 'a', data: '1' });

    assert.equal((await anonymous.ask({ publish: { topic: 'a' } })).status, 401);
    for (const client of [anonymous, empty, trusted]) await client.ask({ subscribe: 'c' });
    await trusted.ask({ unsubscribe: 'b' });
    await anonymous.ask({ unsubscribe: { match: '/items/:id', match_type: 'urlpattern' } });
    const reply = await empty.ask({
      publish: [
        { topic: 'b', data: 'b' },
        { topic: '/items/2', data: 'i' },
        { topic: 'c', data: 'c', private: true },
        { topic: 'c', data: 'd' },
      ],
    });
    assert.equal(reply.ids?.length, 4, JSON.stringify([reply, empty.closed, empty.messages]));
    await trusted.untilDatas(['', '', '']);
    await empty.untilDatas(['', '']);
    await anonymous.untilDatas(['', '']);
    assert.deepEqual(
      [trusted.datas(), empty.datas(), anonymous.datas()],
      [
        ['1', 'c', 'd'],
        ['c', 'd'],
        ['1', 'd'],
      ],
    );

    const list = await subscriptionsAt(port);
    const named = (/** @type {Record<string, any>[]} */ all) =>
      all
        .map(
          ({ match, topic = match, subscriber, payload }) => `${topic} ${payload?.name ?? ''} ${subscriber}`,
        )
        .sort();
    const of = (/** @type {string} */ topic) =>
      before.find(({ match, topic: older = match }) => older === topic)?.subscriber;
    const [ann, nobody] = [of('b'), of('/items/:id')];
    const others = named(list).filter((one) => one.includes(ann) || one.includes(nobody));
    assert.deepEqual(
      others,
      [`/rooms/:id Ann ${ann}`, `a  ${nobody}`, `c  ${nobody}`, `c Ann ${ann}`].sort(),
    );
    assert.equal(list.length, 6, JSON.stringify(list));

    for (const client of [anonymous, empty, trusted]) client.socket.close();
    for (const client of [anonymous, empty, trusted]) await client.untilClosed();
    await until(async () => (await subscriptionsAt(port)).length === 1, 'only the lines are listed');
  });

test('revoking a subject ends its WebSocket in the next server', { skip }, async (t) => {
  const old = await startOld(t);
  const client = await openSocket(t, old.port, 'match=a', ALL);
  const { adminPort } = await startNew(t, old).listening;
  await untilTotals(adminPort, ({ streams }) => streams === 1, 'it has moved');
  await client.ask({ subscribe: 'b' });
  const headers = { 'X-Holdfast': '1', 'Content-Type': 'application/json' };
  await fetch(`http://127.0.0.1:${adminPort}/revoke`, { method: 'POST', headers, body: '{"subject":"ann"}' });
  await client.untilClosed();
  assert.deepEqual(client.closed, { code: 1008, reason: 'revoked' });
});

for (const transport of ['hold', 'http'])
  test(`a connection that has published opens a WebSocket (${transport})`, {
    skip: transport === 'hold' && skip,
  }, async (t) => {
    const { port } = await startOld(t, '--transport', transport);
    const body = 'topic=a&data=1';
    const client = rawClient(port);
    t.after(client.close);
    client.send(
      `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await client.untilRead(/^HTTP\/1.1 200[\s\S]*\r\n\r\n#[\w-]{22}/);
    client.send(
      `GET ${PATH}?match=a HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    await client.untilRead(
      /HTTP\/1.1 101[\s\S]*s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=[\s\S]*\{"cursor":"#[\w-]{22}"\}/,
    );
  });
