import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { option, readOptions, secret } from '../lib/options.js';
import { readSecret } from '../lib/secrets.js';
import { temporaryFolder } from './helpers/server.js';

test('a secret is the text itself, or the contents of a file without its last line break', (t) => {
  const file = join(temporaryFolder(t), 'secret');
  assert.equal(readSecret('text'), 'text');
  for (const [contents, expected] of [
    ['a b', 'a b'],
    ['a\n', 'a'],
    ['a\r\n', 'a'],
    ['a\n\n', 'a\n'],
    ['@x', '@x'],
  ]) {
    writeFileSync(file, contents);
    assert.equal(readSecret(`@${file}`), expected);
  }
});

test("a file that can't be used is an error that names it, and not what is in it", (t) => {
  const folder = temporaryFolder(t);
  const [empty, large] = ['empty', 'large'].map((name) => join(folder, name));
  writeFileSync(empty, '\n');
  writeFileSync(large, 'x'.repeat(300_000));
  assert.throws(
    () => readSecret('@/no/such/file'),
    /^HoldfastError: can't read \/no\/such\/file \(ENOENT\)$/,
  );
  assert.throws(() => readSecret(`@${folder}`), /EISDIR/);
  assert.throws(() => readSecret('@'), /can't read {2}\(ENOENT\)/);
  assert.throws(() => readSecret(`@${empty}`), /empty is empty/);
  assert.throws(() => readSecret(`@${large}`), /large is too large: expected 262144 bytes at most/);
});

test('errors about an option with a secret name the option and the file, never the secret', () => {
  const table = [option('key', 'key', secret('KEY'), '', 'a key')];
  const read = (/** @type {string[]} */ args, env = {}) => readOptions(table, args, env).values.key;
  assert.equal(read(['--key', 'hush']), 'hush');
  assert.throws(() => read(['--key', '@/no/such/file']), /--key: can't read \/no\/such\/file/);
  assert.throws(() => read([], { HOLDFAST_KEY: '@/no/such/file' }), /HOLDFAST_KEY: can't read/);
  assert.throws(() => read(['--key', '']), /--key got '': expected a text, or @ and the path of a file/);
  const picky = [option('key', 'key', { ...secret('KEY'), read: () => undefined }, '', 'a key')];
  assert.throws(() => readOptions(picky, ['--key', 'hush'], {}), /--key got a bad value/);
});
