/*
 * What only the native core does: caching decisions, shards that fail, one port for several shards.
 */
import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { get } from './helpers/client.js';
import { listening, NEEDS_NATIVE, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

describe('decisions', NEEDS_NATIVE, () => {
  /**
   * @param {import('node:test').TestContext} t
   * @param {(head: import('holdfast').Head, count: number) => import('holdfast').Decision} decide
   * @param {import('holdfast').HoldOptions} [options]
   */
  async function startCounting(t, decide, options) {
    /** @type {string[]} */
    const asked = [];
    const { hold, closes, ask } = await startListening(t, 'native', {
      policy: {
        headers: ['authorization'],
        decide: (head) => {
          asked.push(head.target);
          return decide(head, asked.length);
        },
      },
      ...options,
    });
    const open = async (/** @type {number} */ count, target = '/', headers = {}) => {
      const clients = Array.from({ length: count }, () => ask(target, headers));
      for (const client of clients) await client.untilRead(/\r\n\r\n/);
      return clients;
    };
    return { hold, closes, asked, open };
  }

  /** @type {import('holdfast').HoldDecision} */
  const ALWAYS = { hold: 'events', channels: ['a'], welcome: ['one', 'two', 'three'], always: true };

  test('leave JS its turns, however many wait', async (t) => {
    const decide = () => ({ answer: { status: 200, body: 'ok' } });
    const { hold, ask } = await startListening(t, 'native', { shards: 2, policy: { decide } });
    const { core } = /** @type {any} */ (hold).shards;
    const take = core.takeEvents.bind(core);
    /** Batches in this turn of the event loop. */
    let taken = 0;
    core.takeEvents = (/** @type {number} */ most) => {
      taken++;
      return take(most);
    };
    const clients = Array.from({ length: 2000 }, () => ask('/'));
    // Each asks again once it has got its answer, so there is always more to take, and always a reason to say so.
    for (const { socket } of clients) socket.on('data', () => socket.write(get()));
    let most = 0;
    for (let turns = 0; turns < 1500; turns++) {
      taken = 0;
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, taken);
    }
    assert.ok(most > 0 && most <= 4, `${most} batches in one turn`);
  });

  test('with `always` are not requested one by one, and open streams like all others', async (t) => {
    const { hold, asked, open } = await startCounting(t, () => ALWAYS, { shards: 2 });
    /** @type {Awaited<ReturnType<typeof open>>} */
    const clients = [];
    await until(async () => {
      clients.push(...(await open(40)));
      return asked.length < clients.length;
    }, 'some were not asked about');
    const [other] = await open(1, '/other');
    assert.equal(asked.at(-1), '/other');
    await until(() => hold.counters().streams === clients.length + 1, 'all streams');
    hold.publish('a', 'to all');
    for (const client of [...clients, other]) await client.untilRead(/data: to all\n\n/);
    const welcomes = new Set(clients.map(({ received }) => /one|two|three/.exec(received)?.[0]));
    assert.equal(welcomes.size, 3);
    for (const { received } of clients) {
      assert.match(received, /\r\nDate: \w{3}, .* GMT\r\n/);
      assert.match(received, /\r\nContent-Type: text\/event-stream\r\n/);
    }
  });

  test('with `always` keep their welcome if the application uses its bytes for something else', async (t) => {
    const welcome = Buffer.from('welcome');
    const { asked, open } = await startCounting(t, () => ({ hold: 'text', welcome, always: true }));
    await open(1);
    welcome.fill('?');
    for (const client of await open(3)) await client.untilRead(/\r\nwelcome\r\n/);
    assert.equal(asked.length, 1);
  });

  test('with `always` are used for clients of every address, even if the policy reads addresses', async (t) => {
    /** @type {unknown[]} */
    const asked = [];
    const { hold, port } = await startListening(t, 'native', {
      policy: {
        address: true,
        decide: ({ address }) => {
          asked.push(address);
          return { hold: 'text', always: true };
        },
      },
    });
    let count = 0;
    await until(async () => {
      const localAddress = `127.0.0.${1 + (count++ % 200)}`;
      const socket = connect({ port, host: '127.0.0.1', localAddress }).resume();
      t.after(() => socket.destroy());
      socket.write(get());
      await until(() => hold.counters().opened === count, 'it is open');
      return count > 40 && asked.length < count;
    }, 'some were not asked about');
    assert.deepEqual(asked.slice(0, 1), ['127.0.0.1']);
  });

  test('without `always` are requested each time', async (t) => {
    const { asked, open } = await startCounting(t, () => ({ ...ALWAYS, always: false }));
    for (let i = 0; i < 3; i++) await open(50);
    assert.equal(asked.length, 150);
  });

  test('that change take effect at once: an expired token is refused', async (t) => {
    let isExpired = false;
    const { asked, open } = await startCounting(t, ({ headers }) => {
      if (!headers.authorization) return ALWAYS;
      return isExpired ? { refuse: 404 } : { hold: 'text', channels: ['a'] };
    });
    await open(100);
    const before = asked.length;
    const token = { Authorization: 'Bearer a' };
    for (const { received } of await open(100, '/', token)) assert.match(received, /^HTTP\/1\.1 200 /);
    isExpired = true;
    for (const { received } of await open(100, '/', token)) assert.match(received, /^HTTP\/1\.1 404 /);
    isExpired = false;
    for (const { received } of await open(100, '/', token)) assert.match(received, /^HTTP\/1\.1 200 /);
    assert.equal(asked.length - before, 300);
  });

  test('that refuse or answer are never cached', async (t) => {
    const { asked, open } = await startCounting(t, (_head, count) =>
      count % 2 ? { refuse: 404 } : { answer: { body: String(count) } },
    );
    await open(100);
    assert.equal(asked.length, 100);
  });

  test('that are cached become refusals if there is no room, and hold again once there is', async (t) => {
    const { hold, closes, open } = await startCounting(t, () => ALWAYS, {
      capacity: 100,
      connectionLimit: 400,
    });
    const clients = [...(await open(60)), ...(await open(60))];
    const isHeld = (/** @type {typeof clients[number]} */ { received }) =>
      received.startsWith('HTTP/1.1 200');
    assert.equal(clients.filter(isHeld).length, 100);
    assert.equal(clients.filter(({ received }) => received.startsWith('HTTP/1.1 503')).length, 20);
    await until(() => closes.filter(({ reason }) => reason === 'over-capacity').length === 20, 'onClose');
    assert.equal(hold.counters().refused[503], 20);
    for (const client of clients.filter(isHeld).slice(0, 30)) client.close();
    await until(() => hold.counters().streams === 70, '30 have gone');
    assert.ok((await open(30)).every(isHeld));
  });

  test('are cached only for short heads: long ones would take too much memory', async (t) => {
    const { hold, open } = await startCounting(t, () => ({ refuse: 404 }));
    await open(1, '/short');
    await open(1, '/short');
    await open(1, `/${'x'.repeat(2000)}`);
    assert.equal(hold.shards?.heads.known.size, 1);
  });
});

