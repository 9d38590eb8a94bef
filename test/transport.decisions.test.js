/*
 * Promised decisions that are functions, and the end of every stream that was decided to be held. Every test runs with the
 * native core and without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bodyOf, get, leavingClient, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, NEEDS_NATIVE, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @typedef {import('holdfast').Decision} Decision */

for (const kind of KINDS) {
  /** @param {import('node:test').TestContext} t @param {import('holdfast').Policy['decide']} decide */
  const startDeciding = async (t, decide, options = {}) => {
    /** @type {unknown[]} */
    const errors = [];
    const onError = (/** @type {unknown} */ error) => errors.push(error);
    const started = await startListening(t, kind, { policy: { decide }, onError, ...options });
    return { ...started, errors };
  };

  describe(`a promised function (${kind})`, () => {
    test('sees everything that was published before the stream, and nothing comes in between', async (t) => {
      let last = 0;
      const { hold, ask } = await startDeciding(
        t,
        async () => {
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
          return () => ({ hold: 'text', channels: ['all', 'more'], welcome: `${last};` });
        },
        { shards: 2 },
      );
      const publishing = setInterval(() => {
        for (let i = 0; i < 3; i++) hold.publish(['all', 'more'], `${++last};`);
      }, 1);
      t.after(() => clearInterval(publishing));
      const clients = [];
      for (let i = 0; i < 100; i++) {
        clients.push(ask('/'));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      for (const client of clients) await client.untilRead(/\d;[\s\S]*\d;[\s\S]*\d;/);
      clearInterval(publishing);
      await hold.publish('all', 'the end');
      for (const client of clients) {
        await client.untilRead(/the end/);
        const numbers = bodyOf(client.received).split(';').slice(0, -1).map(Number);
        assert.deepEqual(
          numbers,
          numbers.map((_, i) => numbers[0] + i),
        );
        assert.equal(numbers.at(-1), last);
      }
    });

    test('can decide anything that a policy can', async (t) => {
      /** @type {Record<string, Decision>} */
      const decisions = {
        '/held': { hold: 'text', welcome: 'Welcome!' },
        '/refused': { refuse: 404 },
        '/answered': { answer: { body: 'answered' } },
        '/passed': { pass: true },
      };
      const { ask } = await startDeciding(
        t,
        async ({ target }) =>
          () =>
            decisions[target],
      );
      const [held, ...others] = Object.keys(decisions).map((target) => ask(target, { Connection: 'close' }));
      await held.untilRead(/Welcome!/);
      for (const client of others) await client.untilClosed();
      assert.deepEqual(
        others.map(({ received }) => /^HTTP\/1\.1 (\d+)/.exec(received)?.[1]),
        ['404', '200', '404'],
      );
    });

    test('that fails or decides nothing costs only that request, which gets 503', async (t) => {
      /** @type {Record<string, () => any>} */
      const functions = {
        '/throws': () => {
          throw new Error('on purpose');
        },
        '/nothing': () => undefined,
        '/promise': async () => ({ hold: 'text' }),
        '/function': () => () => ({ hold: 'text' }),
        '/labels': () => ({ hold: 'text', labels: { subject: -1 } }),
        '/always': () => ({ hold: 'text', always: true, labels: {} }),
      };
      const { hold, ask, errors, closes } = await startDeciding(t, async ({ target }) => functions[target]);
      for (const target of Object.keys(functions)) {
        const client = ask(target);
        await client.untilClosed();
        assert.match(client.received, /^HTTP\/1\.1 503 /, target);
      }
      assert.equal(errors.length, 6);
      assert.match(String(errors[0]), /on purpose/);
      assert.ok(errors.slice(1).every(withCode('BAD_ARGUMENT')), String(errors));
      assert.deepEqual([closes.length, hold.counters().opened], [0, 0]);
    });

    test('is only taken from a promise', async (t) => {
      const { ask, errors } = await startDeciding(t, /** @type {any} */ (() => () => ({ hold: 'text' })));
      const client = ask('/');
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 503 /);
      assert.ok(withCode('BAD_ARGUMENT')(errors[0]));
    });

    test('is not called if it comes too late', async (t) => {
      /** @type {((late: () => Decision) => void)[]} */
      const resolves = [];
      let calls = 0;
      const { ask, closes } = await startDeciding(t, () => new Promise((resolve) => resolves.push(resolve)), {
        answerTimeoutMs: 50,
      });
      const client = ask('/');
      await client.untilRead(/^HTTP\/1\.1 503 /);
      await until(() => resolves.length === 1, 'the question');
      // Native may have been faster than the timer in JS.
      await new Promise((resolve) => setTimeout(resolve, 100));
      resolves[0](() => {
        calls++;
        return { hold: 'text' };
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.deepEqual([calls, closes.length], [0, 0]);
    });
  });

  describe(`onClose (${kind})`, () => {
    test('is called once for a HEAD request that is to be held, with drain', async (t) => {
      /** @type {number[]} */
      const ids = [];
      const { hold, port, closes } = await startDeciding(t, ({ target }, id) => {
        ids.push(id);
        /** @type {Decision} */
        const decision = { hold: 'events', channels: ['a'] };
        return target === '/' ? decision : Promise.resolve(() => decision);
      });
      for (const target of ['/', '/later']) {
        const client = rawClient(port, get({ Connection: 'close' }).replace('GET /', `HEAD ${target}`));
        await client.untilClosed();
        assert.match(client.received, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
      }
      await until(() => closes.length === 2, 'onClose');
      assert.deepEqual(
        closes,
        ids.map((id) => ({ id, reason: 'drain' })),
      );
      assert.equal(hold.counters().opened, 0);
    });

    test('is called exactly once for each decision to hold, whenever clients leave and decisions come', async (t) => {
      /** @type {Map<number, number>} */
      const held = new Map();
      const { hold, port, closes, errors } = await startDeciding(
        t,
        ({ target }, id) => {
          const how = Number(target.slice(1)) % 5;
          /** @type {() => Decision} */
          const decision = () => {
            held.set(id, how);
            return {
              hold: 'text',
              channels: ['all', `${how}`],
              welcome: 'Welcome!',
              labels: { subject: 1 + how },
            };
          };
          if (how === 0) return decision();
          // Those of 3 and 4 may be late.
          const wait = new Promise((resolve) => setTimeout(resolve, how === 1 ? 0 : how * 12));
          if (how % 2 === 0) return wait.then(() => decision);
          return wait.then(decision);
        },
        { answerTimeoutMs: 40, capacity: 30, shards: 2 },
      );
      /** @type {ReturnType<typeof leavingClient>[]} */
      const clients = [];
      for (let i = 0; i < 300; i++) {
        const request = get().replace('GET /', `${i % 50 === 7 ? 'HEAD' : 'GET'} /${i}`);
        clients.push(leavingClient(port, request, i));
        if (i % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        if (i % 10 === 0) hold.publish(['all', '1'], 'x');
        if (i % 70 === 69) hold.endLabelled('subject', 1 + (i % 5), 'revoked');
        if (i % 100 === 99) hold.endChannel('all', 'expired');
      }
      t.after(() => {
        for (const { close } of clients) close();
      });
      // Decisions are still to come when it closes.
      await hold.close(20);
      await new Promise((resolve) => setTimeout(resolve, 200));
      assert.deepEqual(
        closes.map(({ id }) => id).toSorted((a, b) => a - b),
        [...held.keys()].toSorted((a, b) => a - b),
      );
      assert.ok(held.size > 50, String(held.size));
      assert.ok(errors.every(withCode('DECISION_TIMEOUT')), String(errors));
    });
  });
}

describe('natively, onClose', NEEDS_NATIVE, () => {
  test('is called for a stream that is held after its shard has failed', async (t) => {
    /** @type {(() => void)[]} */
    const decide = [];
    /** @type {number[]} */
    const ids = [];
    const { hold, closes } = startHold(t, 'native', {
      onError: () => {},
      policy: {
        decide: (_head, id) => {
          ids.push(id);
          return new Promise((resolve) => decide.push(() => resolve(() => ({ hold: 'text' }))));
        },
      },
    });
    const port = await hold.listen(0, '127.0.0.1');
    t.after(rawClient(port, get()).close);
    await until(() => decide.length === 1, 'the question');
    hold.shards?.core.failShard(0);
    await until(() => hold.counters().shardFailures === 1, 'the failure');
    decide[0]();
    await until(() => closes.length === 1, 'onClose');
    assert.deepEqual(closes, [{ id: ids[0], reason: 'client-gone' }]);
  });
});
