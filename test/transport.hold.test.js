/*
 * `Hold` in an application: what its methods do, and how it ends. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { bodyOf, get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, listening, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

for (const kind of KINDS) {
  describe(`a Hold (${kind})`, () => {
    test('says whether it is native', (t) => {
      const { hold } = startHold(t, kind);
      assert.equal(hold.isNative, kind === 'native');
    });

    test('publishes only to the streams that listen to the channel', async (t) => {
      const { hold, open } = await startListening(t, kind, { shards: 2 });
      const [a, b, both] = [await open('/a'), await open('/b'), await open('/a,b')];
      const old = await open('/b,', '1.0');
      const long = 'x'.repeat(40_000);
      hold.publish('a', 'to a');
      hold.publish('b', 'to b');
      hold.publish('c', 'to nobody');
      hold.publish('b', '');
      hold.publish('b', long);
      for (const client of [b, both])
        await until(() => bodyOf(client.received).endsWith(long), 'the long one');
      await old.untilRead(/Welcome!to bx{40000}$/);
      await a.untilRead(/to a/);
      assert.equal(bodyOf(a.received), 'Welcome!to a');
      assert.equal(bodyOf(b.received), `Welcome!to b${long}`);
      assert.equal(bodyOf(both.received), `Welcome!to ato b${long}`);
    });

    test('sends to, subscribes, unsubscribes and ends one stream by its id', async (t) => {
      const { hold, closes, idOf, open } = await startListening(t, kind);
      const [one, other] = [await open('/one'), await open('/other')];
      const id = idOf('/one');
      hold.send(id, '1');
      hold.publish('late', 'too early');
      hold.subscribe(id, 'late');
      hold.subscribe(id, 'late');
      hold.publish('late', '2');
      hold.unsubscribe(id, 'late');
      hold.unsubscribe(id, 'never');
      hold.publish('late', 'too late');
      hold.publish('one', '3');
      hold.end(id);
      hold.send(id, 'after the end');
      await one.untilClosed();
      assert.equal(bodyOf(one.received), 'Welcome!123');
      assert.ok(one.received.endsWith('\r\n0\r\n\r\n'));
      await until(() => closes.length === 1, 'onClose');
      assert.deepEqual(closes, [{ id, reason: 'drain' }]);
      hold.send(idOf('/other'), 'last');
      await other.untilRead(/last/);
      assert.equal(bodyOf(other.received), 'Welcome!last');
    });

    test('gives no stream the id 0, natively they begin at 1', async (t) => {
      const { idOf, open } = await startListening(t, kind);
      await open('/first');
      await open('/second');
      assert.ok(idOf('/first') > 0 && idOf('/second') > 0 && idOf('/first') !== idOf('/second'));
      if (kind === 'native') assert.equal(idOf('/first'), 1);
    });

    test('gives its descriptors back when it is closed, and can still be read', async (t) => {
      const descriptors = () => readdirSync('/proc/self/fd').length;
      const { hold: first } = startHold(t, kind); // what is opened once in a process
      await first.listen(0, '127.0.0.1');
      await first.close();
      const before = descriptors();
      for (let i = 1; i <= 10; i++) {
        const { hold, open } = await startListening(t, kind, { shards: 2 });
        const client = await open('/');
        await hold.close();
        await client.untilClosed();
        assert.deepEqual([hold.counters().opened, hold.counters().streams], [1, 0]);
        hold.publish('/', 'to nobody');
      }
      // Not by garbage collection: nothing here takes enough memory for one.
      await until(
        () => descriptors() <= before,
        () => `${descriptors()} descriptors as the ${before} before`,
      );
    });

    test('cuts the oldest connection without a head when there is no room for a new one', async (t) => {
      const { hold, port, open } = await startListening(t, kind, {
        connectionLimit: 3,
        headTimeoutMs: 86_400_000,
      });
      const stream = await open('/a');
      const [older, newer] = [rawClient(port, 'G'), rawClient(port, 'G')];
      t.after(newer.close);
      await until(() => hold.counters().connections === 3, 'all places are taken');
      // Without native, one that comes before the others have had a moment is cut itself.
      await until(async () => {
        const client = rawClient(port, get());
        await until(() => client.closed || /Welcome!/.test(client.received), 'an answer, or a cut');
        client.close();
        return !client.closed;
      }, 'a new stream');
      assert.ok(older.closed && !stream.closed);
      assert.ok(hold.counters().cut >= 1);
    });

    test('cuts connections that were answered before one without a head', async (t) => {
      const { hold, port } = await startListening(t, kind, { connectionLimit: 3, headTimeoutMs: 86_400_000 });
      for (let i = 1; i <= 2; i++) {
        const answered = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        t.after(() => answered.destroy());
        answered.on('error', () => {}).resume();
        answered.write('nonsense\r\n\r\n');
        await until(() => hold.counters().refused[400] === i, 'it was answered');
      }
      const withoutHead = rawClient(port, 'G');
      t.after(withoutHead.close);
      await until(() => hold.counters().connections === 3, 'all places are taken');
      await until(async () => {
        const client = rawClient(port, get());
        await until(() => client.closed || /Welcome!/.test(client.received), 'an answer, or a cut');
        client.close();
        return !client.closed;
      }, 'a new stream');
      withoutHead.send(get().slice(1));
      await withoutHead.untilRead(/Welcome!/);
    });

    test('limits the heads of one address that are incomplete, and cuts the oldest', async (t) => {
      const limits = { maxHeadsPerAddress: 2, proxies: ['127.0.0.2'] };
      const { hold, port, open } = await startListening(t, kind, limits);
      const opened = await Promise.all(['/a', '/b', '/c'].map((target) => open(target)));
      const proxied = Array.from({ length: 5 }, () =>
        connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }),
      );
      for (const socket of proxied) socket.write('G');
      await until(() => hold.counters().connections === 8, 'those of the proxy');
      const heads = [];
      for (let i = 1; i <= 3; i++) {
        heads.push(rawClient(port, 'G'));
        const connections = 8 + Math.min(i, 2);
        await until(
          () => hold.counters().connections + hold.counters().cut === connections + (i > 2 ? 1 : 0),
          'it came',
        );
      }
      await heads[0].untilClosed();
      heads[1].send(get().slice(1));
      heads[2].send(get().slice(1));
      for (const client of heads.slice(1)) await client.untilRead(/Welcome!/);
      for (const socket of proxied) assert.ok(!socket.destroyed && !socket.readableEnded);
      assert.deepEqual([hold.counters().cut, opened.some(({ closed }) => closed)], [1, false]);
      for (const socket of [...proxied, ...heads.map(({ socket }) => socket)]) socket.destroy();
    });

    test('pings every stream in its encoding, with the payload of the options', async (t) => {
      const { hold, ask } = await startListening(t, kind, {
        pingIntervalMs: 20,
        ping: { text: 'still here ', events: ':\n\n' },
        policy: { decide: ({ target }) => ({ hold: target === '/text' ? 'text' : 'events' }) },
      });
      const [text, events] = [ask('/text'), ask('/events')];
      await until(() => /^(still here ){3,}$/.test(bodyOf(text.received)), 'pings of text');
      await until(() => /^(:\n\n){3,}$/.test(bodyOf(events.received)), 'pings of events');
      const { pings, lateness } = hold.counters();
      assert.ok(pings >= 6 && lateness.count >= 6);
    });

    test('with idle pings, a message takes the place of a ping', async (t) => {
      const { hold, open } = await startListening(t, kind, {
        pingIntervalMs: 40,
        idlePings: true,
        ping: { text: '.', events: ':\n\n' },
      });
      const [told, quiet] = [await open('/news'), await open('/other')];
      const pingsOf = (/** @type {{ received: string }} */ { received }) =>
        bodyOf(received).replaceAll(/Welcome!|x/g, '').length;
      const timer = setInterval(() => hold.publish('news', 'x'), 5);
      t.after(() => clearInterval(timer));
      await until(() => pingsOf(quiet) >= 20, 'pings of the stream that gets nothing');
      assert.ok(pingsOf(told) < pingsOf(quiet) / 2, `${pingsOf(told)} of ${pingsOf(quiet)}`);
      clearInterval(timer);
      const before = pingsOf(told);
      await until(() => pingsOf(told) >= before + 3, 'pings once nothing comes any more');
    });

    test('counts from the start, and keeps its histograms until they are reset', async (t) => {
      const { hold, closes, open } = await startListening(t, kind, { pingIntervalMs: 20 });
      const empty = { count: 0, sum: 0, min: 0, max: 0, buckets: [] };
      for (const reset of [false, true])
        assert.deepEqual(hold.counters({ reset }).lateness, { unit: 'µs', ...empty });
      const [a, b] = [await open('/news'), await open('/news')];
      hold.publish('news', 'hello');
      await until(() => hold.counters().lateness.count > 2, 'pings');
      await until(() => hold.counters().deliveries === 2, 'both deliveries');
      const before = hold.counters({ reset: true });
      assert.deepEqual([before.streams, before.opened, before.connections], [2, 2, 2]);
      assert.equal(before.inJs, kind === 'native' ? 0 : 2);
      assert.equal(before.lateness.unit, 'µs');
      assert.ok(before.bytesWritten > 2 * 'Welcome!'.length);
      a.close();
      await until(() => closes.length === 1, 'onClose');
      const after = hold.counters();
      assert.ok(after.pings >= before.pings);
      assert.deepEqual([after.streams, after.opened, after.closed['client-gone']], [1, 2, 1]);
      b.close();
      await until(() => hold.counters().streams === 0, 'no more pings');
      assert.ok(hold.counters({ reset: true }).lateness.count > 0);
      const last = hold.counters();
      assert.deepEqual([last.lateness.count, last.pings >= after.pings], [0, true]);
    });

    test('ignores ids of streams that have ended, and unknown ids', async (t) => {
      const { hold, closes, idOf, open } = await startListening(t, kind);
      const gone = await open('/gone');
      gone.close();
      await until(() => closes.length === 1, 'onClose');
      const here = await open('/here'); // natively most likely in the row of the first
      for (const id of [idOf('/gone'), 12_345, 255 * 2 ** 45 + 12_345, Number.MAX_SAFE_INTEGER]) {
        hold.send(id, 'to whom?');
        hold.subscribe(id, 'here');
        hold.unsubscribe(id, 'here');
        hold.end(id);
      }
      hold.publish('here', 'hello');
      await here.untilRead(/hello/);
      assert.equal(bodyOf(here.received), 'Welcome!hello');
    });

    test('refuses invalid ids, channels, messages, ports and periods, and still works', async (t) => {
      const { hold, open } = await startListening(t, kind);
      const client = await open('/news');
      const any = /** @type {any} */ (hold);
      for (const id of [-1, 1.5, Number.NaN, 2 ** 53, '1', undefined]) {
        assert.throws(() => any.send(id, 'x'), withCode('BAD_ARGUMENT'), String(id));
        assert.throws(() => any.subscribe(id, 'x'), withCode('BAD_ARGUMENT'));
        assert.throws(() => any.unsubscribe(id, 'x'), withCode('BAD_ARGUMENT'));
        assert.throws(() => any.end(id), withCode('BAD_ARGUMENT'));
      }
      assert.throws(() => any.publish(5, 'x'), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.publish('news', { data: 5 }), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.publish('news', { id: 'a\nb', data: '' }), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.send(1, { type: 'a\0', data: '' }), withCode('BAD_ARGUMENT'));
      assert.throws(() => any.subscribe(1), withCode('BAD_ARGUMENT'));
      await assert.rejects(hold.listen(70_000), withCode('BAD_ARGUMENT'));
      for (const host of [null, 5]) await assert.rejects(any.listen(0, host), withCode('BAD_ARGUMENT'));
      for (const options of [null, 5, { rest: true }, { reset: 1 }])
        assert.throws(() => any.counters(options), withCode('BAD_ARGUMENT'));
      assert.throws(() => hold.close(-1), withCode('BAD_ARGUMENT'));
      for (const message of [undefined, null, 42, true, { data: 'a', event: 'b' }]) {
        assert.throws(() => any.publish('news', message), withCode('BAD_ARGUMENT'));
        assert.throws(() => any.send(1, message), withCode('BAD_ARGUMENT'));
      }
      // As UTF-8, all of these would be the same name.
      for (const channel of ['\ud800', 'a\udfff', '\ud801\n']) {
        assert.throws(() => hold.publish(channel, 'x'), withCode('BAD_ARGUMENT'));
        assert.throws(() => hold.subscribe(1, channel), withCode('BAD_ARGUMENT'));
        assert.throws(() => hold.unsubscribe(1, channel), withCode('BAD_ARGUMENT'));
      }
      hold.publish('news', 'a message');
      await client.untilRead(/a message/);
    });

    test('publishes and sends bytes, and what the application does with them later has no effect', async (t) => {
      const { hold, idOf, open } = await startListening(t, kind);
      const client = await open('/news');
      const bytes = Buffer.from('from a ');
      hold.publish('news', bytes);
      hold.send(idOf('/news'), { data: new Uint8Array(Buffer.from('buffer')) });
      bytes.fill('x');
      await until(() => bodyOf(client.received) === 'Welcome!from a buffer', 'both');
    });

    test('over its capacity refuses with 503, and reports over-capacity', async (t) => {
      const { hold, closes, idOf, open, ask } = await startListening(t, kind, { capacity: 1 });
      await open('/first');
      const second = ask('/second');
      await second.untilClosed();
      assert.match(second.received, /^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: \d+\r\n/);
      await until(() => closes.length === 1, 'onClose');
      assert.deepEqual(closes, [{ id: idOf('/second'), reason: 'over-capacity' }]);
      const { refused, closed } = hold.counters();
      assert.deepEqual([refused[503], closed['over-capacity']], [1, 0]);
    });

    test('closes a stream as slow when its backlog exceeds the limit; bytes that the kernel took do not count', async (t) => {
      const { hold, closes, idOf, open } = await startListening(t, kind, { maxBacklogBytes: 1000 });
      const [reader, idle] = [await open('/reader'), await open('/idle')];
      idle.socket.pause();
      // Far more than the limit in one turn, which the kernel takes.
      for (let i = 0; i < 20; i++) hold.publish('reader', 'x'.repeat(1000));
      await until(() => bodyOf(reader.received).length === 'Welcome!'.length + 20_000, 'all of it');
      const id = idOf('/idle');
      await until(() => {
        hold.send(id, 'x'.repeat(1_000_000));
        return closes.length > 0;
      }, 'the idle one is closed');
      assert.deepEqual(closes, [{ id, reason: 'slow' }]);
      assert.equal(hold.counters().streams, 1);
    });

    test('reports the backlog of a client that does not read', async (t) => {
      const { hold, idOf, open } = await startListening(t, kind, { maxBacklogBytes: 100_000_000 });
      const client = await open('/idle');
      client.socket.pause();
      await until(() => {
        hold.send(idOf('/idle'), 'x'.repeat(1_000_000));
        return hold.counters().backlogBytes > 0;
      }, 'a backlog');
      client.socket.resume();
      await until(() => hold.counters().backlogBytes === 0, 'it has left');
      assert.equal(hold.counters().streams, 1);
    });

    test('listens on one port, and names port and address in the error if it can not', async (t) => {
      const { hold } = startHold(t, kind);
      const taken = await listening(t, createServer());
      const inUse = (/** @type {string} */ address, /** @type {number} */ port) => ({
        code: 'EADDRINUSE',
        syscall: 'listen',
        address,
        port,
        message: `can't listen on ${address}:${port}: another program is listening there (EADDRINUSE)`,
      });
      await assert.rejects(hold.listen(taken, '127.0.0.1'), inUse('127.0.0.1', taken));
      const everywhere = `can't listen on port ${taken}: another program is listening there (EADDRINUSE)`;
      await assert.rejects(hold.listen(taken), { code: 'EADDRINUSE', message: everywhere });
      for (const port of [0, taken])
        await assert.rejects(hold.listen(port, '192.0.2.1'), {
          code: 'EADDRNOTAVAIL',
          message: `can't listen on 192.0.2.1:${port}: it is not an address of this machine (EADDRNOTAVAIL)`,
        });
      await assert.rejects(hold.listen(0, 'name.invalid'), {
        message:
          /^can't listen on name\.invalid:0: (no address is known for this name \(ENOTFOUND|.*\(EAI_AGAIN)\)$/,
      });
      const port = await hold.listen(0, 'localhost');
      const { hold: other } = startHold(t, kind);
      await assert.rejects(other.listen(port, 'localhost'), inUse('localhost', port));
      await assert.rejects(hold.listen(0), withCode('LISTENING'));
    });

    test('is closed once, also if close is called again, and does nothing afterwards', async (t) => {
      const { hold, closes, idOf, open, port } = await startListening(t, kind);
      const client = await open('/news');
      await Promise.all([hold.close(50), hold.close(), hold.close()]);
      await client.untilClosed();
      assert.ok(client.received.endsWith('\r\n0\r\n\r\n'));
      assert.deepEqual(closes, [{ id: idOf('/news'), reason: 'drain' }]);
      hold.publish('news', 'to nobody');
      hold.send(idOf('/news'), 'to nobody');
      await hold.close();
      await assert.rejects(hold.listen(0), withCode('CLOSED'));
      const socket = connect(port, '127.0.0.1');
      await assert.rejects(
        new Promise((resolve, reject) => socket.on('connect', resolve).on('error', reject)),
      );
      assert.equal(hold.counters().streams, 0);
    });

    test('that was closed before listening does not listen', async (t) => {
      const { hold } = startHold(t, kind);
      const listens = assert.rejects(hold.listen(0, 'localhost'), withCode('CLOSED'));
      await hold.close();
      await listens;
    });

    test('refuses requests with 503 while it closes', async (t) => {
      const { hold, open, port } = await startListening(t, kind);
      const held = await open('/news');
      const early = connect(port, '127.0.0.1');
      early.write('GET /late HTTP/1.1\r\n');
      await new Promise((resolve) => early.on('connect', resolve));
      await until(() => hold.counters().connections === 2, 'both connections');
      const closed = hold.close(200);
      early.write('Host: a\r\n\r\n');
      const answer = await new Promise((resolve) => early.once('data', resolve));
      assert.match(String(answer), /^HTTP\/1\.1 503 /);
      await closed;
      await held.untilClosed();
    });

    test('sends what was published before it closes to every stream', async (t) => {
      const { hold, ask } = await startListening(t, kind, {
        policy: { decide: () => ({ hold: 'text', channels: ['all'] }) },
      });
      const clients = Array.from({ length: 100 }, () => ask('/'));
      await until(() => hold.counters().streams === 100, '100 streams');
      // Several slices of work, but far less than the second after which a drain no longer waits.
      for (let i = 0; i < 20; i++) hold.publish('all', `bye ${i} `.padEnd(1000, '.'));
      await hold.close(0);
      await until(() => clients.every(({ closed }) => closed), 'all have ended');
      for (const { received } of clients) {
        assert.equal(received.match(/bye \d+ /g)?.length, 20);
        assert.match(received, /\r\n0\r\n\r\n$/);
      }
    });

    test('reports an onClose that throws, and still works', async (t) => {
      /** @type {unknown[]} */
      const errors = [];
      const { hold, open } = await startListening(t, kind, {
        onClose: () => assert.fail('in onClose'),
        onError: (error) => errors.push(error),
      });
      for (let i = 0; i < 3; i++) (await open('/news')).close();
      await until(() => errors.length === 3, 'all ends are reported');
      assert.match(String(errors[0]), /in onClose/);
      assert.equal(hold.counters().streams, 0);
    });
  });
}

test('without onError, what decide and onClose throw becomes a process warning', async (t) => {
  /** @type {(Error & { code?: string })[]} */
  const warnings = [];
  const onWarning = (/** @type {Error} */ warning) => warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const { ask } = await startListening(t, KINDS[0], {
    policy: { decide: () => assert.fail('in decide') },
  });
  await ask('/').untilClosed();
  await until(() => warnings.length === 1, 'a warning');
  assert.equal(warnings[0].code, 'CALLBACK_THREW');
  assert.match(
    warnings[0].message,
    /^a callback of Hold threw, or returned something invalid: AssertionError.*: in decide\n/,
  );
});
