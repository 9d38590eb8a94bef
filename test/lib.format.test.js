import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatBytes,
  formatCount,
  formatElapsed,
  formatMs,
  formatNoun,
  formatShort,
  printable,
} from '../lib/format.js';

test('bytes get the unit that leaves up to three digits', () => {
  assert.deepEqual([0, 64, 999, 1000, 8123, 123_456, 999_999, 5.6e9, -2048].map(formatBytes), [
    '0 B',
    '64 B',
    '999 B',
    '1.0 KB',
    '8.1 KB',
    '123 KB',
    '1.0 MB',
    '5.6 GB',
    '-2.0 KB',
  ]);
});

test('counts are grouped, axis labels are short, times look like clocks', () => {
  assert.equal(formatCount(1_234_567.4), '1,234,567');
  assert.deepEqual([0, 0.5, 12, 1500, 20_000, 3e6].map(formatShort), ['0', '0.5', '12', '1.5k', '20k', '3M']);
  assert.deepEqual([10.234, 99.94, 250].map(formatMs), ['10.2', '99.9', '250']);
  assert.equal(formatElapsed(3_723_999), '01:02:03');
});

test('one of a thing is not several', () => {
  assert.deepEqual(
    [0, 1, 2, 1234].map((n) => formatNoun(n, 'stream')),
    ['0 streams', '1 stream', '2 streams', '1,234 streams'],
  );
});

test('what a terminal would interpret is not printable: C0, C1, line separators, and changes of direction', () => {
  assert.equal(printable('\x1b[31m\x07\x9b2J\r\n\u2028a\u202eb\x7f'), ' [31m 2J a b ');
  assert.equal(printable('Zürich, 日本, €, 😀'), 'Zürich, 日本, €, 😀');
});
