/*
 * Polls: requests that wait for their answer. The same from the native core and from JS.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rawClient } from './helpers/client.js';
import { KINDS, NEEDS_NATIVE, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

const CURSOR = 'c1';

/** @typedef {import('./helpers/hold.js').Kind} Kind */

/**
 * A Hold whose targets are polls: '/a,b?200' listens to the channels a and b, and waits 200 ms; '/stream' is a stream.
 * @param {import('node:test').TestContext} t @param {Kind} kind
 * @param {{ format?: 'poll' | 'pollUpdates', headers?: Record<string, string>, options?: import('holdfast').HoldOptions }} [how]
 */
async function startPolls(t, kind, { format = 'poll', headers, options } = {}) {
  /** @type {number[]} */
  const ids = [];
  const { hold, closes, port, ask } = await startListening(t, kind, {
    policy: {
      decide: ({ target }, id) => {
        if (target === '/stream') return { hold: 'text', channels: ['a'], welcome: 'Welcome!' };
        ids.push(id);
        const [channels, waitMs = '60000'] = target.slice(1).split('?');
        return {
          hold: format,
          channels: channels === '' ? [] : channels.split(','),
          waitMs: Number(waitMs),
          headers,
        };
      },
    },
    ...options,
  });
  const open = (/** @type {number} */ count) =>
    until(
      () => hold.counters().streams === count,
      () => `${count} polls, not ${hold.counters().streams}`,
    );
  return { hold, closes, port, ask, ids, open };
}

/** @param {string} received @returns {{ status: number, lines: string[], body: string }[]} complete responses, without Date */
function answersIn(received) {
  const answers = [];
  for (let rest = received; rest.includes('\r\n\r\n'); ) {
    const [start, ...lines] = rest.slice(0, rest.indexOf('\r\n\r\n')).split('\r\n');
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(rest)?.[1] ?? 0);
    const status = Number(start.split(' ')[1]);
    const begin = rest.indexOf('\r\n\r\n') + 4;
    const size = status === 204 ? 0 : length;
    answers.push({
      status,
      lines: lines.filter((line) => !line.startsWith('Date: ')),
      body: rest.slice(begin, begin + size),
    });
    rest = rest.slice(begin + size);
  }
  return answers;
}

