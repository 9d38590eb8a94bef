/*
 * Both dialers against real servers and against misbehaving ones. The same is expected of both.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { CAUSES, noCauses, sumOf } from '../fleet/drone/causes.js';
import { COUNTS, HISTOGRAMS } from '../fleet/drone/counters.js';
import { countersOf } from '../fleet/drone/dial.native.js';
import { descriptorLimit, OWN_DESCRIPTORS } from '../lib/descriptors.js';
import { native } from '../native/index.js';
import { DIALERS, serverAt, testEach } from './helpers/dialers.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('../fleet/drone/causes.js').Cause} Cause */

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
const OPENING = `${HEAD}8\r\nWelcome!\r\n`;
const PING = '4\r\nping\r\n';

/**
 * A server that does what the test says with each connection.
 * @param {import('node:test').TestContext} t
 * @param {(socket: import('node:net').Socket) => void} act when its request has arrived
 */
async function startBad(t, act) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.once('data', () => act(socket));
    socket.on('error', () => {}); // a client may reset it
    socket.on('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { server, port, sockets };
}

/** @param {Partial<Record<Cause, number>>} some */
function causes(some) {
  return { ...noCauses(), ...some };
}

for (const transport of TRANSPORTS) {
  testEach(`streams of the ${transport} transport are opened, pinged and closed`, async (t, dial) => {
    const server = await startServer(t, [
      '--workers',
      '1',
      '--transport',
      transport,
      '--ping-interval',
      '50',
    ]);
    const dialled = await dial([server.port], { pingIntervalMs: 50 });
    await dialled.open(20);
    await server.untilTotals(({ streams }) => streams === 20, 'the server has them');
    await dialled.until(({ pings }) => pings >= 60, 'pings');
    assert.ok(dialled.histograms.lateness.count >= 40);
    assert.deepEqual([dialled.histograms.connect.count, dialled.histograms.firstByte.count], [20, 20]);
    dialled.dialer.close(15);
    assert.equal(dialled.take().open, 5);
    await dialled.until(({ closed }) => closed === 15, 'closed');
    await server.untilTotals(({ streams }) => streams === 5, 'the server has the rest');
    const { opened, inFlight, failed, lost } = dialled.counters;
    assert.deepEqual([opened, inFlight, failed, lost], [20, 0, noCauses(), noCauses()]);
    assert.deepEqual(dialled.samples, []);
  });

  testEach(`streams of events of the ${transport} transport are read`, async (t, dial) => {
    const server = await startServer(t, [
      '--workers',
      '1',
      '--transport',
      transport,
      '--ping-interval',
      '50',
    ]);
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n';
    const dialled = await dial([server.port], { request });
    await dialled.open(3);
    await dialled.until(({ pings }) => pings >= 9, 'pings');
    assert.deepEqual([sumOf(dialled.counters.failed), sumOf(dialled.counters.lost)], [0, 0]);
    assert.equal(dialled.histograms.lateness.count, 0, 'the interval is unknown');
  });

  for (const accept of ['text/plain', 'text/event-stream']) {
    testEach(
      `messages of the ${transport} transport (${accept}) with their send time are measured`,
      async (t, dial) => {
        const server = await startServer(t, ['--workers', '1', '--transport', transport]);
        const request = `GET /?channel=news HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\n\r\n`;
        const dialled = await dial([server.port], { request, allowsMessages: true });
        await dialled.open(10);
        const publish = async (/** @type {string} */ body) => {
          const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
          assert.ok((await fetch(url, { method: 'POST', body })).ok);
        };
        await publish(`@${(Date.now() - 5000) * 1000} five seconds ago`);
        await publish('at some time');
        await dialled.until(({ messages }) => messages === 20, 'messages');
        const { count, min, max } = dialled.histograms.delivery;
        assert.equal(count, 10);
        assert.ok(min >= 5_000_000 && max < 65_000_000, `${min} ${max}`);
      },
    );
  }

  testEach(`streams of the ${transport} transport that the server ends are lost`, async (t, dial) => {
    const server = await startServer(t, ['--workers', '1', '--transport', transport, '--drain', '0']);
    const dialled = await dial([server.port]);
    await dialled.open(5);
    await server.stop();
    await dialled.until(({ lost }) => lost.closed === 5, 'losses');
    dialled.dialer.open(2);
    await dialled.until(({ failed }) => failed.refused === 2, 'refusals');
    assert.deepEqual([dialled.counters.open, dialled.counters.inFlight], [0, 0]);
  });

  testEach(`a message of the ${transport} transport without a channel is unexpected`, async (t, dial) => {
    const server = await startServer(t, ['--workers', '1', '--transport', transport]);
    const dialled = await dial([server.port], {
      request: 'GET /?channel=a HTTP/1.1\r\nHost: localhost\r\n\r\n',
    });
    await dialled.open(1);
    const url = `http://127.0.0.1:${server.adminPort}/publish?channel=a`;
    await fetch(url, { method: 'POST', body: 'caf\u00e9' });
    await dialled.until(({ lost }) => lost.unexpected === 1, 'the loss');
    assert.deepEqual(dialled.samples, [{ cause: 'unexpected', text: 'caf\u00c3\u00a9' }]);
  });

  testEach(`a refusal of the ${transport} transport has the cause status`, async (t, dial) => {
    const server = await startServer(t, ['--workers', '1', '--transport', transport]);
    const dialled = await dial([server.port], { request: 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n' });
    dialled.dialer.open(10);
    await dialled.until(({ failed }) => failed.status === 10, 'refusals');
    assert.ok(dialled.samples.length > 0 && dialled.samples.length <= 10);
    for (const { cause, text } of dialled.samples) {
      assert.equal(cause, 'status');
      assert.match(text, /^HTTP\/1\.1 404 Not Found\r\n/);
      assert.ok(text.length <= 80);
    }
  });
}

/** What a server sends, whether it then closes the connection, and the cause. @type {[string, string, boolean, Cause][]} */
const ANSWERS = [
  ['something other than HTTP', 'SSH-2.0-x', false, 'unexpected'],
  ['another status', 'HTTP/1.1 500 No\r\nA: b\r\n\r\n', false, 'status'],
  ['status 401', 'HTTP/1.1 401 No\r\n\r\n', false, 'unauthorized'],
  ['status 403', 'HTTP/1.1 403 No\r\n\r\n', false, 'forbidden'],
  ['status 429', 'HTTP/1.1 429 No\r\n\r\n', false, 'too-many'],
  ['status 503', 'HTTP/1.1 503 No\r\n\r\n', false, 'unavailable'],
  ['a text without chunks', 'HTTP/1.1 200 OK\r\n\r\nWelcome!', false, 'unexpected'],
  ['no welcome', `${HEAD}${PING}`, false, 'unexpected'],
  ['no size of a chunk', `${HEAD}welcome`, false, 'unexpected'],
  ['the last chunk', `${HEAD}0\r\n\r\n`, false, 'closed'],
  ['nothing and closes the connection', '', true, 'closed'],
  ['half a head and closes the connection', 'HTTP/1.1 200 OK\r\nA:', true, 'closed'],
];

for (const [what, bytes, closes, cause] of ANSWERS) {
  testEach(`an opening fails with the cause ${cause} if the server sends ${what}`, async (t, dial) => {
    const { port } = await startBad(t, (socket) => (closes ? socket.end(bytes) : socket.write(bytes)));
    const dialled = await dial([port]);
    dialled.dialer.open(3);
    await dialled.until(({ failed }) => sumOf(failed) === 3, 'failures');
    const { failed, lost, opened, inFlight, open } = dialled.counters;
    assert.deepEqual(failed, causes({ [cause]: 3 }));
    assert.deepEqual([lost, opened, inFlight, open], [noCauses(), 0, 0, 0]);
    assert.equal(dialled.samples.length, cause === 'closed' ? 0 : 3);
  });
}

/** What follows the welcome. @type {[string, string, Cause][]} */
const ENDS = [
  ['the last chunk', '0\r\n\r\n', 'closed'],
  ['another text', '5\r\npings\r\n', 'unexpected'],
  ['a chunk that does not end where it should', '4\r\npingpong', 'unexpected'],
];

for (const [what, bytes, cause] of ENDS) {
  testEach(`a stream is lost with the cause ${cause} if ${what} follows`, async (t, dial) => {
    const { port } = await startBad(t, (socket) => socket.write(`${OPENING}${PING}${bytes}`));
    const dialled = await dial([port]);
    dialled.dialer.open(2);
    await dialled.until(({ lost }) => sumOf(lost) === 2, 'losses');
    const { failed, lost, opened, pings, open } = dialled.counters;
    assert.deepEqual([failed, lost], [noCauses(), causes({ [cause]: 2 })]);
    assert.deepEqual([opened, pings, open], [2, 2, 0]);
  });
}

testEach('a stream that is reset is lost with that cause', async (t, dial) => {
  const { port, sockets } = await startBad(t, (socket) => socket.write(OPENING));
  const dialled = await dial([port]);
  await dialled.open(1);
  for (const socket of sockets) socket.resetAndDestroy();
  await dialled.until(({ lost }) => lost.reset === 1, 'the loss');
});

testEach('an opening that takes too long fails, even if the server keeps sending', async (t, dial) => {
  /** @type {NodeJS.Timeout[]} */
  const timers = [];
  t.after(() => timers.forEach(clearInterval));
  const { port } = await startBad(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nA: ');
    timers.push(setInterval(() => socket.write('x'), 20));
  });
  const dialled = await dial([port], { timeoutMs: 300 });
  dialled.dialer.open(2);
  await dialled.until(({ failed }) => failed.timeout === 2, 'timeouts');
  assert.deepEqual([dialled.counters.inFlight, dialled.counters.opened], [0, 0]);
});

testEach('data that arrives in pieces is put together, wherever it is cut', async (t, dial) => {
  const whole = `${OPENING}${PING}${PING}`;
  let cut = 0;
  /** @type {(() => void)[]} */
  const rest = [];
  const { port } = await startBad(t, (socket) => {
    const at = ++cut;
    socket.write(whole.slice(0, at));
    rest.push(() => socket.write(whole.slice(at)));
  });
  const dialled = await dial([port]);
  const cuts = whole.length - 1;
  dialled.dialer.open(cuts);
  await dialled.until(({ bytes }) => bytes === (cuts * (cuts + 1)) / 2, 'the first parts');
  for (const write of rest) write();
  await dialled.until(({ bytes }) => bytes === cuts * whole.length, 'the rest');
  const { opened, pings, open, failed, lost } = dialled.counters;
  assert.deepEqual([opened, pings, open, failed, lost], [cuts, 2 * cuts, cuts, noCauses(), noCauses()]);
});

testEach('a missing ping is overdue, and late when it comes', async (t, dial) => {
  const { port, sockets } = await startBad(t, (socket) => socket.write(OPENING + PING));
  const dialled = await dial([port], { pingIntervalMs: 40 });
  await dialled.open(3);
  await dialled.until(({ pings, overdue }) => pings === 3 && overdue === 3, 'overdue streams');
  assert.equal(dialled.histograms.lateness.count, 0);
  for (const socket of sockets) socket.write(PING);
  await dialled.until(({ pings }) => pings === 6, 'late pings');
  const { lateness } = dialled.histograms;
  assert.ok(lateness.max > 40_000, `${lateness.max}`);
  assert.ok(lateness.count >= 6, 'each counts for the missed ones too');
});

testEach('with idle pings, a message takes the place of the next ping', async (t, dial) => {
  const { port, sockets } = await startBad(t, (socket) => socket.write(OPENING + PING));
  const target = { pingIntervalMs: 200, idlePings: true, allowsMessages: true };
  const dialled = await dial([port], target);
  const begunMs = performance.now();
  await dialled.open(1);
  await dialled.until(({ pings }) => pings === 1, 'the first ping');
  for (let i = 1; i <= 5; i++) {
    for (const socket of sockets) socket.write('1\r\nx\r\n');
    await dialled.until(({ messages }) => messages === i, 'a message');
  }
  await dialled.until(({ overdue }) => overdue === 1, 'an overdue ping');
  // The five messages stand for one ping; the one after that is overdue when it is an interval late: 600 ms after the first.
  const afterMs = performance.now() - begunMs;
  assert.ok(afterMs > 550, `${afterMs} ms`);
});

testEach('with idle pings, a message in place of an overdue ping is late', async (t, dial) => {
  const { port, sockets } = await startBad(t, (socket) => socket.write(OPENING + PING));
  const dialled = await dial([port], { pingIntervalMs: 40, idlePings: true, allowsMessages: true });
  await dialled.open(1);
  await dialled.until(({ overdue }) => overdue === 1, 'an overdue ping');
  assert.equal(dialled.histograms.lateness.count, 0);
  for (const socket of sockets) socket.write('1\r\nx\r\n');
  await dialled.until(({ messages }) => messages === 1, 'a message');
  assert.ok(dialled.histograms.lateness.max > 40_000, `${dialled.histograms.lateness.max}`);
});

testEach('the lateness of a stream closed with an overdue ping is recorded', async (t, dial) => {
  const { port } = await startBad(t, (socket) => socket.write(OPENING + PING));
  const dialled = await dial([port], { pingIntervalMs: 20 });
  await dialled.open(1);
  await dialled.until(({ overdue }) => overdue === 1, 'an overdue stream');
  dialled.dialer.close(1);
  await dialled.until(({ closed, overdue }) => closed === 1 && overdue === 0, 'the end');
  assert.equal(dialled.histograms.lateness.count, 1);
  assert.ok(dialled.histograms.lateness.max > 20_000);
});

testEach('if anything is expected, a 200 is a stream and every read a ping', async (t, dial) => {
  const { port, sockets } = await startBad(t, (socket) => socket.write('HTTP/1.0 200 OK\r\n\r\n'));
  const dialled = await dial([port], { isStrict: false });
  await dialled.open(1);
  for (const socket of sockets) socket.write('anything');
  await dialled.until(({ pings }) => pings === 1, 'a read');
  for (const socket of sockets) socket.end();
  await dialled.until(({ lost }) => lost.closed === 1, 'the end');
});

testEach('each pair of a source and a port is dialled equally often', async (t, dial) => {
  /** @type {string[]} */
  const pairs = [];
  const act = (/** @type {import('node:net').Socket} */ socket) => {
    pairs.push(`${socket.remoteAddress} ${socket.localPort}`);
    socket.write(OPENING);
  };
  const ports = [(await startBad(t, act)).port, (await startBad(t, act)).port];
  const dialled = await dial(ports, { sources: ['127.0.0.2', '127.0.0.3'] });
  await dialled.open(8);
  const expected = ports.flatMap((port) => [`127.0.0.2 ${port}`, `127.0.0.3 ${port}`]);
  assert.deepEqual(pairs.sort(), [...expected, ...expected].sort());
});

testEach('a source that is not an address of this machine fails with the cause no-port', async (t, dial) => {
  const { port } = await startBad(t, () => {});
  const dialled = await dial([port], { sources: ['192.0.2.1'] });
  dialled.dialer.open(2);
  await dialled.until(({ failed }) => failed['no-port'] === 2, 'failures');
});

testEach('a new target applies to streams opened from then on', async (t, dial) => {
  const first = await startBad(t, (socket) => socket.write(OPENING));
  const second = await startBad(t, (socket) => socket.write(`${OPENING}3\r\nnew\r\n`));
  const dialled = await dial([first.port]);
  await dialled.open(1);
  dialled.aim([second.port], { allowsMessages: true });
  dialled.dialer.open(1);
  await dialled.until(({ messages }) => messages === 1, 'a message');
  for (const socket of first.sockets) socket.write('3\r\nnew\r\n');
  await dialled.until(({ lost }) => lost.unexpected === 1, 'the loss');
  assert.equal(dialled.counters.open, 1);
});

testEach(
  'streams are spread over several servers, and those that come back take the next one',
  async (t, dial) => {
    /** @type {import('node:net').Socket[][]} */
    const sockets = [[], [], []];
    const all = await Promise.all(
      sockets.map((mine) =>
        startBad(t, (socket) => {
          mine.push(socket);
          socket.write(OPENING);
        }),
      ),
    );
    const servers = all.map(({ port }) => serverAt([port]));
    const names = servers.map(({ name }) => name);
    const dialled = await dial([], { servers });
    await dialled.open(12);
    const atEach = (/** @type {Partial<import('../fleet/drone/dial.js').ServerCounts>} */ counts) =>
      names.map((name) => ({ name, open: 4, opened: 4, failed: 0, lost: 0, ...counts }));
    assert.deepEqual(dialled.take().servers, atEach({}));
    // The streams of the first server move on to the second.
    for (const socket of sockets[0].splice(0)) socket.end();
    await dialled.until(({ lost }) => lost.closed === 4, 'losses');
    dialled.dialer.open(4);
    await dialled.until(({ open }) => open === 12, 'all are back');
    const [first, second, third] = atEach({});
    const moved = [{ ...first, open: 0, lost: 4 }, { ...second, open: 8, opened: 8 }, third];
    assert.deepEqual([dialled.take().servers, dialled.counters.moved], [moved, 4]);
    // Those of the second skip the third one, which is left out, and the first one, which is not there.
    dialled.aim([], {
      servers: servers.map((server, i) => (i === 2 ? { ...server, addresses: [] } : server)),
    });
    all[0].server.close();
    for (const socket of sockets[1].splice(0)) socket.end();
    await dialled.until(({ lost }) => lost.closed === 12, 'losses');
    for (let missing = 8; missing > 0; missing = 12 - dialled.counters.open) {
      dialled.dialer.open(missing);
      await dialled.until(({ inFlight }) => inFlight === 0, 'answers');
    }
    assert.deepEqual(dialled.take().servers, [
      { ...first, open: 0, lost: 4, failed: 8 },
      { ...second, open: 8, opened: 16, lost: 8 },
      third,
    ]);
    assert.equal(dialled.counters.moved, 4, 'they are where they were');
  },
);

testEach('a stream that is closed on purpose comes back to the next server', async (t, dial) => {
  const all = await Promise.all([0, 1].map(() => startBad(t, (socket) => socket.write(OPENING))));
  const dialled = await dial([], { servers: all.map(({ port }) => serverAt([port])) });
  await dialled.open(6);
  dialled.dialer.churn(6);
  await dialled.until(({ churned, open }) => churned === 6 && open === 6, 'all are back');
  const { moved, servers } = dialled.take();
  const sum = (/** @type {'open' | 'opened'} */ name) => servers.reduce((total, one) => total + one[name], 0);
  assert.deepEqual([moved, sum('open'), sum('opened')], [6, 6, 12]);
});

testEach('a stopped dialer has closed everything and opens no more', async (t, dial) => {
  let asked = 0;
  const { port, sockets } = await startBad(t, (socket) => {
    if (asked++ < 2) socket.write(OPENING);
  });
  const dialled = await dial([port]);
  dialled.dialer.open(3);
  await dialled.until(({ open }) => open === 2, 'open streams');
  await dialled.dialer.stop();
  dialled.dialer.open(1);
  const { open, inFlight, closed, failed, lost } = dialled.take();
  assert.deepEqual([open, inFlight, closed, failed, lost], [0, 0, 2, noCauses(), noCauses()]);
  await until(() => sockets.size === 0, 'the end of all connections');
});

testEach('counts what is in flight at once, and has every cause', async (t, dial) => {
  const { port } = await startBad(t, () => {});
  const dialled = await dial([port]);
  dialled.dialer.open(4);
  const { inFlight, open, failed, lost } = dialled.take();
  assert.deepEqual([inFlight, open], [4, 0]);
  assert.deepEqual([Object.keys(failed), Object.keys(lost)], [CAUSES, CAUSES]);
  assert.ok(dialled.dialer.most > 100);
});

test('without descriptor tables of their own there is only one thread', {
  skip: !native && 'the native core is not available',
}, async (t) => {
  const before = process.env.HOLDFAST_UNSHARE;
  process.env.HOLDFAST_UNSHARE = 'off';
  t.after(() => {
    if (before === undefined) delete process.env.HOLDFAST_UNSHARE;
    else process.env.HOLDFAST_UNSHARE = before;
  });
  const dialer = await DIALERS.native();
  assert.equal(dialer.most, descriptorLimit() - OWN_DESCRIPTORS);
  await dialer.stop();
});

test('what the native core counts gets the names of the tables', () => {
  const histograms = HISTOGRAMS.map((_, i) => ({ count: 1, sum: i, min: i, max: i, buckets: [i, 1] }));
  const counters = countersOf(
    {
      counts: Float64Array.from(COUNTS, (_, i) => 10 + i),
      failed: Float64Array.from(CAUSES, (_, i) => i),
      lost: new Float64Array(CAUSES.length),
      samples: [{ cause: CAUSES.indexOf('status'), text: 'HTTP/1.1 404' }],
      servers: [{ open: 1, opened: 2, failed: 3, lost: 4 }],
      histograms,
    },
    [{ name: 'a:1' }],
  );
  assert.deepEqual(counters.servers, [{ name: 'a:1', open: 1, opened: 2, failed: 3, lost: 4 }]);
  const bytes = 10 + COUNTS.findIndex(({ name }) => name === 'bytes');
  assert.deepEqual([counters.inFlight, counters.open, counters.bytes], [10, 11, bytes]);
  const delivery = HISTOGRAMS.findIndex(({ name }) => name === 'delivery');
  assert.deepEqual(counters.delivery, { unit: 'µs', ...histograms[delivery] });
  assert.deepEqual([counters.failed.refused, counters.failed.other], [0, CAUSES.length - 1]);
  assert.deepEqual(
    [sumOf(counters.lost), counters.samples],
    [0, [{ cause: 'status', text: 'HTTP/1.1 404' }]],
  );
});

testEach('a dialer counts exactly the rows of the tables', async (_, dial) => {
  const { samples, servers, failed, lost, ...named } = (await dial([1])).take();
  assert.deepEqual(Object.keys(named).sort(), [...COUNTS, ...HISTOGRAMS].map(({ name }) => name).sort());
  for (const { name, unit } of HISTOGRAMS) assert.equal(named[name].unit, unit);
  assert.deepEqual([samples, servers, failed, lost], [[], [], noCauses(), noCauses()]);
});
