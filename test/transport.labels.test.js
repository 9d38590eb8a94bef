/*
 * Streams that end by themselves, or together. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bodyOf } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

for (const kind of KINDS) {
  describe(`labels (${kind})`, () => {
    /** @param {import('node:test').TestContext} t @param {string[]} targets */
    const startStreams = async (t, targets, options = {}) => {
      const started = await startListening(t, kind, { shards: 2, ...options });
      const opened = await Promise.all(targets.map((target) => started.open(target)));
      const clients = Object.fromEntries(targets.map((target, i) => [target, opened[i]]));
      const reasons = () => new Map(started.closes.map(({ id, reason }) => [id, reason]));
      const reasonOf = (/** @type {string} */ target) => reasons().get(started.idOf(target));
      return { ...started, clients, reasonOf };
    };

    test('end a stream when its time is over, at most a second later and not before', async (t) => {
      const { hold, idOf, clients, closes, reasonOf } = await startStreams(t, ['/a', '/b', '/c']);
      const expiresAtMs = Date.now() + 700;
      hold.label(idOf('/a'), { expiresAtMs });
      hold.label(idOf('/b'), { expiresAtMs: Number.POSITIVE_INFINITY, subject: 1 });
      hold.label(idOf('/c'), { expiresAtMs: Date.now() + 1e9 });
      await until(() => closes.length > 0, 'the end');
      const lateMs = Date.now() - expiresAtMs;
      assert.ok(lateMs >= 0 && lateMs < 1000, `${lateMs} ms late`);
      await clients['/a'].untilClosed();
      assert.equal(bodyOf(clients['/a'].received), 'Welcome!');
      assert.equal(reasonOf('/a'), 'expired');
      assert.deepEqual([closes.length, hold.counters().closed.expired], [1, 1]);
    });

    test('end each stream at its own time, whatever the order in which they were set', async (t) => {
      const targets = Array.from({ length: 20 }, (_, i) => `/${i}`);
      const { hold, idOf, closes } = await startStreams(t, targets);
      const begunMs = Date.now();
      const dueMs = new Map(targets.map((target, i) => [idOf(target), begunMs + ((i * 7) % 20) * 100]));
      for (const [id, expiresAtMs] of dueMs) hold.label(id, { expiresAtMs });
      await until(() => {
        for (const { id } of closes) assert.ok(Date.now() >= Number(dueMs.get(id)), 'too early');
        const late = [...dueMs].filter(
          ([id, ms]) => Date.now() > ms + 1000 && !closes.some((one) => one.id === id),
        );
        assert.deepEqual(late, [], 'too late');
        return closes.length === 20;
      }, 'all have ended');
    });

    test('can be changed, and what is left out of the new ones is gone', async (t) => {
      const { hold, idOf, closes, reasonOf } = await startStreams(t, ['/a', '/b', '/c']);
      hold.label(idOf('/a'), { expiresAtMs: Date.now() + 300, subject: 1 });
      hold.label(idOf('/a'), { token: 2 });
      hold.label(idOf('/b'), { expiresAtMs: Date.now() + 1e6 });
      hold.label(idOf('/b'), { expiresAtMs: 0 });
      hold.label(idOf('/c'), { expiresAtMs: Date.now() + 600 });
      hold.label(idOf('/c'), {});
      await until(() => closes.length === 1, 'the end');
      assert.equal(reasonOf('/b'), 'expired');
      await new Promise((resolve) => setTimeout(resolve, 1200));
      hold.endLabelled('subject', 1, 'revoked');
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(closes.length, 1);
      hold.endLabelled('token', 2, 'revoked');
      await until(() => reasonOf('/a') === 'revoked', 'the end of the other');
    });

    test('of a decision are those of the stream, whether it is at once or promised', async (t) => {
      /** @type {Map<string, number>} */
      const ids = new Map();
      const { hold, ask, closes } = await startListening(t, kind, {
        policy: {
          decide: ({ target }, id) => {
            ids.set(target, id);
            /** @type {import('holdfast').HoldDecision} */
            const decision = {
              hold: 'text',
              welcome: 'Welcome!',
              labels: { subject: 7, expiresAtMs: Date.now() + 500 },
            };
            return target === '/now' ? decision : Promise.resolve(decision);
          },
        },
      });
      const clients = ['/now', '/later'].map((target) => ask(target));
      for (const client of clients) await client.untilRead(/Welcome!/);
      await until(() => closes.length === 2, 'both ends');
      assert.deepEqual(new Set(closes.map(({ id }) => id)), new Set(ids.values()));
      assert.ok(closes.every(({ reason }) => reason === 'expired'));
      assert.equal(hold.counters().streams, 0);
    });

    test('end all streams that have them, after what was published, and no others', async (t) => {
      const targets = ['/all,1', '/all,2', '/all,3', '/all,4', '/all,5'];
      const { hold, idOf, clients, closes, reasonOf } = await startStreams(t, targets);
      const [one, two, three, four] = targets.map(idOf);
      hold.label(one, { subject: 2 ** 32 - 1 });
      hold.label(two, { subject: 2 ** 32 - 1, token: 5 });
      hold.label(three, { subject: 5 });
      hold.label(four, { token: 6 });
      hold.publish('all', 'last');
      hold.endLabelled('subject', 2 ** 32 - 1, 'revoked');
      hold.endLabelled('subject', 3, 'revoked');
      hold.publish('all', 'later');
      hold.endLabelled('token', 5, 'expired');
      hold.endLabelled('token', 6, 'drain');
      for (const target of [targets[0], targets[1], targets[3]]) await clients[target].untilClosed();
      assert.match(bodyOf(clients[targets[0]].received), /^Welcome!last/);
      await until(() => closes.length === 3, 'onClose');
      assert.deepEqual(
        targets.map((target) => reasonOf(target)),
        ['revoked', 'revoked', undefined, 'drain', undefined],
      );
      const { closed, streams } = hold.counters();
      assert.deepEqual([closed.revoked, closed.expired, closed.drain, streams], [2, 0, 1, 2]);
    });

    test('a channel ends with all that listen to it, each once', async (t) => {
      const targets = Array.from({ length: 600 }, (_, i) => `/a,${i}`);
      const { hold, clients, closes, open, idOf } = await startStreams(t, targets);
      const other = await open('/b');
      hold.endChannel('nobody', 'revoked');
      hold.endChannel('a', 'revoked');
      hold.endChannel('a', 'drain');
      hold.end(idOf('/a,599'));
      await Promise.all(Object.values(clients).map((client) => client.untilClosed()));
      await until(() => closes.length === 600, 'onClose');
      assert.equal(new Set(closes.map(({ id }) => id)).size, 600);
      assert.equal(await hold.publish(['a', 'b'], 'x'), 1);
      await other.untilRead(/x/);
    });

    test('a stream that has ended has none, even if it is labelled later', async (t) => {
      const { hold, idOf, closes, open } = await startStreams(t, ['/a']);
      hold.end(idOf('/a'));
      hold.label(idOf('/a'), { subject: 1, expiresAtMs: 0 });
      await until(() => closes.length === 1, 'the end');
      await open('/b');
      hold.endLabelled('subject', 1, 'revoked');
      await new Promise((resolve) => setTimeout(resolve, 600));
      assert.deepEqual(closes, [{ id: idOf('/a'), reason: 'drain' }]);
      assert.equal(hold.counters().streams, 1);
    });

    test('must be what they can be', (t) => {
      const { hold } = startHold(t, kind);
      for (const labels of [
        null,
        undefined,
        5,
        { subjects: 1 },
        { subject: -1 },
        { subject: 1.5 },
        { subject: 2 ** 32 },
        { subject: '1' },
        { token: null },
        { expiresAtMs: Number.NaN },
        { expiresAtMs: -1 },
        { expiresAtMs: '1' },
        { expiresAtMs: new Date() },
      ])
        assert.throws(() => hold.label(1, /** @type {any} */ (labels)), withCode('BAD_ARGUMENT'));
      assert.throws(() => hold.label(-1, {}), withCode('BAD_ARGUMENT'));
      for (const [label, value, reason] of [
        ['subjects', 1, 'revoked'],
        ['toString', 1, 'revoked'],
        [undefined, 1, 'revoked'],
        ['subject', 0, 'revoked'],
        ['subject', 2 ** 32, 'revoked'],
        ['token', '1', 'revoked'],
        ['token', 1, 'failed'],
        ['token', 1, undefined],
      ])
        assert.throws(
          () =>
            hold.endLabelled(
              /** @type {any} */ (label),
              /** @type {any} */ (value),
              /** @type {any} */ (reason),
            ),
          withCode('BAD_ARGUMENT'),
        );
      assert.throws(() => hold.endChannel(/** @type {any} */ (5), 'drain'), withCode('BAD_ARGUMENT'));
      assert.throws(() => hold.endChannel('a', /** @type {any} */ ('slow')), withCode('BAD_ARGUMENT'));
      assert.throws(() => hold.endUpdates(/** @type {any} */ (undefined)), withCode('BAD_ARGUMENT'));
    });
  });
}