for (const kind of KINDS) {
  describe(`a poll (${kind})`, () => {
    test('is answered with what is published in one turn, and its connection goes on', async (t) => {
      const { hold, closes, ask, ids, open } = await startPolls(t, kind);
      const client = ask('/a');
      await open(1);
      hold.publish('b', 'not for it');
      hold.publish('a', { id: '7', type: 'news', topic: 'all', data: 'grüße\n"' });
      hold.publish('a', { id: '8', data: 'two' });
      await client.untilRead(/two.*\}\n/);
      const [{ status, lines, body }] = answersIn(client.received);
      const json =
        '{"messages":[{"id":"7","type":"news","topic":"all","data":"grüße\\n\\""},{"id":"8","data":"two"}],"cursor":"8"}\n';
      assert.deepEqual(JSON.parse(Buffer.from(body, 'latin1').toString()), JSON.parse(json));
      assert.equal(Buffer.from(body, 'latin1').toString(), json);
      assert.equal(status, 200);
      assert.deepEqual(lines, [
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Last-Event-ID: 8',
        'Cache-Control: no-store',
      ]);
      await until(() => closes.length === 1, 'the end of the poll');
      assert.deepEqual(closes, [{ id: ids[0], reason: 'answered' }]);
      client.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
      await open(1);
      hold.send(ids[1], 'without an id');
      await client.untilRead(/without an id/);
      assert.equal(answersIn(client.received)[1].body, '{"messages":[{"data":"without an id"}]}\n');
      const { connections, opened, closed, deliveries } = hold.counters();
      assert.deepEqual([connections, opened, closed.answered, deliveries], [1, 2, 2, 3]);
    });

    test('has the headers of the application', async (t) => {
      const { hold, ask, open } = await startPolls(t, kind, {
        headers: { 'X-Own': '1', 'cache-control': 'no-cache' },
      });
      const client = ask('/a');
      await open(1);
      hold.publish('a', 'x');
      await client.untilRead(/\}\n/);
      assert.deepEqual(
        answersIn(client.received)[0].lines.slice(2),
        ['X-Own: 1', 'cache-control: no-cache'].reverse().sort(),
      );
    });

    test('for which nothing comes is answered with 204 in time', async (t) => {
      const { hold, closes, ask } = await startPolls(t, kind);
      const startMs = Date.now();
      const client = ask('/a?300');
      await client.untilRead(/\r\n\r\n/);
      assert.ok(Date.now() - startMs >= 299, 'not earlier');
      assert.deepEqual(answersIn(client.received), [
        { status: 204, lines: ['Cache-Control: no-store'], body: '' },
      ]);
      await until(() => closes.length === 1, 'the end of the poll');
      assert.equal(closes[0].reason, 'answered');
      assert.equal(hold.counters().pings, 0);
      client.send('GET /a?0 HTTP/1.1\r\nHost: a\r\n\r\n');
      await until(() => answersIn(client.received).length === 2, 'another answer');
    });

    test('of updates says where its client is, if that is certain', async (t) => {
      const { hold, ask } = await startPolls(t, kind, { format: 'pollUpdates' });
      const before = ask('/a?0');
      await before.untilRead(/\r\n\r\n/);
      hold.publish([], null, { cursor: CURSOR });
      const [after, none] = [ask('/a?0'), ask('/?0')];
      for (const client of [after, none]) await client.untilRead(/\r\n\r\n/);
      const positions = [before, after, none].map(({ received }) => answersIn(received)[0].lines[0]);
      assert.deepEqual(positions, [
        'Cache-Control: no-store',
        `Last-Event-ID: ${CURSOR}`,
        'Cache-Control: no-store',
      ]);
    });

    test('that is ended says that its connection ends too', async (t) => {
      const { hold, closes, ask, ids, open } = await startPolls(t, kind);
      const client = ask('/a');
      await open(1);
      hold.end(ids[0]);
      await client.untilClosed();
      assert.deepEqual(answersIn(client.received), [
        { status: 204, lines: ['Cache-Control: no-store', 'Connection: close'], body: '' },
      ]);
      assert.equal(closes[0].reason, 'drain');
    });

    test('is answered in a drain, and its connection ends', async (t) => {
      const { hold, closes, ask, open } = await startPolls(t, kind);
      const clients = [ask('/a'), ask('/b')];
      await open(2);
      await hold.close();
      for (const client of clients) {
        await client.untilClosed();
        assert.equal(answersIn(client.received)[0].status, 204);
        assert.ok(answersIn(client.received)[0].lines.includes('Connection: close'));
      }
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['drain', 'drain'],
      );
    });

    test('whose client wants no other request ends the connection', async (t) => {
      const { hold, ask, open } = await startPolls(t, kind);
      const clients = [ask('/a', { Connection: 'close' }), ask('/a', {}, '1.0')];
      const kept = ask('/a', { Connection: 'keep-alive' }, '1.0');
      await open(3);
      hold.publish('a', 'x');
      for (const client of clients) {
        await client.untilClosed();
        assert.ok(answersIn(client.received)[0].lines.includes('Connection: close'));
      }
      await kept.untilRead(/\}\n/);
      assert.ok(answersIn(kept.received)[0].lines.includes('Connection: keep-alive'));
      assert.equal(kept.ended, false);
    });

    test('is over when its client leaves', async (t) => {
      const { closes, ask, open } = await startPolls(t, kind);
      const client = ask('/a');
      await open(1);
      client.close();
      await until(() => closes.length === 1, 'the end of the poll');
      assert.equal(closes[0].reason, 'client-gone');
      await open(0);
    });

    test('may be followed by requests before it is answered', async (t) => {
      const { hold, port, closes, open } = await startPolls(t, kind);
      const one = (/** @type {string} */ target) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
      const client = rawClient(port, one('/a') + one('/b?0') + one('/stream'));
      t.after(client.close);
      await open(1);
      hold.publish('a', 'first');
      await client.untilRead(/Welcome!/);
      const [first, second, third] = answersIn(client.received);
      assert.equal(first.body, '{"messages":[{"data":"first"}]}\n');
      assert.deepEqual([second.status, third.status], [204, 200]);
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['answered', 'answered'],
      );
      hold.publish('a', 'to the stream');
      await client.untilRead(/to the stream/);
    });

    test('is not answered by what cannot be a message', async (t) => {
      const { hold, ask, ids, open } = await startPolls(t, kind);
      const client = ask('/a');
      await open(1);
      hold.write(ids[0], 'a line\n');
      hold.publish('a', 'x');
      await client.untilRead(/\}\n/);
      assert.equal(answersIn(client.received)[0].body, '{"messages":[{"data":"x"}]}\n');
      assert.equal(client.received.startsWith('HTTP/1.1 200 OK\r\n'), true);
    });

    test('may ask for an upgrade in vain', async (t) => {
      const { hold, ask, open } = await startPolls(t, kind);
      const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
      const [client, stream] = [ask('/a', headers), ask('/stream', headers)];
      await stream.untilRead(/Welcome!/);
      await open(2);
      hold.publish('a', 'x');
      await client.untilRead(/\{"messages":\[\{"data":"x"\}\]\}\n/);
      await stream.untilRead(/x/);
    });

    test('gives the head of an answer to a HEAD', async (t) => {
      const { port } = await startPolls(t, kind);
      const client = rawClient(port, 'HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n');
      t.after(client.close);
      await client.untilRead(/\r\n\r\n/);
      assert.deepEqual(answersIn(client.received)[0].lines, [
        'Content-Type: application/json',
        'Cache-Control: no-store',
      ]);
    });
  });
}

describe('the native core and JS', NEEDS_NATIVE, () => {
  test('answer polls with the same bytes', async (t) => {
    const answers = [];
    for (const kind of /** @type {Kind[]} */ (['native', 'JS'])) {
      const { hold, ask, open } = await startPolls(t, kind, {
        format: 'pollUpdates',
        headers: { 'X-Own': 'a' },
      });
      hold.publish([], null, { cursor: CURSOR });
      const clients = [
        ask('/a'),
        ask('/a', {}, '1.0'),
        ask('/b?0'),
        ask('/a', { Connection: 'keep-alive' }, '1.0'),
      ];
      await clients[2].untilRead(/\r\n\r\n/);
      await open(3);
      hold.publish('a', { id: 'ü', type: 't', data: '\u2028 \u{1f600} \u0001 </script>' });
      for (const client of [clients[0], clients[1], clients[3]]) await client.untilRead(/\}\n/);
      answers.push(clients.map(({ received }) => received.replace(/Date: .*\r\n/, 'Date\r\n')));
    }
    assert.deepEqual(answers[0], answers[1]);
  });
});
