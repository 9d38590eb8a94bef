import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Asks, failedIn } from '../lib/asks.js';
import { withCode } from './helpers/codes.js';

test('a question has an answer, an error or a deadline, and says who was asked what', async () => {
  /** @type {any[]} */
  const sent = [];
  const asks = new Asks((message) => sent.push(message), failedIn('worker 1'));
  const first = asks.ask('move', { ms: 5 }, 60_000);
  assert.deepEqual(sent, [{ type: 'handover', id: 1, step: 'move', ms: 5 }]);
  asks.answered({ id: 1, value: 7 });
  assert.equal(await first, 7);
  const second = asks.ask('go', {}, 60_000);
  asks.answered({ id: 2, problem: 'no room' });
  await assert.rejects(second, withCode('HANDOVER', /^the step go failed in worker 1: no room$/));
  await assert.rejects(asks.ask('sync', {}, 1), /the step sync failed in worker 1: no answer within 1 ms/);
  const last = asks.ask('go', {}, 60_000);
  asks.close('it ended');
  await assert.rejects(last, /it ended/);
  await assert.rejects(asks.ask('go', {}, 60_000), /it ended/);
});
