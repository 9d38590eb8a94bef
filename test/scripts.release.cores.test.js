/*
 * The checks of the prebuilt native cores, and of links.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { targetCalled } from '../scripts/prebuilt/targets.js';
import { elfProblems, entryProblems, parseElf, pathProblems } from '../scripts/release/cores.js';
import { linkProblems } from '../scripts/release/links.js';

describe('a native core', () => {
  const gnu = targetCalled('linux-x64-gnu');
  const musl = targetCalled('linux-arm64-musl');
  const elf = {
    machine: 'Advanced Micro Devices X86-64',
    libraries: ['libc.so.6', 'ld-linux-x86-64.so.2'],
    glibc: ['2.2.5', '2.17'],
    exports: ['napi_register_module_v1'],
  };
  assert.ok(gnu && musl);

  test('is for its machine, and needs nothing newer than promised', () => {
    assert.deepEqual(elfProblems(gnu, elf), []);
    assert.deepEqual(elfProblems(gnu, { ...elf, glibc: ['2.2.5', '2.18', 'PRIVATE'] }), [
      'it needs GLIBC_2.18, and promised is 2.17',
      'it needs GLIBC_PRIVATE, and promised is 2.17',
    ]);
    assert.deepEqual(elfProblems(gnu, { ...elf, libraries: ['libgcc_s.so.1'] }), ['it needs libgcc_s.so.1']);
    assert.deepEqual(elfProblems(gnu, { ...elf, machine: 'AArch64' }), ["it is for 'AArch64'"]);
    assert.deepEqual(elfProblems(gnu, { ...elf, exports: [] }), ['it is no addon of Node']);
    const forMusl = { ...elf, machine: 'AArch64', libraries: ['libc.so'], glibc: [] };
    assert.deepEqual(elfProblems(musl, forMusl), []);
    assert.deepEqual(elfProblems(musl, { ...forMusl, glibc: ['2.17'] }), [
      'it needs GLIBC_2.17, and it is for musl',
    ]);
  });

  test('is read from what readelf says', () => {
    const text = `
  Machine:                           AArch64
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
  0x0010:   Name: GLIBC_2.17  Flags: none  Version: 2
     9: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND read@GLIBC_2.17 (2)
    57: 00000000000bf410  9000 FUNC    GLOBAL DEFAULT   11 napi_register_module_v1
`;
    assert.deepEqual(parseElf(text), {
      machine: 'AArch64',
      libraries: ['libc.so.6'],
      glibc: ['2.17'],
      exports: ['napi_register_module_v1'],
    });
  });

  test('contains no path of the machine that built it', () => {
    const bytes = Buffer.from('\0/home/me/.cargo/registry/x.rs\0');
    assert.deepEqual(pathProblems(bytes, ['/home/me/', '/src']), ['it contains /home/me/']);
  });

  test('is the one that was built, from the sources of this version', () => {
    const entry = { sha256: 'a', sources: 'b', tools: 'rustc', std: 'installed' };
    assert.deepEqual(entryProblems(entry, { sha256: 'a', sources: 'b' }), []);
    assert.match(entryProblems(entry, { sha256: 'x', sources: 'b' })[0], /^it is not the file/);
    assert.match(entryProblems(entry, { sha256: 'a', sources: 'x' })[0], /^it was built from other sources/);
    assert.match(entryProblems(undefined, { sha256: 'a', sources: 'b' })[0], /does not know it$/);
  });
});

test('links to files and headings that do not exist are found', () => {
  const files = new Map([
    ['docs/a.md', '# One `two` three\n'],
    ['LICENSE', 'MIT'],
  ]);
  const problemsOf = (/** @type {string} */ text) =>
    linkProblems('docs/x.md', text, (path) => files.get(path) ?? null);
  const good =
    '# Here\n[a](a.md#one-two-three) [b](../LICENSE) [c](#here) [d](https://example.com/x) ![e](a.md)\n';
  assert.deepEqual(problemsOf(`${good}\`[x](none.md)\`\n\`\`\`\n[y](none.md)\n\`\`\`\n`), []);
  assert.deepEqual(problemsOf('[a](none.md)'), ['docs/x.md links to none.md: there is no docs/none.md']);
  assert.match(problemsOf('[a](a.md#two)')[0], /docs\/a\.md has no such heading$/);
  assert.match(problemsOf('[a](#two)')[0], /has no such heading$/);
});
