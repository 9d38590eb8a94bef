/*
 * WebSockets: of requests to a Hold (`{ hold: 'websocket' }`), the same from the native core and from JS, on raw sockets and with the
 * clients that people use.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { WebSocket as UndiciWebSocket } from 'undici';
import { WebSocket } from 'ws';
import { get, rawClient } from './helpers/client.js';
import {
  ACCEPT,
  closeIn,
  closing,
  frame,
  framesIn,
  handshake,
  KEY,
  messagesIn,
  OPCODES,
  webSocketClient,
} from './helpers/frames.js';
import { KINDS, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @typedef {import('./helpers/hold.js').Kind} Kind */
/** @typedef {import('holdfast').HoldOptions} HoldOptions */

/**
 * A Hold whose targets are WebSockets: '/a,b' listens to the channels a and b.
 * @param {import('node:test').TestContext} t @param {Kind} kind
 * @param {Partial<import('holdfast').HoldDecision>} [decision] @param {HoldOptions} [options]
 */
async function startWebSockets(t, kind, decision = {}, options = {}) {
  /** @type {{ id: number, data: string }[]} */
  const said = [];
  const { hold, closes, idOf, port } = await startListening(t, kind, {
    onMessage: (id, data) => void said.push({ id, data }),
    policy: {
      decide: ({ target }, id) => {
        ids.set(target, id);
        return { hold: 'websocket', channels: target.slice(1).split(','), ...decision };
      },
    },
    ...options,
  });
  /** @type {Map<string, number>} */
  const ids = new Map();
  const open = async (/** @type {string} */ target, /** @type {Record<string, string>} */ headers = {}) => {
    const client = webSocketClient(port, target, headers);
    t.after(client.close);
    await client.untilRead(/\r\n\r\n/);
    return client;
  };
  const messages = (/** @type {{ received: string }} */ client, /** @type {number} */ count) =>
    until(
      () => messagesIn(client.received).length >= count && messagesIn(client.received),
      () => `${count} messages in ${JSON.stringify(client.received)}`,
    );
  return {
    hold,
    closes,
    said,
    port,
    open,
    messages,
    idOf: (/** @type {string} */ target) => ids.get(target) ?? idOf(target),
  };
}

