/*
 * Tags of streams: the same checks with the native core and without. What they are for is in transport.takeover.test.js.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { KINDS, listening, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @type {unknown[]} */
const WRONG = [5, null, {}, 'x'.repeat(257), 'é'.repeat(129), '\ud800'];
const RIGHT = ['', 'x', 'x'.repeat(256), 'é'.repeat(128), 'a\nb\0'];

for (const kind of KINDS)
  describe(`a tag (${kind})`, () => {
    test('of a decision is a string of at most 256 bytes, and each stream has its own', async (t) => {
      /** @type {Record<string, object>} */
      const decisions = {};
      for (const [i, tag] of WRONG.entries()) decisions[`/wrong${i}`] = { tag };
      for (const [i, tag] of RIGHT.entries()) decisions[`/right${i}`] = { tag };
      decisions['/always'] = { tag: 'x', always: true };
      /** @type {any[]} */
      const errors = [];
      const { ask } = await startListening(t, kind, {
        onError: (error) => void errors.push(error),
        policy: { decide: ({ target }) => ({ hold: 'text', welcome: 'Welcome!', ...decisions[target] }) },
      });
      for (const i of RIGHT.keys()) await ask(`/right${i}`).untilRead(/Welcome!/);
      for (const target of Object.keys(decisions).filter((one) => !one.startsWith('/right')))
        await ask(target).untilRead(/^HTTP\/1.1 503 /);
      await until(() => errors.length === WRONG.length + 1, 'the errors');
      assert.ok(errors.every(({ code }) => code === 'BAD_ARGUMENT'));
      assert.match(errors.map(({ message }) => message).join('\n'), /'always' can't have .* a tag/);
    });

    test('of adopt is checked in the same way, before anything is sent', async (t) => {
      const { hold } = startHold(t, kind);
      /** @type {unknown[]} */
      const outcomes = [];
      const server = createServer(async (_request, response) => {
        for (const tag of WRONG) {
          const adopting = hold.adopt(response, { tag: /** @type {any} */ (tag) });
          outcomes.push(await adopting.catch(({ code }) => code));
        }
        assert.equal(response.headersSent, false);
        await hold.adopt(response, { tag: RIGHT[3], channels: ['a'] });
        await hold.publish('a', 'adopted');
        void hold.close();
      });
      const port = await listening(t, server);
      const response = await fetch(`http://127.0.0.1:${port}/`);
      assert.match(await response.text(), /^data: adopted$/m);
      assert.deepEqual(
        outcomes,
        WRONG.map(() => 'BAD_ARGUMENT'),
      );
    });
  });
