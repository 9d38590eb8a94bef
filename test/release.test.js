/*
 * `npm run release:check`: on this repository it finds nothing, and it compiles what a user would.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { machineHere, TARGETS, targetOf } from '../native/prebuilt.js';
import { typeProblems } from '../scripts/release/types.js';
import { prebuild } from './helpers/package.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

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

/** @param {import('node:test').TestContext} t @returns {string} a copy of the repository, to damage */
function copyOfRepository(t) {
  const folder = temporaryFolder(t);
  const { stdout } = spawnSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of [...stdout.trim().split('\n'), 'native/prebuilt'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

test('every check finds its own kind of mistake', (t) => {
  const problem = prebuild();
  if (problem) return t.skip(problem);
  const root = copyOfRepository(t);
  const edit = (
    /** @type {string} */ path,
    /** @type {string | RegExp} */ from,
    /** @type {string} */ to,
  ) => {
    const text = readFileSync(join(root, path), 'utf8');
    assert.notEqual(text, text.replace(from, to), path);
    writeFileSync(join(root, path), text.replace(from, to));
  };
  edit('fleet/package.json', /"version": ".+"/, '"version": "9.9.9"');
  edit('CHANGELOG.md', / - \d{4}-\d\d-\d\d/, ' - soon');
  edit('package.json', '"type": "module"', '"private": true,\n  "type": "module"');
  edit('package.json', '"server.js"', '"./server.js"'); // npm would correct it
  edit('index.d.ts', 'export class Hold', 'export class Held');
  edit('THIRD-PARTY.md', 'MIT', 'none');
  edit('README.md', '](ARCHITECTURE.md)', '](ARCHITEKTUR.md)');
  mkdirSync(join(root, 'lib/.env'));
  writeFileSync(join(root, 'lib/.env/secrets'), '');
  for (const target of TARGETS) cpSync('/bin/true', join(root, `native/prebuilt/${target}.node`));
  const { status, stdout, stderr } = check(root);
  assert.equal(status, 1, stderr);
  for (const line of [
    /^✗ versions +fleet\/package\.json has 9\.9\.9/m,
    /^✗ changelog +\S+ has the date 'soon'/m,
    /^✗ package\.json +private is set/m,
    /^✗ files .*lib\/\.env\/secrets does not belong into it/m,
    /^✗ types .*Hold/m,
    /^✗ licences +THIRD-PARTY\.md is outdated/m,
    /^✗ links +README\.md links to ARCHITEKTUR\.md: there is no ARCHITEKTUR\.md$/m,
    /^✗ publish +npm warn publish/m,
  ])
    assert.match(stdout, line);
  for (const target of TARGETS)
    assert.match(stdout, new RegExp(`^✗ ${target} .*it is no addon of Node; .*prebuilt\\.json`, 'm'));
});

/** @param {string} root */
function check(root) {
  return spawnSync(process.execPath, ['scripts/release.js', 'check'], { cwd: root, encoding: 'utf8' });
}

test('run on this repository, it finds nothing but native cores of other machines', (t) => {
  const problem = prebuild();
  if (problem) return t.skip(problem);
  const { status, stdout, stderr } = check(ROOT);
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
