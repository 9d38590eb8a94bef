/*
 * The rules of WebSockets (RFC 6455) for servers, one after the other: what has to be accepted, and with which code everything else is
 * refused. The cases are those of the Autobahn test suite, as far as they are about text.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rawClient } from './helpers/client.js';
import { ACCEPT, closing, frame, framed, framesIn, OPCODES } from './helpers/frames.js';
import { KINDS, startHold } from './helpers/hold.js';
import { until } from './helpers/until.js';

const { text, close, pong } = OPCODES;
const MOST = 70_000;

/**
 * A Hold that sends back what the clients of WebSockets say.
 * @param {import('node:test').TestContext} t @param {import('./helpers/hold.js').Kind} kind
 * @param {import('holdfast').HoldOptions} [options]
 */
async function startEcho(t, kind, options) {
  /** @type {string[]} */
  const said = [];
  const { hold, closes } = startHold(t, kind, {
    policy: { decide: () => ({ hold: 'websocket' }) },
    onMessage: (id, data) => {
      said.push(data);
      hold.send(id, data);
    },
    maxMessageBytes: MOST,
    maxBacklogBytes: 2 ** 20,
    ...options,
  });
  const port = await hold.listen(0, '127.0.0.1');
  const open = async (/** @type {import('./helpers/frames.js').Asking} */ asking = {}) => {
    const client = framed(rawClient(port), '/', asking);
    t.after(client.close);
    await client.untilOpen();
    return client;
  };
  return { hold, closes, port, said, open };
}

/** @param {Buffer} bytes @param {number} size @returns {Buffer[]} */
function inPieces(bytes, size) {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
}

/** Of the Unicode standard, and of Autobahn's sections 6.6 to 6.22. */
const GOOD_TEXTS = [
  '',
  'κόσμε',
  'Hello-µ@ßöäüàá-UTF-8!!',
  '\u0000',
  '\u007f\u0080\u07ff\u0800\uffff',
  '\u{10000}\u{10ffff}',
  '\ufdd0\ufffe\u{1ffff}',
  '\ufeff',
];
const BAD_TEXTS = [
  'cebae1bdb9cf83cebcceb5eda080656469746564', // half a surrogate pair
  'cebae1bdb9cf83cebcceb5f4908080656469746564', // beyond the last character
  '80',
  'bf',
  'fe',
  'ff',
  'c0af', // too long
  'e080af',
  'f08080af',
  'f8888080af',
  'fc8480808080',
  'edbfbf',
  'ce',
  'cebae1bd',
  'f09f98',
].map((hex) => Buffer.from(hex, 'hex'));

