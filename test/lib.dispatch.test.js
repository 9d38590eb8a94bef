import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dispatch } from '../lib/dispatch.js';

/** @typedef {{ type: 'one', n: number } | { type: 'other' }} Message */

test('a message goes to the handler for its type', () => {
  /** @type {Message[]} */
  const seen = [];
  const handlers = {
    one: (/** @type {Message} */ message) => void seen.push(message),
    other: () => assert.fail(),
  };
  dispatch(handlers, /** @type {Message} */ ({ type: 'one', n: 1 }));
  assert.deepEqual(seen, [{ type: 'one', n: 1 }]);
});

test('an unknown message is an error, even if every object has a method with its name', () => {
  for (const message of [{ type: 'nonsense' }, { type: 'toString' }, {}, null]) {
    assert.throws(() => dispatch({}, /** @type {never} */ (message)), { code: 'UNKNOWN_MESSAGE' });
  }
});

test('the error about an unknown message has its type, and nothing else of it: there may be secrets in it', () => {
  const message = /** @type {never} */ ({ type: 'nonsense', config: { jwtSecret: 'hush' } });
  assert.throws(() => dispatch({}, message), { message: 'unknown message "nonsense"' });
});
