/*
 * Streams of lines of JSON, polls and WebSockets, of both dialers, against a Hold and against servers that are wrong on purpose.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { noCauses } from '../fleet/drone/causes.js';
import { requestOf } from '../fleet/drone/formats/request.js';
import { changedParams, defaultParams } from '../fleet/drone/params.js';
import { dataOf } from '../fleet/drone/topics/publication.js';
import { subscriptionOf } from '../fleet/drone/topics/subscription.js';
import { Hold } from '../index.js';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { testEach } from './helpers/dialers.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('../fleet/drone/causes.js').Cause} Cause */
/** @typedef {import('../fleet/drone/params.js').Format} Format */
/** @typedef {import('./helpers/dialers.js').Dial} Dial */

const PING_MS = 50;
/** @type {Format[]} */
const ALL = ['ndjson', 'poll', 'websocket'];
/** @type {Record<string, string | undefined>} */
const WELCOMES = { ndjson: '{"data":"Welcome!"}\n', websocket: 'Welcome!' };

/** @param {Format} format @param {Record<string, string>} [params] */
function paramsOf(format, params = {}) {
  return changedParams(defaultParams(), Object.entries({ format, ...params }));
}

/** @param {Format} format @returns {Partial<import('../fleet/drone/dial.js').Target>} */
function targetOf(format) {
  const request = /** @type {string} */ (requestOf(paramsOf(format)));
  return { format, request, pingIntervalMs: PING_MS, allowsMessages: true };
}

/**
 * A Hold that holds everything in this format, and a dialer of it.
 * @param {import('node:test').TestContext} t @param {Dial} dial @param {Format} format
 * @param {{ decision?: Record<string, unknown>, options?: Record<string, unknown>, target?: Partial<import('../fleet/drone/dial.js').Target>,
 *   tls?: import('../index.js').TlsOptions }} [how]
 */
async function start(t, dial, format, { decision = {}, options = {}, target = {}, tls } = {}) {
  const held = { hold: format, channels: ['all'], welcome: WELCOMES[format], ...decision };
  const decide = () => /** @type {any} */ (held);
  const hold = new Hold({ pingIntervalMs: PING_MS, policy: { decide }, ...options });
  t.after(() => hold.close(0));
  const port = await hold.listen(0, '127.0.0.1', { tls });
  const dialled = await dial([port], { ...targetOf(format), ...target });
  return { hold, dialled, port };
}

/** @param {Partial<Record<Cause, number>>} some */
const causes = (some) => ({ ...noCauses(), ...some });

/** A message as publishers of the fleet send it to a channel. */
const now = () => `@${Math.round((performance.timeOrigin + performance.now()) * 1000)} holdfast`;