describe('a shard that fails', NEEDS_NATIVE, () => {
  test('reports itself and its streams, and takes new ones; the other shards are not affected', async (t) => {
    /** @type {any[]} */
    const errors = [];
    const { hold, closes, open, ask } = await startListening(t, 'native', {
      shards: 2,
      onError: (error) => errors.push(error),
    });
    const shardOf = (/** @type {number} */ id) => Math.floor(id / 2 ** 45);
    /** @type {Awaited<ReturnType<typeof open>>[]} */
    const clients = [];
    for (let i = 0; i < 40; i++) clients.push(await open(`/all,${i}`));
    hold.shards?.core.failShard(0);
    await until(() => errors.length === 1, 'onError');
    assert.equal(errors[0].code, 'SHARD_FAILED');
    assert.match(errors[0].message, /^shard 0 failed and was restarted/);
    await until(() => hold.counters().streams + closes.length === 40, 'every stream is open or reported');
    assert.ok(
      closes.length > 0 && closes.every(({ id, reason }) => shardOf(id) === 0 && reason === 'failed'),
    );
    const { closed, shardFailures } = hold.counters();
    assert.deepEqual([closed.failed, shardFailures], [closes.length, 1]);
    hold.publish('all', 'still here');
    await until(
      () => clients.filter(({ received }) => received.includes('still here')).length === 40 - closes.length,
      'the others get messages',
    );
    await until(() => clients.filter(({ closed }) => closed).length === closes.length, 'the rest are closed');
    const late = Array.from({ length: 40 }, (_, i) => ask(`/late,${i}`));
    for (const client of late) await client.untilRead(/Welcome!/);
    hold.publish('late', 'to all');
    for (const client of late) await client.untilRead(/to all/);
  });

  test('becomes a process warning without onError', async (t) => {
    /** @type {(Error & { code?: string })[]} */
    const warnings = [];
    const onWarning = (/** @type {Error} */ warning) => warnings.push(warning);
    process.on('warning', onWarning);
    t.after(() => process.off('warning', onWarning));
    const { hold } = startHold(t, 'native');
    hold.shards?.core.failShard(0);
    await until(() => warnings.length === 1, 'a warning');
    assert.equal(warnings[0].code, 'SHARD_FAILED');
  });

  test('during a close does not prevent it', async (t) => {
    const { hold, closes, open } = await startListening(t, 'native', { onError: () => {} });
    const client = await open('/news');
    const closed = hold.close(60_000);
    hold.shards?.core.failShard(0);
    await closed;
    await client.untilClosed();
    assert.equal(closes[0].reason, 'failed');
  });
});

