import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { test } from 'node:test';
import { parsePageSize, parseSockstat, parseStat, readHost } from '../monitor/host.js';

/** @param {string} name */
const fixture = (name) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8');

test('/proc/stat: nice counts as user, interrupts as sys, iowait as idle, steal only in the total', () => {
  assert.deepEqual(parseStat(fixture('stat.txt')), {
    cores: 2,
    user: 11_916,
    sys: 6654 + 572,
    idle: 525_410 + 507,
    total: 11_916 + 6654 + 572 + 525_410 + 507 + 38,
  });
});

test('/proc/net/sockstat: TCP sockets, and buffers in pages', () => {
  assert.deepEqual(parseSockstat(fixture('sockstat.txt'), 4096), {
    tcp: 30_009,
    bufferBytes: 4213 * 4096,
  });
});

test('the page size is found in the auxiliary vector', () => {
  const words = [3n, 64n, 6n, 65_536n, 0n, 0n];
  const bytes = Buffer.alloc(words.length * 8);
  for (const [i, word] of words.entries()) bytes.writeBigUInt64LE(word, i * 8);
  assert.equal(parsePageSize(bytes), 65_536);
  assert.equal(parsePageSize(Buffer.alloc(0)), 4096);
});

test('this machine can be read', { skip: platform() !== 'linux' && 'no /proc here' }, async () => {
  const host = await readHost();
  assert.ok(host && host.cpu.cores >= 1 && host.memory.totalBytes > host.memory.freeBytes);
});
