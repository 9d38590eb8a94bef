import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineSplitter, lineOf, messageIn } from '../lib/jsonlines.js';

test('a message arrives in whatever pieces its line comes', () => {
  const message = { type: 'say', given: ['a\nb', 'ä'] };
  const text = `${lineOf(message)}${lineOf({ type: 'done' })}`;
  for (let size = 1; size <= text.length; size++) {
    const splitter = new LineSplitter();
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const found = pieces.flatMap((piece) => [...splitter.take(piece)]).map(messageIn);
    assert.deepEqual(found, [message, { type: 'done' }], `in pieces of ${size}`);
  }
});

test('what is not an object with a type is no message', () => {
  for (const line of ['', '{', 'null', '7', '"a"', '[]', '{}', '{"type":7}', 'GET / HTTP/1.1\r'])
    assert.equal(messageIn(line), null, line);
});
