/*
 * Polls: requests that wait for their answer. The same from the native core and from JS.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { describe, test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, listening, NEEDS_NATIVE, startHold, startListening } from './helpers/hold.js';
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
      clients[0].send(get()); // in vain
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

for (const kind of KINDS) {
  describe(`a response that is adopted as a poll (${kind})`, () => {
    /**
     * @param {import('node:test').TestContext} t
     * @param {(response: import('node:http').ServerResponse) => void} [prepare]
     * @param {{ waitMs?: number, encoding?: 'poll' | 'pollUpdates' }} [options]
     */
    const startAdopting = async (t, prepare, options) => {
      /** @type {unknown[]} */
      const errors = [];
      const server = createServer((_, response) => {
        prepare?.(response);
        hold
          .adopt(response, { encoding: 'poll', channels: ['a'], ...options })
          .catch((error) => errors.push(error));
      });
      const { hold, closes } = startHold(t, kind);
      const port = await listening(t, server);
      const open = async () => {
        const client = rawClient(port, get());
        t.after(client.close);
        await until(() => hold.counters().streams === 1, 'a poll');
        return client;
      };
      return { hold, closes, errors, port, open };
    };

    test('is answered by its server, which goes on with the connection', async (t) => {
      const { hold, closes, open } = await startAdopting(t, (response) => {
        response.setHeader('X-Own', '1');
        response.setHeader('Content-Type', 'application/json; charset=utf-8');
      });
      const client = await open();
      assert.deepEqual([hold.counters().inJs, hold.counters().connections], [1, 1]);
      hold.publish('a', { id: '1', data: 'x' });
      await client.untilRead(/\{"messages":\[\{"id":"1","data":"x"\}\],"cursor":"1"\}\n$/);
      for (const line of [
        'X-Own: 1',
        'Content-Type: application/json; charset=utf-8',
        'Last-Event-ID: 1',
        'Connection: keep-alive',
      ])
        assert.ok(client.received.includes(`\r\n${line}\r\n`), client.received);
      await until(() => closes.length === 1, 'its end');
      assert.equal(closes[0].reason, 'answered');
      client.send(get());
      await until(() => hold.counters().streams === 1, 'another poll');
      hold.publish('a', 'y');
      await client.untilRead(/"y"/);
      await until(() => hold.counters().connections === 0, 'the connection is not ours');
    });

    test('is answered with 204 in time, with the cursor if that is certain', async (t) => {
      const { hold, closes, port } = await startAdopting(t, undefined, {
        waitMs: 0,
        encoding: 'pollUpdates',
      });
      hold.publish([], null, { cursor: CURSOR });
      const response = await fetch(`http://127.0.0.1:${port}/`);
      assert.deepEqual([response.status, response.headers.get('last-event-id')], [204, CURSOR]);
      await until(() => closes[0]?.reason === 'answered', 'its end');
    });

    test('gives a HEAD the head of an answer', async (t) => {
      const { hold, closes, port } = await startAdopting(t);
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' });
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
      await until(() => closes[0]?.reason === 'drain', 'its end');
      assert.equal(hold.counters().streams, 0);
    });

    test('ends with its connection, and when the application has ended it', async (t) => {
      /** @type {import('node:http').ServerResponse | undefined} */
      let last;
      const { hold, closes, open } = await startAdopting(t, (response) => {
        last = response;
      });
      (await open()).close();
      await until(() => closes.length === 1, 'its end');
      const client = await open();
      last?.end('something else');
      await client.untilRead(/something else/);
      hold.publish('a', 'x');
      await until(() => closes.length === 2, 'its end');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['client-gone', 'drain'],
      );
      assert.doesNotMatch(client.received, /messages/);
    });

    test('is answered in a drain, and its connection ends', async (t) => {
      const { hold, open } = await startAdopting(t);
      const client = await open();
      await hold.close();
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 204 [\s\S]*\r\nConnection: close\r\n/);
    });

    test('must not have begun', async (t) => {
      /** @type {((response: import('node:http').ServerResponse) => void)[]} */
      const spoil = [
        (response) => response.flushHeaders(),
        (response) => response.setHeader('Content-Length', '5'),
        (response) => response.end(),
      ];
      for (const prepare of spoil) {
        const { errors, port } = await startAdopting(t, prepare);
        const client = rawClient(port, get());
        t.after(client.close);
        await until(() => errors.length === 1, 'an error');
        assert.ok(withCode('NOT_ADOPTABLE')(errors[0]), String(errors[0]));
      }
      const { hold } = await startAdopting(t);
      for (const options of [{ waitMs: 5 }, { encoding: 'poll', waitMs: -1 }])
        await assert.rejects(
          hold.adopt(/** @type {any} */ ({}), /** @type {any} */ (options)),
          withCode('BAD_ARGUMENT', /waitMs/),
        );
    });

    test('works with HTTP/2', async (t) => {
      const server = createHttp2Server(
        (_, response) => void hold.adopt(response, { encoding: 'poll', channels: ['a'] }),
      );
      const { hold, closes } = startHold(t, kind);
      const session = connectHttp2(`http://127.0.0.1:${await listening(t, server)}`);
      t.after(() => session.destroy());
      for (const data of ['one', 'two']) {
        const stream = session.request({ ':path': '/' });
        let body = '';
        stream.on('data', (chunk) => {
          body += chunk;
        });
        await until(() => hold.counters().streams === 1, 'a poll');
        hold.publish('a', data);
        await until(() => body.endsWith('\n'), 'an answer');
        assert.equal(body, `{"messages":[{"data":"${data}"}]}\n`);
        await until(() => hold.counters().streams === 0, 'its end');
      }
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['answered', 'answered'],
      );
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
