/*
 * Cursors: opaque positions that only the hub can read.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { Cursors } from '../hub/streams/cursor.js';

const KEY = randomBytes(16);
const cursors = new Cursors({ epoch: 0xfedcba98, key: KEY });

test('a cursor gives back its sequence, from the first to the last', () => {
  for (const sequence of [0, 1, 255, 65_536, 2 ** 32, 2 ** 48 - 1])
    assert.equal(cursors.read(cursors.of(sequence)), sequence);
});

test('a cursor is 23 characters that need no escaping in a header, and begins with #', () => {
  for (let sequence = 0; sequence < 1000; sequence++) assert.match(cursors.of(sequence), /^#[\w-]{22}$/);
});

test('cursors that follow each other look unrelated', () => {
  const [one, other] = [1000, 1001].map((sequence) =>
    Buffer.from(cursors.of(sequence).slice(1), 'base64url'),
  );
  assert.ok(one.filter((byte, i) => byte === other[i]).length < 4);
});

test('another node with the same key and epoch reads it, and one with another key or epoch does not', () => {
  const text = cursors.of(42);
  assert.equal(new Cursors({ epoch: 0xfedcba98, key: KEY }).read(text), 42);
  assert.equal(new Cursors({ epoch: 0xfedcba99, key: KEY }).read(text), undefined);
  assert.equal(new Cursors({ epoch: 0xfedcba98, key: randomBytes(16) }).read(text), undefined);
});

test('whatever is no cursor is not read as one', () => {
  const text = cursors.of(7);
  for (const wrong of [
    '',
    '#',
    'earliest',
    text.slice(1),
    `${text}A`,
    text.slice(0, -1),
    `#${'A'.repeat(22)}`,
    `#${'é'.repeat(22)}`,
    ` ${text}`,
  ])
    assert.equal(cursors.read(wrong), undefined, wrong);
});

test('a cursor with a changed character is not read', () => {
  const text = cursors.of(7);
  for (let i = 1; i < 22; i++) {
    const changed = text.slice(0, i) + (text[i] === 'x' ? 'y' : 'x') + text.slice(i + 1);
    assert.equal(cursors.read(changed), undefined);
  }
});