describe('several shards', NEEDS_NATIVE, () => {
  test('all listen on one port, or none does', async (t) => {
    const { hold } = startHold(t, 'native', { shards: 3 });
    const taken = await listening(t, createServer());
    await assert.rejects(hold.listen(taken, '127.0.0.1'), { code: 'EADDRINUSE' });
    await assert.rejects(hold.listen(0, '203.0.113.1'), { code: 'EADDRNOTAVAIL' });
    const port = await hold.listen(0, '127.0.0.1');
    // Nothing of the attempts before holds the port that was taken, or keeps this one from listening.
    assert.notEqual(port, taken);
  });

  test('have their own descriptor tables if the kernel allows it', (t) => {
    const { hold } = startHold(t, 'native', { shards: 2 });
    assert.equal(hold.hasOwnTables, hold.shards?.core.hasOwnTables);
  });
});

test(
  'many shards are not woken for each publication, and everything arrives in order',
  NEEDS_NATIVE,
  async (t) => {
    const shards = 64;
    const { hold, open } = await startListening(t, 'native', { shards });
    const client = await open('/a');
    const { core } = /** @type {any} */ (hold).shards;
    const told = core.command.bind(core);
    let times = 0;
    core.command = (/** @type {Uint8Array} */ records, /** @type {boolean} */ wakesAll) => {
      if (wakesAll) times++;
      told(records, wakesAll);
    };
    const begunMs = performance.now();
    for (let i = 0; i < 500; i++) {
      hold.publish('a', `<${i}>`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.untilRead(/<499>/);
    const numbers = [...client.received.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number));
    assert.deepEqual(
      numbers,
      Array.from({ length: 500 }, (_, i) => i),
    );
    // A third of a millisecond for each shard; timers may be early by one.
    const most = (performance.now() - begunMs) / (shards / 3 - 1) + 2;
    assert.ok(times > 0 && times <= most, `${times} times, expected at most ${most}`);
    hold.publish('a', 'at once');
    await client.untilRead(/at once/);
  },
);
