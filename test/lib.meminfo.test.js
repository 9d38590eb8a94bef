import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseMeminfo } from '../lib/meminfo.js';

test('used memory is neither free nor cache, and SwapCached is not taken for Cached', () => {
  const memory = parseMeminfo(
    'MemTotal:  1000 kB\nMemFree: 300 kB\nMemAvailable: 400 kB\nBuffers: 50 kB\nCached: 150 kB\nSlab: 70 kB\nSwapCached: 9 kB\n',
  );
  assert.deepEqual(memory, {
    totalBytes: 1_024_000,
    usedBytes: 512_000,
    freeBytes: 307_200,
    availableBytes: 409_600,
    cachedBytes: 204_800,
    slabBytes: 71_680,
  });
});

test('a real /proc/meminfo is parsed, and a missing row reads 0', () => {
  const text = readFileSync(new URL('fixtures/meminfo.txt', import.meta.url), 'utf8');
  assert.equal(parseMeminfo(text).totalBytes, 24_684_096 * 1024);
  assert.equal(parseMeminfo('').availableBytes, 0);
});
