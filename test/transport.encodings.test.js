/*
 * How messages look on a stream, the same from the native core and from JS.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ENCODERS, Encoded, framedBytes, messageOf } from '../transport/encodings.js';
import { bodyOf } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, NEEDS_NATIVE, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @type {import('../transport/encodings.js').Message[]} */
const MESSAGES = [
  { data: '' },
  { data: 'plain' },
  { data: 'a\nb\r\nc\rd\n\re\n' },
  { data: '\n' },
  { id: '1', data: 'with an id' },
  { type: 'news', data: 'with a type' },
  { id: 'ü', type: 'ñ', data: 'grüße\nan alle \u{1f600}' },
  { id: '', type: '', data: 'with empty ones' },
  { id: '8', retry: 2 ** 31 - 1, data: 'with a retry' },
  { data: 'x'.repeat(70_000) },
  { data: 'a lone \ud800 surrogate' },
];

test('an event has its type, its retry, its id and each line of its data, in that order', () => {
  const { encode } = ENCODERS.events;
  assert.equal(encode({ data: 'a\nb\r\nc\rd' }), 'data: a\ndata: b\ndata: c\ndata: d\n\n');
  assert.equal(encode({ id: '7', type: 'news', data: '' }), 'event: news\nid: 7\ndata: \n\n');
  assert.equal(
    encode({ id: '7', type: 'news', retry: 2000, data: 'a' }),
    'event: news\nretry: 2000\nid: 7\ndata: a\n\n',
  );
});

test('text is the unchanged data', () => {
  assert.equal(ENCODERS.text.encode({ id: '7', type: 'news', data: 'a\nb' }), 'a\nb');
});

test('a message is encoded once for each encoding', () => {
  const message = new Encoded({ data: 'ü' });
  assert.equal(message.in('text'), message.in('text'));
  assert.deepEqual([message.in('text').length, message.in('events').length], [2, 10]);
  assert.equal(message.in('updates'), message.in('events'), 'the same bytes');
});

test('a string or bytes are the data of a message', () => {
  assert.deepEqual(messageOf('a'), { data: 'a' });
  assert.deepEqual(messageOf(Buffer.from('grüße')), { data: 'grüße' });
  assert.deepEqual(messageOf(new Uint8Array([97, 0xff])), { data: 'a\ufffd' });
  assert.deepEqual(messageOf(new Uint8Array()), { data: '' });
  const message = { id: '1', type: 'news', data: Buffer.from('__grüße__').subarray(2, -2) };
  assert.deepEqual(messageOf(message), {
    id: '1',
    type: 'news',
    retry: undefined,
    topic: undefined,
    data: 'grüße',
  });
});

test('invalid messages are refused, and the error says what was given', () => {
  for (const bad of [
    {},
    { data: 5 },
    { data: '', id: 5 },
    { data: '', id: 'a\rb' },
    { data: '', type: '\0' },
    { data: '', retry: 0 },
    { data: '', retry: 1.5 },
    { data: '', retry: 2 ** 31 },
    { data: '', retry: '1' },
    [],
    new ArrayBuffer(1),
    new DataView(new ArrayBuffer(1)),
    { data: [1] },
    42,
    5n,
    Symbol('a'),
    true,
    () => 'a',
    { toString: () => 'a' },
    null,
    undefined,
    { data: '', event: 'misspelled' },
  ])
    assert.throws(() => messageOf(/** @type {any} */ (bad)), withCode('BAD_ARGUMENT'));
  assert.throws(() => messageOf(/** @type {any} */ (undefined)), {
    message: 'a message must be a string, bytes or an object { id, type, retry, topic, data }, not undefined',
  });
  assert.throws(() => messageOf({ data: '', id: 'a\nb'.repeat(1000) }), withCode('BAD_ARGUMENT'));
});

test('a chunk has its size and two line ends; an empty payload is not written', () => {
  assert.equal(framedBytes(4, true), '4\r\nping\r\n'.length);
  assert.equal(framedBytes(31, true), 31 + '1f\r\n\r\n'.length);
  assert.equal(framedBytes(4, false), 4);
  assert.equal(framedBytes(0, true), 0);
});

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind
 * @returns {Promise<string[]>} what streams of each encoding and framing got of all messages, without the framing
 */
async function everyForm(t, kind) {
  const { hold, ask } = await startListening(t, kind, {
    policy: {
      decide: ({ target }) => ({
        hold: /** @type {import('holdfast').Encoding} */ (target.slice(1)),
        channels: ['all'],
      }),
    },
  });
  const clients = ['1.0', '1.1'].flatMap((version) =>
    ['/text', '/events', '/updates', '/ndjson'].map((target) => ask(target, {}, version)),
  );
  await until(() => hold.counters().streams === 8, 'eight streams');
  for (const message of MESSAGES) hold.publish('all', message);
  hold.publish('all', 'the end');
  for (const client of clients) await client.untilRead(/the end\W*$/);
  return clients.map(({ received }) => bodyOf(received));
}

for (const kind of KINDS) {
  test(`messages arrive in every encoding and framing (${kind})`, async (t) => {
    const encoded = (/** @type {import('../native/protocol.js').Encoding} */ encoding) =>
      [...MESSAGES, { data: 'the end' }]
        .map((message) => Buffer.from(ENCODERS[encoding].encode(message)).toString('latin1'))
        .join('');
    const forms = await everyForm(t, kind);
    const expected = [encoded('text'), encoded('events'), encoded('updates'), encoded('json')];
    assert.deepEqual(forms, [...expected, ...expected]);
  });
}

describe('the native core and JS', NEEDS_NATIVE, () => {
  test('write the same bytes', async (t) => {
    const [native, js] = [await everyForm(t, 'native'), await everyForm(t, 'JS')];
    assert.ok(native.every((received, i) => received === js[i]));
  });
});
