/*
 * What a hub needs of a Hold: publications to several channels, cursors, and replays. Every test runs with the native core
 * and without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTransport } from '../transport/index.js';
import { bodyOf, get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, startHold, startListening } from './helpers/hold.js';
import { TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/** Streams of updates, by target: '/a,b' listens to the channels a and b. @type {import('holdfast').Policy} */
const UPDATES = {
  decide: ({ target }) => ({
    hold: 'updates',
    channels: target.slice(1).split(',').filter(Boolean),
    welcome: ': Welcome!\n\n',
  }),
};

for (const kind of KINDS) {
  describe(`a publication to several channels (${kind})`, () => {
    test('reaches each stream once, and counts it once', async (t) => {
      const { hold, open, idOf } = await startListening(t, kind, { shards: 2 });
      const targets = ['/a', '/b', '/a,b', '/a,b,c', '/c'];
      const clients = [];
      for (const target of targets) clients.push(await open(target));
      const counts = [
        hold.publish(['a', 'b'], '1'),
        hold.publish(['c', 'nobody', 'b'], '2'),
        hold.publish(['a', 'a'], '3'),
        hold.publish(['nobody', 'there'], '4'),
        hold.publish([], '5'),
      ];
      assert.deepEqual(await Promise.all(counts), [4, 4, 3, 0, 0]);
      for (const target of targets) hold.end(idOf(target));
      for (const client of clients) await client.untilClosed();
      assert.deepEqual(
        clients.map(({ received }) => bodyOf(received).replace('Welcome!', '')),
        ['13', '12', '123', '123', '2'],
      );
      assert.equal(hold.counters().deliveries, 11);
      assert.equal(hold.counters().queuedBytes, 0);
    });

    test('reaches each stream in order with everything else', async (t) => {
      const { hold, open, idOf } = await startListening(t, kind);
      const others = [];
      for (let i = 0; i < 20; i++) others.push(await open(`/a,${i}`));
      const client = await open('/a,b,c');
      let expected = 'Welcome!';
      for (let i = 0; i < 300; i++) {
        const text = `${i};`.padEnd(i % 7 === 0 ? 3000 : 10, '.');
        if (i % 4 === 0) hold.publish(['a', 'b', 'nobody'], text);
        else if (i % 4 === 1) hold.publish(['c', 'b'], text);
        else if (i % 4 === 2) hold.publish('a', text);
        else hold.send(idOf('/a,b,c'), text);
        expected += text;
      }
      hold.end(idOf('/a,b,c'));
      await client.untilClosed();
      assert.equal(bodyOf(client.received), expected);
    });

    test('reaches a stream once that subscribes and leaves in the same turn', async (t) => {
      const { hold, open, idOf } = await startListening(t, kind);
      const client = await open('/a');
      const id = idOf('/a');
      hold.publish(['a', 'b'], '1');
      hold.subscribe(id, 'b');
      hold.publish(['a', 'b'], '2');
      hold.unsubscribe(id, 'a');
      hold.publish(['a', 'b'], '3');
      hold.unsubscribe(id, 'b');
      hold.publish(['a', 'b'], '4');
      hold.end(id);
      await client.untilClosed();
      assert.equal(bodyOf(client.received), 'Welcome!123');
    });

    test('can be to very many', async (t) => {
      const { hold, open } = await startListening(t, kind, { maxQueueBytes: 2 ** 30 });
      const client = await open('/7,70000,nobody');
      const channels = Array.from({ length: 100_000 }, (_, i) => String(i));
      assert.equal(await hold.publish(channels, 'x'), 1);
      await client.untilRead(/Welcome![\s\S]*x/);
    });

    test('takes only lists of names, messages and cursors', (t) => {
      const { hold } = startHold(t, kind);
      /** @type {any[][]} */
      const bad = [
        [undefined, 'x'],
        [5, 'x'],
        [[5], 'x'],
        [['a', '\ud800'], 'x'],
        [new Array(2), 'x'],
        [new Set(['a']), 'x'],
        [Array.from({ length: 2 ** 20 + 1 }, () => 'a'), 'x'],
        ['a', null],
        [[], null],
        ['a', null, { cursor: '1' }],
        [[], undefined, { cursor: '1' }],
        ['a', 'x', null],
        ['a', 'x', { cursors: '1' }],
        ...[null, 1, '', 'a\nb', 'a\rb', 'a\0b', 'x'.repeat(257), 'ü'.repeat(129)].map((cursor) => [
          'a',
          'x',
          { cursor },
        ]),
      ];
      for (const [channels, message, options] of bad)
        assert.throws(
          () => hold.publish(channels, message, options),
          withCode('BAD_ARGUMENT'),
          JSON.stringify([String(channels).slice(0, 20), message, options]),
        );
      hold.publish('a', 'x', { cursor: 'ü'.repeat(128) });
      hold.publish('a', 'x', { cursor: undefined });
      hold.publish('a', 'x', {});
    });
  });

  describe(`a stream of updates (${kind})`, () => {
    const startUpdating = (/** @type {import('node:test').TestContext} */ t, options = {}) =>
      startListening(t, kind, { policy: UPDATES, pingIntervalMs: 20, ...options });

    test('is an event stream, whose pings are comments as long as there is no cursor', async (t) => {
      const { open } = await startUpdating(t);
      const client = await open('/a', '1.0');
      await client.untilRead(/Welcome!\n\n:\n\n:\n\n/);
      assert.match(client.received, /^Content-Type: text\/event-stream\r$/m);
    });

    test('gets the cursor in its pings, from the publication on that it came with', async (t) => {
      const { hold, open } = await startUpdating(t);
      const [a, b] = [await open('/a', '1.0'), await open('/b', '1.0')];
      hold.publish('a', { id: '1', data: 'one' }, { cursor: '#1' });
      await a.untilRead(/id: 1\ndata: one\n\nid: #1\n\nid: #1\n\n/);
      await b.untilRead(/id: #1\n\nid: #1\n\n/);
      assert.equal(await hold.publish([], null, { cursor: '#2' }), 0);
      assert.equal(await hold.publish([], 'to nobody', { cursor: '#3' }), 0);
      for (const client of [a, b]) {
        await client.untilRead(/id: #3\n\nid: #3\n\n/);
        assert.match(
          bodyOf(client.received),
          /^: Welcome!\n\n(:\n\n)*(id: 1\ndata: one\n\n)?(id: #\d\n\n)+$/,
        );
        const cursors = [...client.received.matchAll(/#(\d)/g)].map(([, number]) => Number(number));
        assert.deepEqual(cursors, cursors.toSorted());
      }
    });

    test('gets it although it was opened later, in every shard, and others do not', async (t) => {
      const { hold, ask, open } = await startUpdating(t, {
        shards: 2,
        policy: {
          decide: (/** @type {import('holdfast').Head} */ head, /** @type {number} */ id) =>
            head.target === '/events' ? { hold: 'events', channels: ['a'] } : UPDATES.decide(head, id),
        },
      });
      hold.publish('a', 'x', { cursor: '#1' });
      for (let i = 0; i < 8; i++) await (await open(`/${i}`)).untilRead(/Welcome![\s\S]*id: #1\n\n/);
      const other = ask('/events');
      await other.untilRead(/: ping[\s\S]*: ping/);
      assert.doesNotMatch(other.received, /id:/);
    });

    test('has no cursor as long as it has no channels, because it may still get what it has missed', async (t) => {
      const ids = [0];
      const { hold, open } = await startUpdating(t, {
        policy: {
          decide: (/** @type {unknown} */ _head, /** @type {number} */ id) => {
            ids[0] = id;
            return { hold: 'updates', welcome: ': Welcome!\n\n' };
          },
        },
      });
      const client = await open('/', '1.0');
      hold.publish([], null, { cursor: '#1' });
      await client.untilRead(/Welcome!\n\n:\n\n:\n\n:\n\n/);
      hold.write(ids[0], 'id: 1\ndata: missed\n\n');
      hold.subscribe(ids[0], 'a');
      await client.untilRead(/missed\n\n(:\n\n)*id: #1\n\n/);
      assert.doesNotMatch(bodyOf(client.received).split('missed')[0], /#1/);
    });

    test('never has a cursor ahead of what it has got, and none goes backwards, during long fan-outs', async (t) => {
      const { hold, open } = await startUpdating(t, { pingIntervalMs: 10, maxQueueBytes: 2 ** 30 });
      const clients = [];
      for (let i = 0; i < 60; i++) clients.push(await open(i % 3 === 0 ? '/a' : i % 3 === 1 ? '/b' : '/a,b'));
      const filler = 'x'.repeat(2000);
      for (let number = 1; number <= 400; number++) {
        const channels = [['a'], ['b'], ['a', 'b'], ['nobody']][number % 4];
        hold.publish(channels, `${number} ${filler}`, { cursor: String(number) });
        if (number % 40 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
      }
      for (const client of clients) await client.untilRead(/id: 400\n\n/);
      for (const [i, client] of clients.entries()) {
        const mine = (/** @type {number} */ number) =>
          [
            [0, 2],
            [1, 2],
            [0, 1, 2],
          ][i % 3].includes(number % 4);
        checkUpdates(bodyOf(client.received), mine);
      }
    });
  });

  describe(`what is written to a stream (${kind})`, () => {
    test('comes as it is, in order with messages, and is not a delivery', async (t) => {
      let id = 0;
      const { hold, open } = await startListening(t, kind, {
        policy: {
          decide: (_head, its) => {
            id = its;
            return { hold: 'events', channels: ['a'], welcome: 'Welcome!' };
          },
        },
      });
      const client = await open('/a');
      hold.publish('a', '1');
      hold.write(id, 'ü\0\n');
      hold.send(id, '2');
      const bytes = Buffer.from('bytes');
      hold.write(id, bytes);
      bytes.fill('x');
      hold.write(id, '');
      hold.publish('a', '3');
      hold.end(id);
      hold.write(id, 'too late');
      await client.untilClosed();
      assert.equal(
        Buffer.from(bodyOf(client.received), 'latin1').toString(),
        'Welcome!data: 1\n\nü\0\ndata: 2\n\nbytesdata: 3\n\n',
      );
      assert.equal(hold.counters().deliveries, 3);
    });

    test('may be larger than maxBacklogBytes and than the queue, and does not make the stream slow', async (t) => {
      const { hold, open, idOf, closes } = await startListening(t, kind, {
        maxBacklogBytes: 1000,
        maxQueueBytes: 100_000,
      });
      const client = await open('/a');
      client.socket.pause();
      const replay = 'x'.repeat(20_000_000);
      hold.write(idOf('/a'), replay);
      for (let i = 0; i < 5; i++) {
        await hold.publish('a', 'live;');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.ok(hold.counters().backlogBytes > 1_000_000, 'most of it waits');
      client.socket.resume();
      const isWhole = () => client.received.slice(-100).split('live;').length === 6;
      await until(isWhole, () => `all of it: ${client.received.length} bytes`);
      assert.ok(bodyOf(client.received) === `Welcome!${replay}${'live;'.repeat(5)}`);
      await until(() => hold.counters().queuedBytes === 0, 'nothing waits');
      assert.deepEqual(closes, []);
    });

    test('counts as queued until it was written, but neither throws BUSY nor makes others throw it', async (t) => {
      const { hold, open, idOf } = await startListening(t, kind, { maxQueueBytes: 100_000 });
      await open('/a');
      for (let i = 0; i < 10; i++) hold.write(idOf('/a'), 'x'.repeat(50_000));
      if (kind === 'native') {
        assert.equal(hold.counters().queuedBytes, 10 * (50_000 + 256));
        hold.publish('a', 'x'.repeat(99_000));
        assert.equal(hold.counters().queuedBytes, 10 * (50_000 + 256) + 99_000 + 256);
        assert.throws(() => hold.publish('a', 'x'.repeat(1000)), withCode('BUSY'));
      }
      await until(() => hold.counters().queuedBytes === 0, 'it was written');
    });

    test('must be text or bytes, to an id', (t) => {
      const { hold } = startHold(t, kind);
      for (const payload of [undefined, null, 5, {}, ['a'], new ArrayBuffer(1)])
        assert.throws(() => hold.write(1, /** @type {any} */ (payload)), withCode('BAD_ARGUMENT'));
      for (const id of [-1, 1.5, '1', undefined])
        assert.throws(() => hold.write(/** @type {any} */ (id), 'x'), withCode('BAD_ARGUMENT'));
      hold.write(1, 'to nobody');
    });
  });
}

/**
 * @param {string} body of a stream of updates, to which `${number} …` was published with the cursor `number`
 * @param {(number: number) => boolean} isMine whether it was for this stream
 */
function checkUpdates(body, isMine) {
  let cursor = 0;
  let next = 1;
  for (const block of body.split('\n\n').slice(1, -1)) {
    const [, field, text] = /^(\w*): ?(\d*)/.exec(block) ?? [];
    const number = Number(text);
    while (!isMine(next)) next++;
    if (field === 'data') {
      assert.equal(number, next, 'each once and in order');
      assert.ok(number > cursor, `the cursor ${cursor} was ahead of ${number}`);
      next++;
    } else if (field === 'id') {
      assert.ok(number >= cursor, `from the cursor ${cursor} back to ${number}`);
      assert.ok(next > number, `the cursor ${number} was ahead of ${next}`);
      cursor = number;
    }
  }
  assert.equal(cursor, 400);
}

for (const kind of KINDS)
  test(`all streams of updates end, and get nothing that is said later (${kind})`, async (t) => {
    const { hold, closes } = startHold(t, kind, {
      policy: {
        decide: ({ target }) => ({
          hold: target.startsWith('/text') ? 'text' : 'updates',
          channels: ['news'],
          welcome: ': Welcome!\n\n',
        }),
      },
      shards: 2,
      pingIntervalMs: 20,
    });
    const port = await hold.listen(0, '127.0.0.1');
    const opened = async (/** @type {string} */ target) => {
      const client = rawClient(port, get().replace('/ HTTP', `${target} HTTP`));
      t.after(client.close);
      await client.untilRead(/Welcome!/);
      return client;
    };
    const clients = await Promise.all(Array.from({ length: 600 }, (_, i) => opened(`/${i}`)));
    const text = await opened('/text');
    hold.publish('news', 'before', { cursor: '#1' });
    hold.endUpdates('restarted');
    hold.endUpdates('restarted');
    hold.publish('news', 'after', { cursor: '#2' });
    const next = await opened('/next');
    const last = hold.publish('news', 'last');
    await Promise.all(clients.map((client) => client.untilClosed()));
    for (const { received } of clients) {
      assert.match(received, /\bbefore\b[\s\S]*\r\n0\r\n\r\n$/);
      assert.doesNotMatch(received, /after|last|#2/);
    }
    assert.equal(await last, 2);
    await text.untilRead(/before[\s\S]*after[\s\S]*last/);
    await next.untilRead(/last[\s\S]*id: #2\n/);
    assert.doesNotMatch(next.received, /#1|before/);
    await until(() => closes.length === 600, 'onClose');
    assert.ok(closes.every(({ reason }) => reason === 'restarted'));
    const { streams, updates, closed } = hold.counters();
    assert.deepEqual([streams, updates, closed.restarted], [2, 1, 600]);
  });

for (const name of TRANSPORTS)
  test(`the ${name} transport publishes to several channels, writes, labels and ends streams`, async (t) => {
    /** @type {number[]} */
    const ids = [];
    const transport = await createTransport(name, {
      policy: {
        decide: (_head, id) => {
          ids.push(id);
          return { hold: 'updates', channels: ['a', 'b'], welcome: ': Welcome!\n\n', labels: { subject: 7 } };
        },
      },
    });
    t.after(() => transport.close(0));
    const port = await transport.listen(0, '127.0.0.1');
    const clients = ['1.0', '1.0'].map((version) => rawClient(port, get({}, version)));
    for (const client of clients) await client.untilRead(/Welcome!/);
    assert.equal(await transport.publish(['a', 'b'], 'x', { cursor: '#1' }), 2);
    transport.write(ids[0], ': replay\n\n');
    transport.label(ids[0], { token: 8 });
    transport.endLabelled('subject', 7, 'revoked');
    transport.endChannel('b', 'expired');
    for (const client of clients) await client.untilClosed();
    transport.endUpdates('restarted');
    const { closed } = transport.counters();
    assert.deepEqual([closed.revoked, closed.expired, closed.restarted], [1, 1, 0]);
  });
