/*
 * How much may wait: messages for delivery, channels for messages, bytes for a client that does not read.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, listening, NEEDS_NATIVE, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

for (const kind of KINDS) {
  describe(`a Hold held in ${kind === 'JS' ? 'JS' : 'the native core'}`, () => {
    test('says how many streams a message was for', async (t) => {
      const { hold, open } = await startListening(t, kind, { shards: 2 });
      for (const target of ['/a', '/a,b', '/b']) await open(target);
      const published = [hold.publish('a', 'x'), hold.publish('b', 'y'), hold.publish('nobody', 'z')];
      assert.deepEqual(await Promise.all(published), [2, 2, 0]);
      assert.equal(hold.counters().deliveries, 4);
      assert.equal(hold.counters().queuedBytes, 0);
    });

    test('says that a message was for nobody after it was closed', async (t) => {
      const { hold, open } = await startListening(t, kind);
      await open('/a');
      const closing = hold.close(0);
      const late = hold.publish('a', 'x');
      await closing;
      assert.ok([0, 1].includes(await late));
      assert.equal(await hold.publish('a', 'x'), 0);
    });

    test('refuses a message that would never fit into its queue', async (t) => {
      const { hold } = startHold(t, kind, { maxQueueBytes: 2000 });
      const large = 'x'.repeat(2000);
      assert.throws(
        () => hold.publish('a', large),
        withCode('BAD_ARGUMENT', /larger than maxQueueBytes, 2000/),
      );
      assert.throws(() => hold.send(1, large), withCode('BAD_ARGUMENT', /larger than maxQueueBytes, 2000/));
      assert.equal(await hold.publish('a', 'x'.repeat(1000)), 0);
    });

    test('sends a stream everything in the order of the calls, whatever the channels', async (t) => {
      const { hold, open, idOf } = await startListening(t, kind);
      const others = [];
      for (let i = 0; i < 20; i++) others.push(await open(`/a,${i}`));
      const client = await open('/a,b');
      let expected = '';
      for (let i = 0; i < 300; i++) {
        const text = `${i};`.padEnd(i % 7 === 0 ? 3000 : 10, '.');
        if (i % 3 === 0) hold.publish('a', text);
        else if (i % 3 === 1) hold.publish('b', text);
        else hold.send(idOf('/a,b'), text);
        expected += text;
      }
      await until(() => client.received.includes('299;'), 'the last one');
      const [, chunked] = client.received.split('\r\n\r\n8\r\nWelcome!\r\n');
      assert.equal(unchunked(chunked), expected);
      assert.equal(others.length, 20);
    });

    test('refuses streams whose channels would take more than maxChannelBytes, and takes others', async (t) => {
      const { hold, closes, open, ask, idOf } = await startListening(t, kind, { maxChannelBytes: 4000 });
      const [first, second] = ['1', '2'].map((letter) => `/${letter.repeat(3000)}`);
      await open(first);
      const id = idOf(first);
      const refused = ask(second);
      await refused.untilClosed();
      assert.match(refused.received, /^HTTP\/1\.1 503 /);
      await until(() => closes.length > 0, 'the application is told, maybe after the client');
      assert.deepEqual(closes, [{ id: idOf(second), reason: 'over-capacity' }]);
      const same = await open(first, '1.0');
      same.close();
      await until(() => closes.length === 2, 'it has left');
      hold.end(id);
      await until(() => hold.counters().streams === 0, 'nobody is left');
      await open(second);
    });

    test('closes a stream that subscribes to more than fits, and no other', async (t) => {
      const { hold, closes, open, idOf } = await startListening(t, kind, { maxChannelBytes: 4000 });
      const [greedy, modest] = [await open('/greedy'), await open('/modest')];
      for (let i = 0; i < 20; i++) hold.subscribe(idOf('/greedy'), `${i}`.repeat(200));
      await greedy.untilClosed();
      assert.deepEqual(closes, [{ id: idOf('/greedy'), reason: 'over-capacity' }]);
      assert.equal(await hold.publish('modest', 'hello'), 1);
      await modest.untilRead(/hello/);
      assert.equal(hold.counters().closed['over-capacity'], 1);
    });

    test('lets a stream subscribe again to what it listens to, even if nothing more fits', async (t) => {
      // A name that fills everything: a channel and a subscription take 88 bytes natively, and 576 in JS.
      const name = 'a'.repeat(4000 - (kind === 'native' ? 88 : 576));
      const { hold, closes, ask, open, idOf } = await startListening(t, kind, { maxChannelBytes: 4000 });
      const refused = ask(`/${name}a`);
      await refused.untilClosed();
      assert.match(refused.received, /^HTTP\/1\.1 503 /);
      const client = await open(`/${name}`);
      hold.subscribe(idOf(`/${name}`), name);
      assert.equal(await hold.publish(name, 'hello'), 1);
      await client.untilRead(/hello/);
      assert.deepEqual(
        closes.map(({ reason }) => reason),
        ['over-capacity'],
      );
    });

    test('can not adopt a response whose channels would take too much', async (t) => {
      const { hold } = startHold(t, kind, { maxChannelBytes: 4000 });
      /** @type {PromiseSettledResult<number>[]} */
      const outcomes = [];
      const port = await listening(
        t,
        createServer(async (_request, response) => {
          const channels = Array.from({ length: 30 }, (_, i) => `${i}`.repeat(100));
          outcomes.push(...(await Promise.allSettled([hold.adopt(response, { channels })])));
          response.destroy();
        }),
      );
      t.after(rawClient(port, get()).close);
      await until(() => outcomes.length === 1, 'the outcome');
      const [outcome] = outcomes;
      assert.ok(outcome.status === 'rejected' && withCode('OVER_CAPACITY')(outcome.reason));
    });
  });
}