for (const kind of KINDS) {
  describe(`a WebSocket (${kind})`, () => {
    test('says thousands of messages at once: all come in order, and before its end', async (t) => {
      const count = 20_000;
      /** @type {string[]} */
      const events = [];
      const options = {
        onMessage: (/** @type {number} */ _, /** @type {string} */ data) => void events.push(data),
        onClose: (/** @type {number} */ _, /** @type {string} */ reason) => void events.push(reason),
      };
      const { open } = await startWebSockets(t, kind, {}, options);
      const client = await open('/a');
      const texts = Array.from({ length: count }, (_, i) => `${i}`);
      const frames = texts.map((text) => frame(OPCODES.text, text));
      client.socket.write(Buffer.concat([...frames, frame(OPCODES.close, closing(1000))]));
      await until(
        () => events.length > count,
        () => `${events.length} events`,
      );
      assert.deepEqual(events, [...texts, 'client-gone']);
    });

    test('opens with the answer to its key, and gets what is published', async (t) => {
      const { hold, open, messages } = await startWebSockets(t, kind, {
        welcome: 'Welcome!',
        headers: { 'Sec-WebSocket-Protocol': 'chat', 'X-Own': '1' },
      });
      const client = await open('/a', { 'Sec-WebSocket-Protocol': 'chat, other' });
      const [head] = client.received.split('\r\n\r\n');
      const lines = head.split('\r\n');
      assert.equal(lines[0], 'HTTP/1.1 101 Switching Protocols');
      for (const line of [
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Accept: ${ACCEPT}`,
        'X-Own: 1',
      ])
        assert.ok(lines.includes(line), `${line} in ${head}`);
      assert.deepEqual(
        lines.filter((line) => line.startsWith('Sec-WebSocket-Protocol')),
        ['Sec-WebSocket-Protocol: chat'],
      );
      assert.ok(lines.some((line) => line.startsWith('Date: ')));
      hold.publish('a', { id: '1', data: 'grüße\nan alle' });
      hold.publish('a', '');
      hold.publish('b', 'not for it');
      hold.publish('a', 'x'.repeat(70_000));
      const all = await messages(client, 4);
      assert.deepEqual(all, ['Welcome!', 'grüße\nan alle', '', 'x'.repeat(70_000)]);
      const { streams, deliveries, opened } = hold.counters();
      assert.deepEqual([streams, deliveries, opened], [1, 3, 1]);
    });

    test('of updates gets JSON, and each line of a welcome is a message', async (t) => {
      const { hold, open, messages, idOf } = await startWebSockets(t, kind, {
        hold: 'websocketUpdates',
        welcome: '{"a":1}\n{"b":2}\n\n',
      });
      const client = await open('/a');
      hold.write(idOf('/a'), '{"c":3}\n{"d":4}');
      hold.publish('a', { id: '1', topic: 't', data: 'grüße' });
      assert.deepEqual(await messages(client, 5), [
        '{"a":1}',
        '{"b":2}',
        '{"c":3}',
        '{"d":4}',
        '{"id":"1","topic":"t","data":"grüße"}',
      ]);
    });

    test('tells the application what its client says, whole and in order', async (t) => {
      const { open, said, idOf } = await startWebSockets(t, kind);
      const client = await open('/a');
      const id = idOf('/a');
      client.socket.write(frame('text', 'grüße'));
      const pieces = Buffer.concat([
        frame('text', 'in ', { isLast: false }),
        frame('ping', 'now'),
        frame('continuation', 'three ', { isLast: false }),
        frame('continuation', 'pieces'),
        frame('text', ''),
        frame('text', 'y'.repeat(65_536)),
      ]);
      for (let i = 0; i < pieces.length; i += 5000) client.socket.write(pieces.subarray(i, i + 5000));
      await until(() => said.length === 4, 'four messages');
      assert.deepEqual(
        said,
        ['grüße', 'in three pieces', '', 'y'.repeat(65_536)].map((data) => ({ id, data })),
      );
      await until(() => framesIn(client.received).length === 1, 'a pong');
      const [{ opcode, payload }] = framesIn(client.received);
      assert.deepEqual([opcode, payload.toString()], [OPCODES.pong, 'now']);
    });

    test('that breaks the rules is told how', async (t) => {
      const { closes, open, said, hold } = await startWebSockets(t, kind, {}, { maxMessageBytes: 1000 });
      /** @type {[number, Buffer][]} */
      const cases = [
        [1002, frame('text', 'a', { isMasked: false })],
        [1002, frame('continuation', 'a')],
        [1002, Buffer.from([0xf1, 0x80, 1, 2, 3, 4])],
        [1003, frame('binary', 'a')],
        [1007, frame('text', Buffer.from([0xff, 0xfe]))],
        [1009, frame('text', 'x'.repeat(1001))],
        [1002, frame('close', closing(1005))],
      ];
      for (const [code, bytes] of cases) {
        const client = await open('/a');
        client.socket.write(bytes);
        await client.untilClosed();
        assert.deepEqual(
          closeIn(client.received),
          { code, why: 'bad-request' },
          `${code} ${bytes.toString('hex', 0, 9)}`,
        );
      }
      await until(() => closes.length === cases.length, 'the end of all');
      assert.ok(
        closes.every(({ reason }) => reason === 'bad-request'),
        JSON.stringify(closes),
      );
      assert.deepEqual(said, []);
      assert.equal(hold.counters().streams, 0);
    });

    test('that speaks to an application that does not listen is told so', async (t) => {
      const { closes, open, hold } = await startWebSockets(t, kind, {}, { onMessage: undefined });
      const client = await open('/a');
      client.socket.write(frame('ping', 'a'));
      await until(() => framesIn(client.received).length === 1, 'a pong');
      assert.equal(hold.counters().streams, 1, 'a ping is no message');
      client.socket.write(frame('text', 'a'));
      await client.untilClosed();
      assert.deepEqual(closeIn(client.received), { code: 1003, why: 'bad-request' });
      await until(() => closes[0]?.reason === 'bad-request', 'its end');
    });

    test('that closes gets its code back', async (t) => {
      const { closes, open } = await startWebSockets(t, kind);
      const [one, two] = [await open('/a'), await open('/b')];
      one.socket.write(frame('close', closing(4001)));
      two.socket.write(frame('close'));
      for (const client of [one, two]) await until(() => client.ended, 'the end');
      assert.equal(closeIn(one.received)?.code, 4001);
      assert.equal(closeIn(two.received)?.code, 1005);
      for (const client of [one, two]) client.close();
      await until(() => closes.length === 2, 'the end of both');
      assert.ok(
        closes.every(({ reason }) => reason === 'client-gone'),
        JSON.stringify(closes),
      );
    });

    test('is over when its client leaves without a word', async (t) => {
      const { hold, closes, open } = await startWebSockets(t, kind);
      const [gone, half] = [await open('/a'), await open('/b')];
      gone.socket.resetAndDestroy();
      half.socket.end();
      await until(() => closes.length === 2, 'the end of both');
      assert.ok(
        closes.every(({ reason }) => reason === 'client-gone'),
        JSON.stringify(closes),
      );
      assert.equal(hold.counters().streams, 0);
    });

    test('is told why it ends', async (t) => {
      const { hold, closes, open, idOf } = await startWebSockets(t, kind);
      const clients = [await open('/a'), await open('/b'), await open('/c'), await open('/d')];
      hold.publish('a', 'the last word');
      hold.end(idOf('/a'));
      hold.endChannel('b', 'revoked');
      hold.endChannel('c', 'expired');
      hold.endChannel('d', 'restarted');
      for (const client of clients) await client.untilClosed();
      assert.deepEqual(
        clients.map(({ received }) => closeIn(received)),
        [
          { code: 1001, why: 'drain' },
          { code: 1008, why: 'revoked' },
          { code: 1008, why: 'expired' },
          { code: 1012, why: 'restarted' },
        ],
      );
      assert.deepEqual(messagesIn(clients[0].received), ['the last word']);
      await until(() => closes.length === 4, 'four ends');
      assert.deepEqual(
        new Set(closes.map(({ reason }) => reason)),
        new Set(['drain', 'revoked', 'expired', 'restarted']),
      );
    });

    test('ends with 1001 in a drain', async (t) => {
      const { hold, open } = await startWebSockets(t, kind);
      const client = await open('/a');
      await hold.close();
      await client.untilClosed();
      assert.deepEqual(closeIn(client.received), { code: 1001, why: 'drain' });
    });

    test('is kept alive by pongs, and its client is asked now and then whether it is there', async (t) => {
      const { hold, closes, open } = await startWebSockets(t, kind, {}, { pingIntervalMs: 50 });
      const client = await open('/a');
      const opcodes = () => framesIn(client.received).map(({ opcode }) => opcode);
      await until(() => opcodes().includes(OPCODES.ping), 'a ping');
      const [pongs, asked] = [OPCODES.pong, OPCODES.ping];
      assert.deepEqual(opcodes().slice(0, 4), [pongs, pongs, pongs, asked]);
      client.socket.write(frame('pong'));
      await until(() => opcodes().filter((opcode) => opcode === asked).length === 2, 'another ping');
      assert.equal(closes.length, 0);
      await until(() => closes.length === 1, 'its end, because it did not answer');
      assert.equal(closes[0].reason, 'dead-peer');
      assert.ok(hold.counters().pings >= 8);
    });

    test('whose client does not read is slow', async (t) => {
      const { hold, closes, open } = await startWebSockets(t, kind, {}, { maxBacklogBytes: 10_000 });
      const client = await open('/a');
      client.socket.pause();
      const message = 'x'.repeat(100_000);
      await until(async () => {
        await hold.publish('a', message);
        return closes.length === 1;
      }, 'its end');
      assert.equal(closes[0].reason, 'slow');
    });

    test('is refused with 426 if it is not asked for, and with 400 if its key is bad', async (t) => {
      const { hold, closes, port } = await startWebSockets(t, kind);
      /** @type {[number, string][]} */
      const cases = [
        [426, get()],
        [426, get({}, '1.0')],
        [426, handshake('/a', { Upgrade: 'h2c' })],
        [426, handshake('/a', { Upgrade: undefined })],
        [426, handshake('/a', { Connection: 'keep-alive' })],
        [426, handshake('/a', { 'Sec-WebSocket-Version': '8' })],
        [426, handshake('/a', { 'Sec-WebSocket-Version': undefined })],
        [426, handshake('/a', {}, 'HEAD')],
        [405, handshake('/a', {}, 'PUT')],
        [426, handshake('/a').replace('HTTP/1.1', 'HTTP/1.0')],
        [400, handshake('/a', { 'Sec-WebSocket-Key': undefined })],
        [400, handshake('/a', { 'Sec-WebSocket-Key': `${KEY}x` })],
        [400, handshake('/a', { 'Sec-WebSocket-Key': KEY.replace('==', '=') })],
      ];
      for (const [status, request] of cases) {
        const client = rawClient(port, request);
        t.after(client.close);
        await client.untilRead(/\r\n\r\n/);
        assert.match(client.received, new RegExp(`^HTTP/1.1 ${status} `), request);
        const isAsked = /\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n/.test(
          client.received,
        );
        assert.equal(isAsked, status === 426, client.received);
      }
      await until(() => closes.length === cases.length, 'all are reported');
      assert.ok(
        closes.every(({ reason }) => reason === 'bad-request'),
        JSON.stringify(closes),
      );
      const { refused, opened } = hold.counters();
      assert.deepEqual([refused[405], refused[426], refused[400], opened], [1, 9, 3, 0]);
    });

    test('may be asked for after another request on the same connection', async (t) => {
      const { hold, port, messages } = await startWebSockets(
        t,
        kind,
        {},
        {
          policy: {
            decide: ({ target }) =>
              target === '/' ? { answer: { body: 'first' } } : { hold: 'websocket', channels: ['a'] },
          },
        },
      );
      const client = rawClient(port, get());
      t.after(client.close);
      await client.untilRead(/first$/);
      const before = client.received.length;
      client.send(handshake('/a'));
      await client.untilRead(/101 Switching Protocols[\s\S]*\r\n\r\n/);
      hold.publish('a', 'x');
      client.received = client.received.slice(before);
      assert.deepEqual(await messages(client, 1), ['x']);
    });

    test('can be something else for a server that it is passed to', async (t) => {
      const server = createServer((request, response) => response.end(`served ${request.url}`));
      const { port } = await startWebSockets(
        t,
        kind,
        {},
        { server, policy: { decide: () => ({ pass: true }) } },
      );
      const client = webSocketClient(port, '/a');
      t.after(client.close);
      await client.untilRead(/^HTTP\/1\.1 200 [\s\S]*served \/a/);
      server.on('upgrade', (_, socket) => socket.end('upgraded'));
      const other = rawClient(port, handshake('/a', { Upgrade: 'tcp' }));
      await other.untilRead(/^upgraded$/);
    });

    test('can wait for a promise', async (t) => {
      const { hold, port, messages } = await startWebSockets(
        t,
        kind,
        {},
        {
          policy: {
            decide: async () => () => ({ hold: 'websocket', channels: ['a'], labels: { subject: 7 } }),
          },
        },
      );
      const client = webSocketClient(port, '/a');
      await client.untilRead(/\r\n\r\n/);
      hold.publish('a', 'x');
      await messages(client, 1);
      hold.endLabelled('subject', 7, 'revoked');
      await client.untilClosed();
      assert.equal(closeIn(client.received)?.code, 1008);
    });

    test('gets 503 if there is no room', async (t) => {
      const { port, closes, open } = await startWebSockets(t, kind, {}, { capacity: 1 });
      await open('/a');
      const client = webSocketClient(port, '/b');
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 503 /);
      await until(() => closes[0]?.reason === 'over-capacity', 'it is reported');
    });

    for (const [name, Client] of /** @type {[string, typeof WebSocket][]} */ ([
      ['ws', WebSocket],
      ['undici', UndiciWebSocket],
    ]))
      test(`talks with ${name}`, async (t) => {
        const { hold, closes, port, said } = await startWebSockets(t, kind, { welcome: 'Welcome!' });
        const client = new Client(`ws://127.0.0.1:${port}/a`);
        /** @type {string[]} */
        const heard = [];
        /** @type {{ code: number, reason: string }[]} */
        const ends = [];
        client.onmessage = ({ data }) => void heard.push(String(data));
        client.onclose = ({ code, reason }) => void ends.push({ code, reason });
        await until(() => heard.length === 1, 'the welcome');
        assert.equal(client.extensions, '');
        client.send('grüße');
        await until(() => said.length === 1, 'what it said');
        assert.equal(said[0].data, 'grüße');
        hold.publish('a', 'x'.repeat(200_000));
        await until(() => heard.length === 2, 'a long message');
        assert.equal(heard[1].length, 200_000);
        hold.endChannel('a', 'revoked');
        await until(() => ends.length === 1, 'its end');
        assert.deepEqual(ends, [{ code: 1008, reason: 'revoked' }]);
        await until(() => closes.length === 1, 'the end of the stream');
      });
  });
}
