/*
 * The bytes of the records that the native core reads.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatByte, OPS } from '../native/protocol.js';
import { Commands } from '../transport/commands.js';

/** @param {string | Buffer} text */
const sized = (text) => {
  const bytes = Buffer.from(/** @type {string} */ (text));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return Buffer.concat([size, bytes]);
};
/** @param {...string} all */
const names = (...all) => sized(Buffer.concat(all.map(sized)));
/** @param {number} value */
const u16 = (value) => Buffer.from([value & 0xff, value >> 8]);
/** @param {number} value */
const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
/** @param {number} value */
const double = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
};
/** @param {...(number | Buffer)} parts bytes, and numbers of one byte */
const record = (...parts) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : part)));

/** @param {(commands: Commands) => void} write @returns {Buffer} */
function written(write) {
  const commands = new Commands();
  write(commands);
  return Buffer.from(commands.take());
}

const OPENING = {
  format: 0x11,
  head: 'HTTP/1.1 200 OK\r\nX: \xfc\r\n',
  welcomes: ['ü', Buffer.from([0])],
  channels: ['é'],
};
const OPENING_RECORD = record(
  OPS.opening,
  0x11,
  sized(Buffer.from(OPENING.head, 'latin1')),
  u16(2),
  sized('ü'),
  sized(Buffer.from([0])),
  u16(1),
  sized('é'),
);

test('a format is one byte: the encoding below, the framing above', () => {
  assert.deepEqual(
    [
      formatByte('text', false),
      formatByte('events', false),
      formatByte('text', true),
      formatByte('events', true),
    ],
    [0x00, 0x01, 0x10, 0x11],
  );
});

test('each operation is written with its operands', () => {
  const id = 2 ** 52 + 3;
  /** @type {[(commands: Commands) => void, Buffer][]} */
  const cases = [
    [(c) => c.refuse(id, 503), record(OPS.refuse, double(id), u16(503))],
    [
      (c) => c.respond(id, 'HTTP/1.1 200 OK\r\n', Buffer.from('ü')),
      record(OPS.respond, double(id), sized('HTTP/1.1 200 OK\r\n'), sized('ü')),
    ],
    [(c) => c.pass(id), record(OPS.pass, double(id))],
    [(c) => c.end(id), record(OPS.end, double(id))],
    [(c) => c.subscribe(id, 'é'), record(OPS.subscribe, double(id), sized('é'))],
    [(c) => c.unsubscribe(id, 'é'), record(OPS.unsubscribe, double(id), sized('é'))],
    [(c) => c.drain(70_000), record(OPS.drain, Buffer.from([0x70, 0x11, 1, 0]))],
    [(c) => c.send(id, { data: 'ü' }), record(OPS.send, double(id), 0, sized('ü'))],
    [(c) => c.write(id, 'ü'), record(OPS.write, double(id), sized('ü'))],
    [(c) => c.reply(id, 'ü'), record(OPS.reply, double(id), sized('ü'))],
    [(c) => c.write(id, Buffer.from('a')), record(OPS.write, double(id), sized('a'))],
    [
      (c) => c.publish(['news'], { id: '1', type: 't', data: '' }, undefined, 7),
      record(OPS.publish, u32(7), 1, names('news'), 3, sized('1'), sized('t'), sized('')),
    ],
    [
      (c) => c.publish([''], { id: '', data: 'a' }, undefined, 0),
      record(OPS.publish, u32(0), 1, names(''), 1, sized(''), sized('a')),
    ],
    [
      (c) => c.publish([''], { type: 't', retry: 1, data: 'a' }, undefined, 2 ** 32 - 1),
      record(OPS.publish, u32(2 ** 32 - 1), 1, names(''), 6, sized('t'), u32(1), sized('a')),
    ],
    [
      (c) => c.publish(['é', 'b'], { data: 'a' }, '#1', 7),
      record(OPS.publish, u32(7), 3, names('é', 'b'), sized('#1'), 0, sized('a')),
    ],
    [(c) => c.publish([], null, '#1', 0), record(OPS.publish, u32(0), 2, names(), sized('#1'))],
    [
      (c) => c.label(id, { subject: 7, token: 2 ** 32 - 1, expiresAtMs: 1.5 }),
      record(OPS.label, double(id), u32(7), u32(2 ** 32 - 1), double(1.5)),
    ],
    [(c) => c.label(id, {}), record(OPS.label, double(id), u32(0), u32(0), double(Number.POSITIVE_INFINITY))],
    [(c) => c.endChannel('é', 'revoked'), record(OPS.endChannel, 9, sized('é'))],
    [(c) => c.endLabelled('token', 7, 'expired'), record(OPS.endLabelled, 8, 1, u32(7))],
    [(c) => c.endUpdates('restarted'), record(OPS.endUpdates, 10)],
    [(c) => c.hold(id, OPENING), record(OPENING_RECORD, OPS.hold, double(id))],
    [
      (c) => c.remember('GET\n/\xfc', OPENING),
      record(OPENING_RECORD, OPS.remember, sized(Buffer.from('GET\n/\xfc', 'latin1'))),
    ],
  ];
  for (const [write, expected] of cases)
    assert.equal(written(write).toString('hex'), expected.toString('hex'), String(write));
});

test('streams that begin alike share an opening, others do not', () => {
  const other = { ...OPENING, channels: ['other'] };
  const records = written((commands) => {
    commands.hold(1, OPENING);
    commands.hold(2, { ...OPENING, welcomes: ['ü', new Uint8Array(1)] });
    commands.publish(['news'], { data: 'between' }, undefined, 0);
    commands.remember('GET', { ...OPENING });
    commands.hold(3, other);
  });
  const isOpening = (/** @type {number} */ at) =>
    records.subarray(at, at + OPENING_RECORD.length).equals(OPENING_RECORD);
  const found = [...records.keys()].filter(isOpening);
  assert.deepEqual(found, [0]);
  assert.ok(records.includes(sized('other')));
});

test('if an application overwrites a welcome between two streams, each gets its own version', () => {
  const welcome = Buffer.from('one');
  const records = written((commands) => {
    commands.hold(1, { ...OPENING, welcomes: [welcome] });
    welcome.write('two');
    commands.hold(2, { ...OPENING, welcomes: [welcome] });
  });
  assert.ok(records.includes('one') && records.includes('two'));
});

test('an opening is repeated in the next buffer', () => {
  const commands = new Commands();
  commands.hold(1, OPENING);
  const first = Buffer.from(commands.take());
  commands.hold(1, OPENING);
  assert.ok(first.equals(commands.take()));
  assert.equal(commands.take().length, 0);
});

test('the buffer grows without losing its contents, and is replaced after growing large', () => {
  const commands = new Commands();
  const long = 'ü'.repeat(1_000_000);
  commands.end(7);
  commands.publish(['news'], { data: long }, undefined, 0);
  const records = Buffer.from(commands.take());
  assert.ok(
    records.equals(record(OPS.end, double(7), OPS.publish, u32(0), 1, names('news'), 0, sized(long))),
  );
  assert.ok(commands.buffer.length < 10_000);
});
