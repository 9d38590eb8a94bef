/*
 * What a release is called: versions, the changelog, package.json, and what npm would publish.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TARGETS } from '../native/prebuilt.js';
import { fileProblems, publishProblems, sizeProblems } from '../scripts/release/tarball.js';
import {
  changelogProblems,
  manifestProblems,
  newestIn,
  versionProblems,
  versionsIn,
} from '../scripts/release/versions.js';

const TODAY = '2026-11-22';
const CHANGELOG = `# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-20

### Added

- Something.

## [1.1.0] - 2026-10-01

- Older.
`;

describe('versions', () => {
  const texts = {
    'package-lock.json': JSON.stringify({
      version: '1.2.0',
      packages: { '': { version: '1.2.0' }, fleet: { version: '1.2.0' }, scripts: { version: '1.2.0' } },
    }),
    'fleet/package.json': '{ "version": "1.2.0" }',
    'native/Cargo.toml': '[workspace.package]\nversion = "1.2.0"\n',
    'native/Cargo.lock': 'name = "holdfast-core"\nversion = "1.2.0"\n\nname = "napi"\nversion = "3.0.0"\n',
    'CHANGELOG.md': CHANGELOG,
  };

  test('agree', () => {
    const found = versionsIn(texts);
    assert.equal(found.length, 8);
    assert.deepEqual(versionProblems('1.2.0', found), []);
  });

  for (const path of Object.keys(texts))
    test(`a different one in ${path} is found`, () => {
      const text = texts[/** @type {keyof typeof texts} */ (path)].replace('1.2.0', '1.1.9');
      const problems = versionProblems('1.2.0', versionsIn({ ...texts, [path]: text }));
      assert.equal(problems.length, 1, problems.join());
      assert.match(problems[0], /has 1\.1\.9, and package\.json has 1\.2\.0$/);
    });

  test('a missing one is found', () => {
    const problems = versionProblems('1.2.0', versionsIn({ 'native/Cargo.toml': '[workspace]\n' }));
    assert.deepEqual(problems, ['native/Cargo.toml has none, and package.json has 1.2.0']);
  });
});

test('the changelog needs a release with a date and something to say, and nothing that is not released', () => {
  assert.deepEqual(changelogProblems(CHANGELOG, TODAY), []);
  assert.deepEqual(newestIn(CHANGELOG), {
    version: '1.2.0',
    date: '2026-11-20',
    body: '### Added\n\n- Something.',
  });
  for (const [from, to, problem] of /** @type {[string | RegExp, string, RegExp][]} */ ([
    [/## \[1.*/s, '', /^it has no release/],
    [' - 2026-11-20', '', /^1\.2\.0 has the date ''/],
    ['2026-11-20', '2026-13-20', /^1\.2\.0 has the date '2026-13-20'/],
    ['2026-11-20', '2026-11-23', /^1\.2\.0 has the date 2026-11-23, and today is 2026-11-22$/],
    ['### Added\n\n- Something.', '', /^1\.2\.0 says nothing$/],
    ['[Unreleased]\n', '[Unreleased]\n\n- More.\n', /^there are changes under Unreleased/],
  ])) {
    const problems = changelogProblems(CHANGELOG.replace(from, to), TODAY);
    assert.equal(problems.length, 1, `${problems}`);
    assert.match(problems[0], problem);
  }
});

test('package.json has to be publishable, and what it names has to exist', () => {
  const good = {
    name: 'holdfast',
    description: 'text',
    license: 'MIT',
    engines: { node: '>=20.19' },
    bin: { holdfast: 'server.js' },
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
  };
  const problemsOf = (/** @type {object} */ change, engine = '>=20.19', missing = '') =>
    manifestProblems({ ...good, ...change }, engine, (path) => path !== missing);
  assert.deepEqual(problemsOf({}), []);
  assert.match(problemsOf({ private: true })[0], /^private is set/);
  assert.match(problemsOf({ name: 'other' })[0], /^the name is other/);
  assert.match(problemsOf({ description: '' })[0], /no description/);
  assert.match(problemsOf({ license: 'ISC' })[0], /^the licence is ISC/);
  assert.match(problemsOf({ engines: { node: '*' } }, '*')[0], /^engines\.node is \*/);
  assert.match(problemsOf({}, '>=22.0')[0], /the lock file has >=22\.0$/);
  assert.deepEqual(problemsOf({}, undefined, 'server.js'), ['server.js does not exist']);
  assert.deepEqual(problemsOf({}, undefined, './index.d.ts'), ['./index.d.ts does not exist']);
});

test('the tarball has what is needed, nothing else, and is not too large', () => {
  const missing = fileProblems([]).map((line) => line.replace(/ is missing$/, ''));
  for (const file of [
    'server.js',
    'THIRD-PARTY.md',
    ...TARGETS.map((target) => `native/prebuilt/${target}.node`),
  ])
    assert.ok(missing.includes(file), file);
  assert.deepEqual(
    fileProblems([...missing, 'lib/errors.js', 'docs/deploy/nginx.conf', 'node_modules/chalk/test.log']),
    [],
  );
  for (const stray of [
    'test/x.js',
    'native/target/a',
    'native/holdfast.node',
    'native/prebuilt/linux-x64-gnu.node.123',
    'lib/.env',
    'logs/a.csv',
    'docs/million.md',
    'docs/deploy.md.orig',
    'lib/key.pem',
  ])
    assert.deepEqual(fileProblems([...missing, stray]), [`${stray} does not belong into it`]);
  assert.deepEqual(sizeProblems({ size: 1e6, unpackedSize: 2e6 }), []);
  assert.deepEqual(sizeProblems({ size: 9e6, unpackedSize: 2e7 + 1 }).length, 2);
});

test('what npm would publish is this version, without complaints', () => {
  const manifest = { name: 'holdfast', version: '1.2.0' };
  const login = 'npm warn publish This command requires you to be logged in to a registry (dry-run)\n';
  assert.deepEqual(publishProblems(manifest, { id: 'holdfast@1.2.0' }, login), []);
  const correction = 'npm warn publish "bin[holdfast]" script name was cleaned';
  assert.deepEqual(publishProblems(manifest, { id: 'holdfast@1.2.0' }, `${login}${correction}\n`), [
    correction,
  ]);
  assert.match(
    publishProblems(manifest, { id: 'holdfast@1.1.0' }, '')[0],
    /^it would publish holdfast@1\.1\.0/,
  );
});