for (const kind of KINDS) {
  describe(`WebSockets held by ${kind}`, () => {
    test('a handshake is answered as in the RFC', async (t) => {
      const { open } = await startEcho(t, kind);
      const client = await open({
        headers: {
          'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits',
          Origin: 'http://a.test',
        },
      });
      const [status, ...lines] = client.received.split('\r\n\r\n')[0].split('\r\n');
      const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(': ')));
      assert.equal(status, 'HTTP/1.1 101 Switching Protocols');
      assert.deepEqual([headers.upgrade, headers.connection], ['websocket', 'upgrade']);
      assert.match(
        client.received.split('\r\n\r\n')[0],
        new RegExp(`\r\nSec-WebSocket-Accept: ${ACCEPT.replaceAll('+', '\\+')}(\r\n|$)`),
      );
      for (const name of [
        'sec-websocket-extensions',
        'sec-websocket-protocol',
        'content-length',
        'transfer-encoding',
      ])
        assert.equal(headers[name], undefined, name);
      /** @type {Record<string, string | undefined>[]} */
      const alike = [
        { Connection: undefined, connection: 'keep-alive, UPGRADE' },
        { Upgrade: undefined, upgrade: 'WebSocket' },
        { Connection: 'upgrade' },
        { Upgrade: 'h2c, websocket' },
      ];
      for (const headers of alike) await open({ headers });
    });

    test('a request that does not ask for a WebSocket in the right way is refused', async (t) => {
      const { port } = await startEcho(t, kind);
      /** @type {[number, import('./helpers/frames.js').Asking][]} */
      const wrong = [
        [426, { headers: { Upgrade: undefined, Connection: undefined } }],
        [426, { headers: { Upgrade: 'h2c' } }],
        [426, { headers: { Connection: 'keep-alive' } }],
        [426, { headers: { 'Sec-WebSocket-Version': '8' } }],
        [426, { headers: { 'Sec-WebSocket-Version': undefined } }],
        [426, { headers: { 'Sec-WebSocket-Version': '013' } }],
        [426, { version: '1.0' }],
        [400, { headers: { 'Sec-WebSocket-Key': undefined } }],
        [400, { headers: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZ' } }],
        [400, { headers: { 'Sec-WebSocket-Key': 'P5l8PJF2uA1m65IN3ESLFg=' } }],
        [400, { headers: { 'Sec-WebSocket-Key': '%%%%%%%%%%%%%%%%%%%%%%==' } }],
        [405, { method: 'POST' }],
      ];
      for (const [status, asking] of wrong) {
        const client = framed(rawClient(port), '/', asking);
        t.after(client.close);
        await client.untilRead(/^HTTP\/1\.1 (\d+) /);
        const what = JSON.stringify(asking);
        assert.equal(/^HTTP\/1\.1 (\d+) /.exec(client.received)?.[1], String(status), what);
        if (status === 426)
          assert.match(
            client.received.split('\r\n\r\n')[0],
            /\r\nUpgrade: websocket\r\n[\s\S]*Sec-WebSocket-Version: 13(\r\n|$)/,
            what,
          );
      }
    });

    test('text of any length comes back, in whatever pieces it arrives', async (t) => {
      const { open } = await startEcho(t, kind);
      for (const length of [0, 1, 125, 126, 127, 128, 65_535, 65_536, MOST]) {
        for (const size of [length + 14, 997]) {
          const client = await open();
          const message = '*'.repeat(length);
          for (const piece of inPieces(frame('text', message), size)) client.socket.write(piece);
          assert.equal((await client.untilMessages(1))[0], message, `${length}`);
          client.close();
        }
      }
      const client = await open();
      for (const byte of frame('text', 'byte by byte ü')) client.socket.write(Buffer.from([byte]));
      assert.deepEqual(await client.untilMessages(1), ['byte by byte ü']);
    });

    test('any mask is a mask', async (t) => {
      const { open } = await startEcho(t, kind);
      const client = await open();
      for (const mask of [
        [0, 0, 0, 0],
        [255, 255, 255, 255],
        [0, 0, 0, 1],
        [128, 0, 7, 9],
      ])
        client.frame('text', 'masked', { mask });
      assert.deepEqual(await client.untilMessages(4), Array(4).fill('masked'));
    });

    // Clients have to wait for the response (section 4.1), but there is no harm in it.
    test('what comes with the request is heard after it', async (t) => {
      const { port } = await startEcho(t, kind);
      const early = Buffer.concat([frame('text', 'early'), frame('text', 'bird')]);
      const client = framed(rawClient(port), '/', { early });
      t.after(client.close);
      assert.deepEqual(await client.untilMessages(2), ['early', 'bird']);
    });

    test('a ping is answered with its payload; a pong that nobody asked for is nothing', async (t) => {
      const { open } = await startEcho(t, kind);
      for (const payload of ['', 'hello', Buffer.from([0, 255, 254, 128]), 'x'.repeat(125)]) {
        const client = await open();
        client.frame('pong', 'unasked');
        client.frame('ping', payload);
        client.frame('text', 'after');
        await client.untilMessages(1);
        await until(() => framesIn(client.received).some(({ opcode }) => opcode === pong), 'a pong');
        const pongs = framesIn(client.received).filter(({ opcode }) => opcode === pong);
        assert.deepEqual(
          pongs.map((one) => one.payload),
          [Buffer.from(payload)],
        );
        client.close();
      }
    });

    test('of many pings at least the last is answered, and the order is kept', async (t) => {
      const { open } = await startEcho(t, kind);
      const client = await open();
      client.socket.write(Buffer.concat(Array.from({ length: 10 }, (_, i) => frame('ping', `${i}`))));
      const pongs = () =>
        framesIn(client.received).flatMap(({ opcode, payload }) => (opcode === pong ? [`${payload}`] : []));
      await until(() => pongs().includes('9'), 'the last pong');
      assert.deepEqual(pongs(), pongs().toSorted());
    });

    test('fragments are put together, with control frames between them', async (t) => {
      const { open } = await startEcho(t, kind);
      const client = await open();
      const part = { isLast: false };
      client.frame('text', 'fragment1', part);
      client.frame('ping', 'between');
      client.frame('continuation', '', part);
      client.frame('continuation', 'fragment2');
      client.frame('text', '', part);
      client.frame('continuation', '', part);
      client.frame('continuation', '');
      const umlaut = Buffer.from('ü');
      client.frame('text', umlaut.subarray(0, 1), part);
      client.frame('continuation', umlaut.subarray(1));
      client.socket.write(
        Buffer.concat(
          [...'letters'].map((letter, i) => frame(i === 0 ? 'text' : 'continuation', letter, part)),
        ),
      );
      client.frame('continuation', '.');
      assert.deepEqual(await client.untilMessages(4), ['fragment1fragment2', '', 'ü', 'letters.']);
      assert.ok(
        framesIn(client.received).some(
          ({ opcode, payload }) => opcode === pong && `${payload}` === 'between',
        ),
      );
    });

    test('a wrong frame ends it with 1002', async (t) => {
      const { open, closes } = await startEcho(t, kind);
      const part = { isLast: false };
      /** @type {Record<string, Buffer[]>} */
      const wrong = {
        'a long ping': [frame('ping', 'x'.repeat(126), { lengthBytes: 2 })],
        'a long close': [frame('close', closing(1000, 'x'.repeat(124)), { lengthBytes: 2 })],
        'a ping in fragments': [frame('ping', 'a', part)],
        'a pong in fragments': [frame('pong', 'a', part)],
        'a continuation of nothing': [frame('continuation', 'a')],
        'a continuation after a message': [frame('text', 'a'), frame('continuation', 'b')],
        'a message within a message': [frame('text', 'a', part), frame('text', 'b')],
        'no mask': [frame('text', 'a', { isMasked: false })],
        'no mask on a control frame': [frame('ping', '', { isMasked: false })],
        'half a code': [frame('close', 'a')],
        'a length beyond 63 bits': [frame('text', '', { lengthBytes: 8, length: 2n ** 63n })],
      };
      for (const reserved of [1, 2, 3, 4, 5, 6, 7]) {
        wrong[`reserved bits ${reserved}`] = [frame('text', 'a', { reserved })];
        wrong[`reserved bits ${reserved} of a ping`] = [frame('ping', '', { reserved })];
      }
      for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
        wrong[`opcode ${opcode}`] = [frame(opcode, '')];
      for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])
        wrong[`code ${code}`] = [frame('close', closing(code))];
      for (const [what, frames] of Object.entries(wrong)) {
        const client = await open();
        client.socket.write(Buffer.concat([frame('text', 'before'), ...frames, frame('text', 'after')]));
        const code = await client.untilClosing();
        const isTooLarge = what === 'a length beyond 63 bits' && code === 1009;
        assert.ok(code === 1002 || isTooLarge, `${what}: ${code}`);
        const texts = framesIn(client.received).filter(({ opcode }) => opcode === text);
        assert.ok(!texts.some(({ payload }) => `${payload}` === 'after'), what);
      }
      await until(() => closes.length === Object.keys(wrong).length, 'all ends');
      assert.ok(
        closes.every(({ reason }) => reason === 'bad-request'),
        JSON.stringify(closes),
      );
    });

    test('what is not UTF-8 ends it with 1007', async (t) => {
      const { open } = await startEcho(t, kind);
      const client = await open();
      for (const one of GOOD_TEXTS) client.frame('text', one);
      assert.deepEqual(await client.untilMessages(GOOD_TEXTS.length), GOOD_TEXTS);
      for (const bytes of BAD_TEXTS) {
        for (const cut of [bytes.length, 1, bytes.length - 1]) {
          const other = await open();
          other.frame('text', bytes.subarray(0, cut), { isLast: false });
          other.frame('continuation', bytes.subarray(cut));
          assert.equal(await other.untilClosing(), 1007, `${bytes.toString('hex')} in ${cut}`);
        }
      }
      const other = await open();
      other.frame('close', closing(1000, BAD_TEXTS[0]));
      assert.equal(await other.untilClosing(), 1007, 'a reason to close');
    });

    test('binary messages end it with 1003, and long ones with 1009', async (t) => {
      const { open, said } = await startEcho(t, kind);
      /** @type {[number, Buffer[]][]} */
      const wrong = [
        [1003, [frame('binary', 'a')]],
        [1003, [frame('binary', '')]],
        [1009, [frame('text', 'x'.repeat(MOST + 1))]],
        [1009, [frame('text', '', { lengthBytes: 8, length: 2n ** 40n })]],
        [1009, [frame('text', 'x'.repeat(MOST), { isLast: false }), frame('continuation', 'x')]],
      ];
      for (const [code, frames] of wrong) {
        const client = await open();
        client.socket.write(Buffer.concat(frames));
        assert.equal(await client.untilClosing(), code);
      }
      assert.deepEqual(said, []);
    });

    test('nobody listens: a message ends it with 1003', async (t) => {
      const { open } = await startEcho(t, kind, { onMessage: undefined });
      const client = await open();
      client.frame('ping', 'a ping is no message');
      await until(() => framesIn(client.received).length === 1, 'a pong');
      client.frame('text', 'hello?');
      assert.equal(await client.untilClosing(), 1003);
    });

    test('a close is answered with its code, and nothing after it is heard', async (t) => {
      const { open, closes, said } = await startEcho(t, kind);
      const codes = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
      for (const code of codes) {
        const client = await open();
        client.socket.write(
          Buffer.concat([frame('close', closing(code, 'bye')), frame('ping', ''), frame('text', 'late')]),
        );
        assert.equal(await client.untilClosing(), code);
        assert.deepEqual(
          framesIn(client.received).map(({ opcode }) => opcode),
          [close],
          'nothing follows a close',
        );
      }
      const client = await open();
      client.frame('close');
      const code = await client.untilClosing();
      assert.ok(code === 1005 || code === 1000, `${code}`);
      await until(() => closes.length === codes.length + 1, 'all ends');
      assert.ok(
        closes.every(({ reason }) => reason === 'client-gone'),
        JSON.stringify(closes),
      );
      assert.deepEqual(said, []);
    });

    test('a client that leaves without a word is gone', async (t) => {
      const { open, closes } = await startEcho(t, kind);
      for (const leave of ['end', 'destroy', 'resetAndDestroy']) {
        const client = await open();
        client.frame('text', 'half a mess', { isLast: false });
        /** @type {Record<string, any>} */ (client.socket)[leave]();
      }
      await until(() => closes.length === 3, 'all have gone');
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        Array(3).fill('client-gone'),
      );
    });

    test('messages are heard in order, from many clients at once', async (t) => {
      const { open } = await startEcho(t, kind);
      const clients = await Promise.all(Array.from({ length: 20 }, () => open()));
      const all = Array.from({ length: 200 }, (_, i) => `${i}`);
      for (const client of clients) client.socket.write(Buffer.concat(all.map((one) => frame('text', one))));
      for (const client of clients) assert.deepEqual(await client.untilMessages(all.length), all);
    });
  });
}
