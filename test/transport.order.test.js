/*
 * Operations on streams take effect in the order of the calls. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bodyOf } from './helpers/client.js';
import { KINDS, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

const ROUNDS = 50;

for (const kind of KINDS) {
  describe(`order (${kind})`, () => {
    test('a stream gets nothing that decide published before it held it', async (t) => {
      const { hold, ask } = await startListening(t, kind, {
        shards: 2,
        policy: {
          decide: ({ target }) => {
            hold.publish('all', `before ${target};`);
            return { hold: 'text', channels: ['all'], welcome: `held ${target};` };
          },
        },
      });
      const clients = [];
      for (let i = 0; i < ROUNDS; i++) clients.push(ask(`/${i}`));
      for (const [i, client] of clients.entries()) await client.untilRead(new RegExp(`held /${i}`));
      hold.publish('all', 'the end');
      for (const [i, client] of clients.entries()) {
        await client.untilRead(/the end/);
        const body = bodyOf(client.received);
        assert.ok(body.startsWith(`held /${i};`));
        assert.ok(!body.includes(`before /${i};`), `the stream ${i} got a message that is older than it`);
      }
    });

    test('a stream gets what is published right after it was held', async (t) => {
      const { hold, ask } = await startListening(t, kind, {
        policy: {
          decide: ({ target }) => {
            process.nextTick(() => hold.publish(target, 'after'));
            return { hold: 'text', channels: [target], welcome: 'held ' };
          },
        },
      });
      const clients = Array.from({ length: ROUNDS }, (_, i) => ask(`/${i}`));
      for (const client of clients) {
        await client.untilRead(/after/);
        assert.equal(bodyOf(client.received), 'held after');
      }
    });

    test('a promised decision takes effect when it resolves, between what was published before and after', async (t) => {
      /** @type {(() => void)[]} */
      const resolves = [];
      const { hold, ask } = await startListening(t, kind, {
        policy: {
          decide: () =>
            new Promise((resolve) =>
              resolves.push(() => resolve({ hold: 'text', channels: ['all'], welcome: 'held ' })),
            ),
        },
      });
      const client = ask('/');
      await until(() => resolves.length === 1, 'the question');
      hold.publish('all', 'before');
      resolves[0]();
      await new Promise((resolve) => setImmediate(resolve));
      hold.publish('all', 'after');
      await client.untilRead(/after/);
      assert.equal(bodyOf(client.received), 'held after');
    });

    test('subscribing, publishing, sending and ending keep their order', async (t) => {
      const { hold, idOf, open } = await startListening(t, kind);
      const client = await open('/a');
      const id = idOf('/a');
      const expected = ['Welcome!'];
      for (let i = 0; i < ROUNDS; i++) {
        hold.publish('b', `not ${i}`);
        hold.subscribe(id, 'b');
        hold.publish('b', `published ${i}`);
        hold.send(id, `sent ${i}`);
        hold.unsubscribe(id, 'b');
        expected.push(`published ${i}`, `sent ${i}`);
      }
      hold.end(id);
      hold.publish('a', 'after the end');
      await client.untilClosed();
      assert.equal(bodyOf(client.received), expected.join(''));
    });

    test('what is sent to a stream in the same turn that holds it comes after its welcome', async (t) => {
      const { hold, ask } = await startListening(t, kind, {
        policy: {
          decide: (_head, id) => {
            queueMicrotask(() => {
              hold.subscribe(id, 'late');
              hold.publish('late', 'published ');
              hold.send(id, 'sent');
              hold.end(id);
            });
            return { hold: 'text', welcome: 'held ' };
          },
        },
      });
      const client = ask('/');
      await client.untilClosed();
      assert.equal(bodyOf(client.received), 'held published sent');
    });
  });
}
