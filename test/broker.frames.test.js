import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BLOCK_HEAD, decodeFrame, encodeFrames, framesOf, makeBlock, timeOf } from '../broker/disk/frames.js';
import { keyOf } from '../broker/disk/keys.js';

const DRAFTS = [
  { topics: ['a'], data: '', private: false, id: undefined, type: undefined, retry: undefined },
  { topics: ['ä', '', '𝄞'.repeat(100)], data: '\0\r\n€', private: true, id: '', type: '', retry: 0 },
  {
    topics: Array.from({ length: 300 }, (_, n) => `t${n}`),
    data: 'x'.repeat(70_000),
    private: false,
    id: 'i'.repeat(200),
    type: undefined,
    retry: 2 ** 32 - 1,
  },
  { topics: ['b'], data: 'y', private: false, id: undefined, type: 'type', retry: 127 },
];

test('what is decoded is what was encoded', () => {
  const block = makeBlock(1_700_000_000_123, [encodeFrames(DRAFTS)]);
  assert.equal(timeOf(block), 1_700_000_000_123);
  const frames = [...framesOf(block, BLOCK_HEAD)];
  assert.deepEqual(
    frames.map(({ id }) => id),
    DRAFTS.map(({ id }) => id),
  );
  const decoded = frames.map((frame, index) => decodeFrame(block, frame, 10 + index, 5));
  assert.deepEqual(
    decoded,
    DRAFTS.map((draft, index) => ({ sequence: 10 + index, at: 5, ...draft })),
  );
});

test('a small publication needs few bytes besides its texts', () => {
  const [draft] = DRAFTS;
  const { length } = encodeFrames([{ ...draft, topics: ['https://example.com/1'], data: 'x'.repeat(200) }]);
  assert.equal(length, 221 + 7);
});

test('damaged frames are noticed', () => {
  const frames = encodeFrames(DRAFTS);
  for (const cut of [1, 6, 100, frames.length - 1])
    assert.throws(() => [...framesOf(frames.subarray(0, cut))], { code: 'STORE' }, `${cut}`);
  const [first] = framesOf(frames);
  const wrong = Uint8Array.from(frames.subarray(first.start, first.end));
  wrong[5] = 200; // topics
  assert.throws(() => decodeFrame(wrong, first, 1, 1), { code: 'STORE' });
  assert.throws(() => timeOf(Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 0)), { code: 'STORE' });
  assert.throws(() => timeOf(Uint8Array.of(1)), { code: 'STORE' });
});

test('every id has a key of its own, and none is too long for LMDB', () => {
  const long = 'x'.repeat(501);
  const ids = ['', 'a', '\0', 'x'.repeat(500), long, `${long}y`, keyOf(long).toString('latin1').slice(1)];
  const keys = ids.map(keyOf);
  assert.equal(new Set(keys.map((key) => key.toString('hex'))).size, ids.length);
  assert.ok(keys.every(({ length }) => length >= 1 && length <= 501));
});