/** @param {string} text chunks @returns {string} their contents */
function unchunked(text) {
  let rest = text;
  let whole = '';
  for (let end = rest.indexOf('\r\n'); end > 0; end = rest.indexOf('\r\n')) {
    const size = Number.parseInt(rest.slice(0, end), 16);
    whole += rest.slice(end + 2, end + 2 + size);
    rest = rest.slice(end + 4 + size);
  }
  return whole;
}

describe('the native core', NEEDS_NATIVE, () => {
  test('throws BUSY when too much waits, and takes messages again once it was delivered', async (t) => {
    const { hold, open, idOf } = await startListening(t, 'native', { maxQueueBytes: 20_000 });
    const client = await open('/a');
    /** @type {Promise<number>[]} */
    const taken = [];
    // In one turn of the event loop nothing is delivered.
    assert.throws(
      () => {
        for (;;) taken.push(hold.publish('a', 'x'.repeat(1000)));
      },
      withCode('BUSY', /20000 bytes .*maxQueueBytes/),
    );
    assert.throws(() => hold.send(idOf('/a'), 'x'.repeat(1000)), withCode('BUSY'));
    assert.ok(taken.length > 10 && taken.length < 20, String(taken.length));
    assert.ok(hold.counters().queuedBytes > 10_000);
    assert.deepEqual(new Set(await Promise.all(taken)), new Set([1]));
    assert.equal(hold.counters().queuedBytes, 0);
    assert.equal(await hold.publish('a', 'the last one'), 1);
    await client.untilRead(/the last one/);
    assert.equal(hold.counters().deliveries, taken.length + 1);
  });

  test("counts 256 bytes for each message, so that many short ones don't take more than maxQueueBytes", async (t) => {
    const { hold } = startHold(t, 'native', { maxQueueBytes: 20_000 });
    /** @type {Promise<number>[]} */
    const taken = [];
    assert.throws(() => {
      for (;;) taken.push(hold.publish('a', ''));
    }, withCode('BUSY'));
    assert.equal(taken.length, Math.floor(20_000 / 256));
    assert.equal(hold.counters().queuedBytes, taken.length * 256);
    await Promise.all(taken);
    assert.equal(hold.counters().queuedBytes, 0);
  });

  test('takes a message that fills its queue, whatever else was said in the same turn', async (t) => {
    const { hold, open, idOf } = await startListening(t, 'native', { maxQueueBytes: 20_000 });
    await open('/a');
    hold.subscribe(idOf('/a'), 'b');
    hold.unsubscribe(idOf('/a'), 'b'.repeat(30_000));
    const published = hold.publish('a', 'x'.repeat(20_000 - 256));
    assert.throws(() => hold.send(idOf('/a'), ''), withCode('BUSY'));
    assert.equal(await published, 1);
  });

  test('keeps no more than maxBacklogBytes for a client that does not read, however large the message', async (t) => {
    const { hold, closes, open } = await startListening(t, 'native');
    const clients = [];
    for (let i = 0; i < 10; i++) clients.push(await open('/all'));
    for (const { socket } of clients) socket.pause();
    assert.equal(await hold.publish('all', 'x'.repeat(10_000_000)), 10);
    await until(() => closes.length === 10, 'they are closed');
    assert.equal(hold.counters().backlogBytes, 0);
    assert.equal(hold.counters().closed.slow, 10);
  });
});
