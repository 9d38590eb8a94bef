/*
 * The licences of what users get, and the notices that come with them.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isAllowed, licenceProblems, linkedCrates, runtimePaths } from '../scripts/release/licences.js';
import { makeNotices, textOf } from '../scripts/release/notices.js';
import { temporaryFolder } from './helpers/server.js';

describe('licences', () => {
  test('are allowed if they ask only for a notice', () => {
    for (const good of ['MIT', 'GPL-3.0 OR MIT', '(MIT OR Apache-2.0) AND Unicode-3.0', 'MIT/Apache-2.0'])
      assert.ok(isAllowed(good), good);
    for (const bad of ['GPL-3.0', 'MIT AND GPL-3.0', '(GPL-2.0 OR GPL-3.0) AND MIT', '', 'UNLICENSED'])
      assert.ok(!isAllowed(bad), bad);
    assert.deepEqual(licenceProblems([{ name: 'a', version: '1.0.0', licence: '' }]), [
      "a 1.0.0 has the licence 'none'",
    ]);
  });

  test('are those of what npm installs, found as Node finds it', () => {
    const packages = {
      '': { version: '1.0.0', dependencies: { a: '1' }, optionalDependencies: { b: '1', absent: '1' } },
      'node_modules/a': { version: '1.0.0', dependencies: { b: '2', '@x/c': '1' } },
      'node_modules/a/node_modules/b': { version: '2.0.0', dependencies: { '@x/c': '1' } },
      'node_modules/b': { version: '1.0.0' },
      'node_modules/@x/c': { version: '1.0.0' },
      'node_modules/only-for-tests': { version: '1.0.0' },
    };
    assert.deepEqual(runtimePaths(packages), [
      'node_modules/@x/c',
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/b',
    ]);
  });

  test('are those of the crates that are linked, not of those that only run in the compiler', () => {
    const crate = (/** @type {string} */ name, kind = 'lib') => ({
      id: name,
      name,
      version: '1.0.0',
      license: 'MIT',
      manifest_path: `/crates/${name}/Cargo.toml`,
      targets: [{ kind: [kind] }],
    });
    const dep = (/** @type {string} */ pkg, /** @type {string | null} */ kind = null) => ({
      pkg,
      dep_kinds: [{ kind }],
    });
    const nodes = [
      { id: 'holdfast-native', deps: [dep('linked'), dep('derive'), dep('builder', 'build')] },
      { id: 'linked', deps: [dep('below')] },
      { id: 'derive', deps: [dep('syn')] },
    ];
    const packages = ['holdfast-native', 'linked', 'below', 'builder', 'syn'].map((name) => crate(name));
    const metadata = {
      packages: [...packages, crate('derive', 'proc-macro')],
      resolve: { root: 'holdfast-native', nodes },
    };
    assert.deepEqual(
      linkedCrates(metadata).map(({ name }) => name),
      ['below', 'linked'],
    );
  });

  test('come with the package: each text once, MIT where there is a choice', (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'LICENSE-APACHE'), 'apache');
    writeFileSync(join(folder, 'LICENSE-MIT'), 'mit\r\n');
    const part = { name: 'a', version: '1.0.0', licence: 'MIT OR Apache-2.0', folder };
    assert.equal(textOf(part, ''), 'mit');
    const bare = { ...part, name: 'b', licence: 'MIT', folder: temporaryFolder(t) };
    assert.equal(textOf(bare, 'MIT\n\nCopyright (c) us\n'), 'MIT\n\nCopyright (c) the authors of b');
    assert.throws(() => textOf({ ...bare, licence: 'ISC' }, ''), /no file with its text/);
    const notices = makeNotices([part, { ...part, name: 'c' }], [bare], () => 'mit', 'standard');
    assert.match(notices, /- a 1\.0\.0: MIT OR Apache-2\.0\n- c 1\.0\.0/);
    assert.equal(notices.match(/```\nmit\n```/g)?.length, 1);
    assert.match(notices, /### a, c\n/);
    assert.match(notices, /- b 1\.0\.0: MIT\n/);
  });
});