describe('of a Hold', NEEDS_TLS, () => {
  for (const format of ALL) {
    testEach(`${format}: streams are opened, pinged, get messages and are closed`, async (t, dial) => {
      const { hold, dialled } = await start(t, dial, format);
      await dialled.open(5);
      await until(() => hold.counters().streams === 5, 'the Hold has them');
      for (let i = 1; i <= 3; i++) {
        await hold.publish('all', now());
        await dialled.until(({ messages }) => messages === 5 * i, 'messages');
        await until(() => hold.counters().streams === 5, 'polls have come back');
      }
      assert.equal(dialled.histograms.delivery.count, 15);
      if (format === 'poll') assert.equal(dialled.counters.pings, 0);
      else await dialled.until(({ pings }) => pings >= 30, 'pings');
      assert.equal(dialled.histograms.lateness.count > 0, format !== 'poll');
      dialled.dialer.close(5);
      await dialled.until(({ closed }) => closed === 5, 'closed');
      await until(() => hold.counters().streams === 0, 'the Hold has none');
      const { opened, failed, lost } = dialled.counters;
      assert.deepEqual([opened, failed, lost, dialled.samples], [5, noCauses(), noCauses(), []]);
    });

    testEach(`${format}: the same with TLS`, async (t, dial) => {
      const tls = makeCertificate(t).read();
      const security = { roots: tls.cert, resumes: true };
      const { hold, dialled } = await start(t, dial, format, { tls, target: { security } });
      await dialled.open(3);
      await until(() => hold.counters().streams === 3, 'the Hold has them');
      for (let i = 1; i <= 2; i++) {
        await hold.publish('all', 'x'.repeat(20_000));
        await dialled.until(({ messages }) => messages === 3 * i, 'messages');
        await until(() => hold.counters().streams === 3, 'polls have come back');
      }
      if (format !== 'poll')
        await dialled.until(({ pings }) => pings >= 30, 'pings, some of which are answered');
      const { handshakes, failed, lost } = dialled.counters;
      assert.deepEqual([handshakes, failed, lost], [3, noCauses(), noCauses()]);
    });

    testEach(`${format}: messages that are not expected end the stream`, async (t, dial) => {
      const { hold, dialled } = await start(t, dial, format, { target: { allowsMessages: false } });
      await dialled.open(1);
      await until(() => hold.counters().streams === 1, 'the Hold has it');
      await hold.publish('all', 'new');
      await dialled.until(({ lost }) => lost.unexpected === 1, 'the loss');
    });
  }

  testEach('websocket: pings are answered, so that nobody is taken for dead', async (t, dial) => {
    const { dialled } = await start(t, dial, 'websocket');
    await dialled.open(2);
    // The eighth heartbeat ends those that have not answered the fourth.
    await dialled.until(({ pings }) => pings >= 40, 'pings');
    assert.deepEqual([dialled.counters.open, dialled.counters.lost], [2, noCauses()]);
  });

  testEach('websocket: a drain is a loss with its code', async (t, dial) => {
    const { hold, dialled } = await start(t, dial, 'websocket');
    await dialled.open(2);
    await hold.close(0);
    await dialled.until(({ lost }) => lost['close-1001'] === 2, 'losses');
    assert.deepEqual([dialled.counters.lost, dialled.samples], [causes({ 'close-1001': 2 }), []]);
  });

  testEach('poll: a poll without an answer is repeated on the same connection', async (t, dial) => {
    const { hold, dialled } = await start(t, dial, 'poll', { decision: { waitMs: 100 } });
    await dialled.open(1);
    await until(() => hold.counters().opened >= 4, 'polls');
    await hold.publish('all', 'new');
    await dialled.until(({ messages }) => messages === 1, 'the message');
    const { opened, open, lost } = dialled.counters;
    assert.deepEqual([opened, open, lost], [1, 1, noCauses()]);
  });

  for (const format of ALL) {
    testEach(`${format}: a refusal has its cause`, async (t, dial) => {
      const decide = () => ({ refuse: /** @type {const} */ (503) });
      const { dialled } = await start(t, dial, format, { options: { policy: { decide } } });
      dialled.dialer.open(1);
      const isRefused = (/** @type {import('../fleet/drone/dial.js').Counters} */ { failed, lost }) =>
        (format === 'poll' ? lost : failed).unavailable === 1;
      await dialled.until(isRefused, 'the refusal');
    });
  }
});

for (const transport of TRANSPORTS) {
  for (const format of ALL) {
    testEach(`${format}: the server with the ${transport} transport is dialled`, async (t, dial) => {
      const server = await startServer(t, [
        '--workers',
        '1',
        '--transport',
        transport,
        '--ping-interval',
        '50',
      ]);
      const request = requestOf(paramsOf(format, { channel: 'news' })) ?? '';
      const dialled = await dial([server.port], { ...targetOf(format), request });
      await dialled.open(4);
      await server.untilTotals(({ streams }) => streams === 4, 'the server has them');
      if (format !== 'poll') await dialled.until(({ pings }) => pings >= 24, 'pings');
      const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
      assert.ok((await fetch(url, { method: 'POST', body: now() })).ok);
      await dialled.until(({ messages }) => messages === 4, 'messages');
      await server.untilTotals(({ streams }) => streams === 4, 'polls have come back');
      const { opened, failed, lost } = dialled.counters;
      assert.deepEqual([opened, dialled.histograms.delivery.count], [4, 4]);
      assert.deepEqual([failed, lost, dialled.samples], [noCauses(), noCauses(), []]);
    });
  }
}

