/*
 * `npm run release:check`: every check passes for what is right, and finds what is wrong.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { machineHere, TARGETS, targetOf } from '../native/prebuilt.js';
import { targetCalled } from '../scripts/prebuilt/targets.js';
import { elfProblems, entryProblems, parseElf, pathProblems } from '../scripts/release/cores.js';
import { isAllowed, licenceProblems, linkedCrates, runtimePaths } from '../scripts/release/licences.js';
import { linkProblems } from '../scripts/release/links.js';
import { makeNotices, textOf } from '../scripts/release/notices.js';
import { fileProblems, publishProblems, sizeProblems } from '../scripts/release/tarball.js';
import { typeProblems } from '../scripts/release/types.js';
import {
  changelogProblems,
  manifestProblems,
  newestIn,
  versionProblems,
  versionsIn,
} from '../scripts/release/versions.js';
import { prebuild } from './helpers/package.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

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
  assert.deepEqual(fileProblems([...missing, 'lib/errors.js', 'node_modules/chalk/test.log']), []);
  for (const stray of [
    'test/x.js',
    'native/target/a',
    'native/holdfast.node',
    'native/prebuilt/linux-x64-gnu.node.123',
    'lib/.env',
    'logs/a.csv',
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

test('types that a compiler of a user would reject are found', (t) => {
  const consumer = temporaryFolder(t);
  const folder = join(consumer, 'node_modules/holdfast');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), readFileSync(join(ROOT, 'package.json')));
  writeFileSync(join(folder, 'index.js'), 'export class Hold {}\n');
  writeFileSync(join(folder, 'index.d.ts'), 'export class Hold {}\n');
  const problems = typeProblems(ROOT, consumer).join('\n');
  assert.match(problems, /esm\.mts.*Hub/);
  assert.match(problems, /cjs\.cts.*Hub/);
});

test('run on this repository, it finds nothing but native cores of other machines', (t) => {
  const problem = prebuild();
  if (problem) return t.skip(problem);
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release.js', 'check'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(stderr, '');
  const lines = stdout.trim().split('\n');
  const isOther = (/** @type {string} */ line) =>
    TARGETS.some((target) => target !== targetOf(machineHere()) && line.startsWith(`✗ ${target} `));
  const isOnlyAbsence = (/** @type {string} */ line) =>
    /^✗ files +(native\/prebuilt\/\S+ is missing(; |$))+$/.test(line);
  const isUnreleased = (/** @type {string} */ line) =>
    /^✗ changelog +there are changes under Unreleased/.test(line);
  const wrong = lines.filter((line) => !line.startsWith('✓ '));
  assert.deepEqual(
    wrong.filter((line) => !isOther(line) && !isOnlyAbsence(line) && !isUnreleased(line)),
    [],
  );
  assert.equal(status, wrong.length === 0 ? 0 : 1);
  for (const name of [
    'versions',
    'package.json',
    'types',
    'licences',
    'links',
    'publish',
    targetOf(machineHere()),
  ])
    assert.match(stdout, new RegExp(`^✓ ${name} +\\S`, 'm'));
});

test('what it does not know is an error of one line', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/release.js', 'publish'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(stderr, "release: unknown 'publish': expected check or notices\n");
  assert.equal(status, 1);
});
