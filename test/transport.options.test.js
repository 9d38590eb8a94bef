/*
 * The options of a `Hold`: what each takes, and its default.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hold } from 'holdfast';
import { holdOptionsIn, nativeOptions, OPTIONS, settingsOf } from '../transport/options.js';
import { withCode } from './helpers/codes.js';

/** @type {[Record<string, unknown>, RegExp][]} */
const BAD = [
  [{ shards: 0 }, /^shards got 0: expected a whole number from 1 to 255$/],
  ...[256, 300, -1, 1.5, Number.NaN, '2', null].map(
    (shards) => /** @type {[Record<string, unknown>, RegExp]} */ ([{ shards }, /^shards got .*: expected/]),
  ),
  [{ pingIntervalMs: 0 }, /^pingIntervalMs got 0: expected/],
  [{ pingIntervalMs: Number.POSITIVE_INFINITY }, /^pingIntervalMs got Infinity: expected/],
  [{ capacity: -1 }, /^capacity got -1: expected/],
  [{ capacity: 2 ** 32 }, /^capacity got 4294967296: expected/],
  [{ connectionLimit: 0 }, /^connectionLimit got 0/],
  [
    { connectionLimit: 2 ** 21 + 1 },
    /^connectionLimit got 2097153: expected a whole number from 1 to 2097152$/,
  ],
  [{ maxHeadBytes: 2 ** 31 }, /^maxHeadBytes got/],
  [{ headTimeoutMs: 0 }, /^headTimeoutMs got 0/],
  [{ answerTimeoutMs: 0 }, /^answerTimeoutMs got 0/],
  [{ maxBacklogBytes: -1 }, /^maxBacklogBytes got -1/],
  [{ phase: -1 }, /^phase got -1/],
  [{ phases: 0.5 }, /^phases got 0.5/],
  [{ nagle: 'no' }, /^nagle got 'no': expected true or false$/],
  [{ ping: 'ping' }, /^ping got 'ping': expected an object of two strings/],
  [{ ping: { text: 'ping' } }, /^ping got an object: expected/],
  [{ ping: { text: '', events: ':\n\n' } }, /^ping got an object: expected .* not empty/],
  [{ policy: {} }, /^policy got an object: expected an object \{ headers, address, decide \}/],
  [{ policy: { decide: () => {}, header: ['cookie'] } }, /^policy got an object: expected/],
  [{ policy: () => {} }, /^policy got a function: expected/],
  [{ policy: { decide: () => {}, headers: 'cookie' } }, /^policy got an object: expected/],
  [{ policy: { decide: () => {}, headers: ['Cookie'] } }, /^policy got an object: expected .*lower case/],
  [{ policy: { decide: () => {}, address: 'yes' } }, /^policy got an object: expected/],
  [{ maxHeadsPerAddress: 0 }, /^maxHeadsPerAddress got 0/],
  [{ proxies: '10.0.0.0/8' }, /^proxies got '10.0.0.0\/8': expected an array of addresses or ranges/],
  [{ proxies: ['10.0.0.0/33'] }, /^proxies got an array: expected/],
  [{ proxies: ['localhost'] }, /^proxies got an array: expected/],
  [{ onClose: 1 }, /^onClose got 1: expected a function$/],
  [{ server: () => {} }, /^server got a function: expected a server of node:http/],
  [{ pingInterval: 1000 }, /^there is no option 'pingInterval': the options are policy, /],
  [{ constructor: 1 }, /^there is no option 'constructor'/],
  [{ ownTables: true }, /^there is no option 'ownTables'/],
];
for (const [options, line] of BAD) {
  const [[name, value]] = Object.entries(options);
  test(`a Hold refuses ${name} ${JSON.stringify(value) ?? typeof value} (${String(value)})`, () => {
    assert.throws(
      () => new Hold(/** @type {any} */ (options)),
      (error) => withCode('BAD_OPTION')(error) && line.test(/** @type {Error} */ (error).message),
    );
  });
}

test('a Hold refuses options that are not an object', () => {
  for (const options of [null, 5, 'x'])
    assert.throws(() => new Hold(/** @type {any} */ (options)), withCode('BAD_OPTION'), String(options));
});

test('an option that is undefined gets its default', () => {
  const settings = settingsOf({ shards: undefined, capacity: undefined, onClose: undefined });
  assert.deepEqual([settings.shards, settings.phases, settings.onClose], [1, 1, undefined]);
  assert.ok(settings.capacity >= 1 && settings.connectionLimit >= settings.capacity);
});

test('derived options can not be given: they are computed from the others', () => {
  const { phases, userTimeoutMs, reportsAddresses } = settingsOf({ shards: 3, pingIntervalMs: 10_000 });
  assert.deepEqual([phases, userTimeoutMs, reportsAddresses], [3, 20_000, false]);
  assert.equal(settingsOf({ pingIntervalMs: 10 }).userTimeoutMs, 5000);
});

test('the native core gets numbers in the order of the table', () => {
  const numbers = nativeOptions(settingsOf({ shards: 2, nagle: true, maxBacklogBytes: 7 }));
  const names = OPTIONS.filter(({ isNative }) => isNative).map(({ name }) => name);
  const byName = Object.fromEntries(names.map((name, i) => [name, numbers[i]]));
  assert.equal(numbers.length, names.length);
  assert.deepEqual([byName.shards, byName.nagle, byName.maxBacklogBytes], [2, 1, 7]);
  assert.ok(numbers.every(Number.isFinite));
});

test('a transport picks its options from those of the server', () => {
  assert.deepEqual(holdOptionsIn({ shards: 2, port: 8888, dashboard: 'auto', nagle: true }), {
    shards: 2,
    nagle: true,
  });
});
