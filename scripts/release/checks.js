/*
 * What has to be right before a release: a row per check. Each returns its problems, one line each.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { formatBytes, formatNoun } from '../../lib/format.js';
import { hashOfSources, readManifest, sha256Of } from '../prebuilt/manifest.js';
import { targets } from '../prebuilt/targets.js';
import { elfProblems, entryProblems, loadProblems, pathProblems, readElf } from './cores.js';
import { licenceProblems, npmParts } from './licences.js';
import { linkProblems } from './links.js';
import { allCrates, noticesFor } from './notices.js';
import { fileProblems, publishDry, publishProblems, sizeProblems } from './tarball.js';
import { typeProblems } from './types.js';
import { changelogProblems, manifestProblems, versionProblems, versionsIn } from './versions.js';

/** Where the version is. */
const VERSIONED = [
  'package-lock.json',
  'fleet/package.json',
  'scripts/package.json',
  'native/Cargo.toml',
  'native/Cargo.lock',
  'CHANGELOG.md',
];

/**
 * @typedef {object} Release what is checked
 * @property {string} root of the repository
 * @property {string} consumer a folder in which the tarball is unpacked as node_modules/holdfast
 * @property {import('./tarball.js').Packed} packed
 * @property {string} today
 */
/** @typedef {{ problems: string[], note: string }} Result */
/** @typedef {{ name: string, run: (release: Release) => Result }} Check */

/** @param {string} root @param {string} path */
const read = (root, path) => readFileSync(join(root, path), 'utf8');
/** @param {string} root @param {string} path */
const json = (root, path) => JSON.parse(read(root, path));
/** @param {Release} release */
const unpacked = ({ consumer }) => join(consumer, 'node_modules/holdfast');

/** @param {Release} release @returns {Result} */
function checkVersions({ root }) {
  const { version } = json(root, 'package.json');
  const texts = Object.fromEntries(VERSIONED.map((path) => [path, read(root, path)]));
  const found = versionsIn(texts);
  return { problems: versionProblems(version, found), note: `${version} in ${found.length + 1} places` };
}

/** @param {Release} release @returns {Result} */
function checkManifest(release) {
  const { root } = release;
  const manifest = json(root, 'package.json');
  const engine = json(root, 'package-lock.json').packages[''].engines?.node;
  const exists = (/** @type {string} */ path) => existsSync(join(unpacked(release), path));
  return { problems: manifestProblems(manifest, engine, exists), note: `Node ${engine}` };
}

/** @param {Release} release @returns {Result} */
function checkFiles({ packed }) {
  const problems = [...fileProblems(packed.files.map(({ path }) => path)), ...sizeProblems(packed)];
  const sizes = `${formatBytes(packed.size)}, unpacked ${formatBytes(packed.unpackedSize)}`;
  return { problems, note: `${formatNoun(packed.files.length, 'file')}, ${sizes}` };
}

/** @param {Release} release @param {import('../prebuilt/targets.js').Target} target @returns {Result} */
function checkCore(release, target) {
  const prebuilt = join(unpacked(release), 'native/prebuilt');
  const path = join(prebuilt, `${target.name}.node`);
  if (!existsSync(path)) return { problems: ['it is not in the tarball: run npm run prebuilt'], note: '' };
  const now = { sha256: sha256Of(path), sources: hashOfSources(join(release.root, 'native')) };
  const entry = readManifest(prebuilt)[target.name];
  const problems = [
    ...elfProblems(target, readElf(path)),
    ...pathProblems(readFileSync(path), [`${homedir()}/`, release.root]),
    ...entryProblems(entry, now),
    ...loadProblems(target.name, path),
  ];
  const libc = target.glibc ? `glibc ${target.glibc}` : 'musl';
  return {
    problems,
    note: `${formatBytes(statSync(path).size)}, ${libc}, ${entry?.tools}, std: ${entry?.std}`,
  };
}

/** @param {Release} release @returns {Result} */
function checkLicences({ root, packed }) {
  const packages = npmParts(root, json(root, 'package-lock.json').packages);
  const crates = allCrates(root);
  const notices = existsSync(join(root, 'THIRD-PARTY.md')) ? read(root, 'THIRD-PARTY.md') : '';
  const isOld = notices !== noticesFor(root, packed.bundled);
  const problems = licenceProblems([...packages, ...crates]);
  if (isOld) problems.push('THIRD-PARTY.md is outdated: run npm run notices');
  const counts = `${formatNoun(packages.length, 'package')} and ${formatNoun(crates.length, 'crate')}`;
  return { problems, note: counts };
}

/** @param {Release} release @returns {Result} */
function checkLinks({ root }) {
  const files = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'];
  const readLinked = (/** @type {string} */ path) => {
    if (!existsSync(join(root, path))) return null;
    return statSync(join(root, path)).isDirectory() ? '' : read(root, path);
  };
  const problems = files.flatMap((path) => linkProblems(path, read(root, path), readLinked));
  return { problems, note: files.join(', ') };
}

/** @param {Release} release @returns {Result} */
function checkPublish({ root }) {
  const { packed, warnings } = publishDry(root);
  const problems = publishProblems(json(root, 'package.json'), packed, warnings);
  return { problems, note: `npm publish --dry-run: ${packed.id}` };
}

/** @type {Check[]} */
export const CHECKS = [
  { name: 'versions', run: checkVersions },
  {
    name: 'changelog',
    run: ({ root, today }) => {
      const text = read(root, 'CHANGELOG.md');
      return {
        problems: changelogProblems(text, today),
        note: /^## \[\d.*$/m.exec(text)?.[0].slice(3) ?? '',
      };
    },
  },
  { name: 'package.json', run: checkManifest },
  { name: 'files', run: checkFiles },
  ...targets.map((target) => ({
    name: target.name,
    run: (/** @type {Release} */ release) => checkCore(release, target),
  })),
  {
    name: 'types',
    run: ({ root, consumer }) => ({
      problems: typeProblems(root, consumer),
      note: 'ES module and CommonJS, nodenext',
    }),
  },
  { name: 'licences', run: checkLicences },
  { name: 'links', run: checkLinks },
  { name: 'publish', run: checkPublish },
];