/**
 * A server that does what the test says with each request.
 * @param {import('node:test').TestContext} t @param {(socket: import('node:net').Socket, request: string) => void} act
 */
async function startBad(t, act) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.on('data', (data) => act(socket, data.toString('latin1')));
    socket.on('error', () => {}); // a client may reset it
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

/** @param {string} request */
function acceptFor(request) {
  const [, key] = /^Sec-WebSocket-Key: (\S+)\r$/m.exec(request) ?? [];
  assert.equal(Buffer.from(key, 'base64').length, 16);
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** @param {string} accept */
const switching = (accept) =>
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;

/** What follows a correct handshake, and what becomes of the stream. @type {[what: string, frames: string, cause: Cause, sample: string][]} */
const WRONG_FRAMES = [
  ['a masked frame', '\x81\x81\x00\x00\x00\x00a', 'unexpected', '\x81\x81\x00\x00\x00\x00a'],
  ['a binary frame', '\x82\x01a', 'unexpected', '\x82\x01a'],
  ['a compressed frame', '\xc1\x01a', 'unexpected', '\xc1\x01a'],
  ['a divided ping', '\x09\x00', 'unexpected', '\x09\x00'],
  ['a close without a code', '\x88\x00', 'closed', ''],
  ['code 1000', '\x88\x02\x03\xe8', 'closed', ''],
  ['code 1008', '\x88\x06\x03\xf0slow', 'close-1008', ''],
  ['code 1012', '\x88\x02\x03\xf4', 'close-1012', ''],
  ['code 1013', '\x88\x02\x03\xf5', 'close-1013', ''],
  ['code 1011', '\x88\x07\x03\xf3error', 'close-other', 'error'],
];

for (const [what, frames, cause, sample] of WRONG_FRAMES) {
  testEach(`websocket: ${what} ends it with the cause ${cause}`, async (t, dial) => {
    const port = await startBad(t, (socket, request) =>
      socket.write(Buffer.from(`${switching(acceptFor(request))}${frames}`, 'latin1')),
    );
    const dialled = await dial([port], targetOf('websocket'));
    dialled.dialer.open(1);
    await dialled.until(({ lost }) => lost[cause] === 1, 'the loss');
    assert.deepEqual(dialled.samples, sample ? [{ cause, text: sample }] : []);
  });
}

testEach('websocket: keys differ, and a wrong answer to one fails', async (t, dial) => {
  /** @type {string[]} */
  const accepts = [];
  const port = await startBad(t, (socket, request) => {
    accepts.push(acceptFor(request));
    socket.write(switching(accepts[0]));
  });
  const dialled = await dial([port], targetOf('websocket'));
  await dialled.open(1);
  dialled.dialer.open(1);
  await dialled.until(({ failed }) => failed.unexpected === 1, 'the failure');
  assert.notEqual(accepts[0], accepts[1]);
  assert.deepEqual(dialled.samples, [{ cause: 'unexpected', text: accepts[0] }]);
});

testEach('websocket: frames may be divided anywhere, and messages into frames', async (t, dial) => {
  const frames = Buffer.from('\x8a\x00\x01\x03abc\x89\x00\x80\x02de\x81\x7e\x00\xc8', 'latin1');
  const bytes = Buffer.concat([frames, Buffer.alloc(200, 'x')]);
  let answers = 0;
  const port = await startBad(t, (socket, request) => {
    if (!request.startsWith('GET')) answers += request.length;
    else {
      socket.write(switching(acceptFor(request)));
      [...bytes].reduce((before, byte) => before.then(() => written(socket, byte)), Promise.resolve());
    }
  });
  const dialled = await dial([port], targetOf('websocket'));
  await dialled.open(1);
  await dialled.until(({ messages }) => messages === 2, 'messages');
  assert.deepEqual([dialled.counters.pings, dialled.counters.lost], [2, noCauses()]);
  await until(() => answers === 6, 'the ping is answered with an empty masked pong');
});

/** @param {import('node:net').Socket} socket @param {number} byte @returns {Promise<void>} */
function written(socket, byte) {
  return new Promise((resolve) => socket.write(Buffer.of(byte), () => setImmediate(resolve)));
}

/** @type {[what: string, answer: string, cause: Cause][]} */
const WRONG_ANSWERS = [
  ['a body without its length', 'HTTP/1.1 200 OK\r\n\r\n{}', 'unexpected'],
  ['a body that is no JSON', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]', 'unexpected'],
  ['a body without messages', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'unexpected'],
  ['an answer that ends the connection', 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n', 'closed'],
  ['status 403', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n', 'forbidden'],
  ['something other than HTTP', 'SSH-2.0-x\r\n\r\n', 'unexpected'],
];

for (const [what, answer, cause] of WRONG_ANSWERS) {
  testEach(`poll: ${what} ends it with the cause ${cause}`, async (t, dial) => {
    const port = await startBad(t, (socket) => socket.write(answer));
    const dialled = await dial([port], targetOf('poll'));
    dialled.dialer.open(1);
    await dialled.until(({ lost }) => lost[cause] === 1, 'the loss');
  });
}

const LINES = 'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n';

testEach('ndjson: a line that is no message ends it', async (t, dial) => {
  const port = await startBad(t, (socket) => socket.write(`${LINES}\n{"data":"a"}\nhello\n`));
  const dialled = await dial([port], targetOf('ndjson'));
  dialled.dialer.open(1);
  await dialled.until(({ lost }) => lost.unexpected === 1, 'the loss');
  assert.deepEqual([dialled.counters.pings, dialled.counters.messages], [1, 1]);
  assert.deepEqual(dialled.samples, [{ cause: 'unexpected', text: 'hello' }]);
});

/** @param {number} number @param {string} [topic] */
function publication(number, topic = 'a"ü') {
  const data = dataOf({ publisher: 1, number, clock: 'monotonic', topic: 'ü' }, 0);
  return JSON.stringify({ id: `#${number}`, topic, data });
}

/** A hub that has numbers 1, 2, 3 and 5 for who comes without a cursor, and 6 for who comes back. Polls ask for the cursor first. @type {Record<string, (cursor: string, request: string) => string>} */
const HUBS = {
  ndjson: (cursor) => {
    const position = cursor ? `Last-Event-ID: ${cursor}\r\n` : '';
    const all = cursor ? [publication(6)] : [1, 2, 3, 5].map((n) => publication(n));
    const text = `${LINES.slice(0, -2)}${position}\r\n${all.map((line) => `${line}\n`).join('')}`;
    return Buffer.from(text).toString('latin1');
  },
  websocket: (cursor, request) => {
    const first = cursor ? [publication(6)] : ['{"cursor":"#0"}', ...[1, 2, 3, 5].map((n) => publication(n))];
    const frames = first.map((text) => {
      const bytes = Buffer.from(text);
      return Buffer.concat([Buffer.of(0x81, 126, bytes.length >> 8, bytes.length & 255), bytes]);
    });
    return switching(acceptFor(request)) + Buffer.concat(frames).toString('latin1');
  },
  poll: (cursor) => {
    if (cursor === '') return 'HTTP/1.1 204 No Content\r\nLast-Event-ID: #0\r\n\r\n';
    if (cursor === '#6') return '';
    const all = cursor === '#5' ? [publication(6)] : [1, 2, 3, 5].map((n) => publication(n));
    const body = Buffer.from(`{"messages":[${all}],"cursor":"${cursor === '#5' ? '#6' : '#5'}"}\n`);
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body.toString('latin1')}`;
  },
};

for (const format of ALL) {
  testEach(
    `${format}: publications of a hub are checked, and a stream comes back with its cursor`,
    async (t, dial) => {
      /** @type {string[]} */
      const cursors = [];
      const port = await startBad(t, (socket, request) => {
        if (!request.startsWith('GET')) return;
        const [, cursor = ''] = /^Last-Event-ID: (.*)\r$/m.exec(request) ?? [];
        cursors.push(cursor);
        socket.write(Buffer.from(HUBS[format](cursor, request), 'latin1'));
      });
      const subscription = subscriptionOf(paramsOf(format, { topic: 'ü' }));
      const dialled = await dial([port], { ...targetOf(format), subscription });
      await dialled.open(1);
      await dialled.until(({ delivered }) => delivered >= 4, 'publications');
      if (format !== 'poll') dialled.dialer.churn(1);
      await dialled.until(({ delivered }) => delivered === 5, 'the last one');
      const { missed, duplicated, outOfOrder, strayed, resumed, lost } = dialled.counters;
      assert.deepEqual([missed, duplicated, outOfOrder, strayed, lost], [1, 0, 0, 0, noCauses()]);
      assert.equal(resumed, format === 'poll' ? 0 : 1);
      if (format === 'poll') await until(() => cursors.length === 4, 'the last poll');
      assert.deepEqual(cursors, format === 'poll' ? ['', '#0', '#5', '#6'] : ['', '#5']);
    },
  );
}

testEach('poll: a hub that does not say where a stream is ends it', async (t, dial) => {
  const port = await startBad(t, (socket, request) => {
    assert.match(request, /^GET \S+\?wait=0&match=a /);
    socket.write('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const subscription = subscriptionOf(paramsOf('poll', { topic: 'a' }));
  const dialled = await dial([port], { ...targetOf('poll'), subscription });
  dialled.dialer.open(1);
  await dialled.until(({ lost }) => lost.unexpected === 1, 'the loss');
});

/** What a hub says to who comes back after it has forgotten something. @type {Record<string, (request: string) => string>} */
const FORGETFUL = {
  ndjson: () => `${LINES.slice(0, -2)}Last-Event-ID: #9\r\nMercure-Last-Event-ID: earliest\r\n\r\n`,
  websocket: (request) => `${switching(acceptFor(request))}\x81\x1e{"cursor":"#9","missing":true}`,
  poll: () => 'HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n{"messages":[],"cursor":"#9","missing":true}\n',
};

for (const format of ALL) {
  testEach(`${format}: a hub may say that something is missing`, async (t, dial) => {
    /** @type {string[]} */
    const cursors = [];
    const port = await startBad(t, (socket, request) => {
      if (!request.startsWith('GET')) return;
      const [, cursor = ''] = /^Last-Event-ID: (.*)\r$/m.exec(request) ?? [];
      cursors.push(cursor);
      if (cursors.length === 1) socket.write(Buffer.from(FORGETFUL[format](request), 'latin1'));
    });
    const subscription = subscriptionOf(paramsOf(format, { topic: 'a' }));
    const dialled = await dial([port], { ...targetOf(format), subscription });
    await dialled.open(1);
    await dialled.until(({ gaps }) => gaps === 1, 'the gap');
    if (format !== 'poll') dialled.dialer.churn(1);
    await until(() => cursors.length === 2, 'it comes again');
    assert.deepEqual([cursors, dialled.counters.lost], [['', '#9'], noCauses()]);
  });
}

test('requests ask for the format, with the topics, the token and the cursor', () => {
  assert.equal(
    requestOf(paramsOf('poll', { channel: 'a', wait: '5' })),
    'GET /?channel=a&wait=5 HTTP/1.1\r\nHost: 127.0.0.1:8888\r\nAccept: application/json\r\n\r\n',
  );
  assert.match(requestOf(paramsOf('ndjson')) ?? '', /Accept: application\/x-ndjson\r\n/);
  assert.match(
    requestOf(paramsOf('websocket')) ?? '',
    /Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n$/,
  );
  assert.equal(requestOf(paramsOf('events')), null);
  const texts = subscriptionOf(paramsOf('poll', { topic: 'a' }))?.request.map(
    ({ kind, text }) => text || kind,
  );
  assert.match(
    texts?.join('') ?? '',
    /^GET \/\.well-known\/mercure\?wait=wait&match=a HTTP.*\r\ncursor\r\n$/s,
  );
});

test('the former name of the format still works', () => {
  assert.equal(changedParams(defaultParams(), [['accept', 'events']]).format, 'events');
});
