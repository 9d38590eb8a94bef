/*
 * What npm would publish.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { HoldfastError } from '../../lib/errors.js';
import { formatBytes } from '../../lib/format.js';
import { TARGETS } from '../../native/prebuilt.js';

export const MOST_PACKED_BYTES = 8e6;
export const MOST_UNPACKED_BYTES = 20e6;

const NEEDED = [
  'package.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'THIRD-PARTY.md',
  'server.js',
  'worker.js',
  'index.js',
  'index.d.ts',
  'docs/api.md',
  'Dockerfile',
  'compose.yaml',
  'docs/deploy.md',
  'docs/grafana.json',
  'docs/guide.md',
  'docs/recipes.md',
  'hub/protocol/page.html',
  'native/index.js',
  'native/build.js',
  'native/Cargo.toml',
  'native/Cargo.lock',
  'native/core/src/lib.rs',
  'native/prebuilt/prebuilt.json',
  ...TARGETS.map((target) => `native/prebuilt/${target}.node`),
];
const ALLOWED_FOLDERS = [
  'broker',
  'hub',
  'lib',
  'limits',
  'monitor',
  'native',
  'node_modules',
  'primary',
  'transport',
];
/** What users of the package read. */
const PAGES = /^docs\/((api|deploy|guide|recipes)\.md$|grafana\.json$|deploy\/)/;
const FORBIDDEN =
  /^native\/(target|fuzz|core\/tests|holdfast\.node)|^monitor\/unused\/|(^|\/)(\.env|\.npmrc|\.git)|\.(log|pem|key|tgz)$|\.test\.js$|\.node\.\d+$/;

/** @typedef {{ id: string, size: number, unpackedSize: number, files: { path: string }[], bundled: string[] }} Packed */

/** @param {string[]} files @returns {string[]} */
export function fileProblems(files) {
  const own = files.filter((file) => !file.startsWith('node_modules/'));
  const isInPlace = (/** @type {string} */ file) =>
    !file.includes('/') || ALLOWED_FOLDERS.includes(file.split('/')[0]) || PAGES.test(file);
  const isStrange = (/** @type {string} */ file) => FORBIDDEN.test(file) || !isInPlace(file);
  return [
    ...NEEDED.filter((file) => !files.includes(file)).map((file) => `${file} is missing`),
    ...own.filter(isStrange).map((file) => `${file} does not belong into it`),
  ];
}

/** @param {{ size: number, unpackedSize: number }} packed @returns {string[]} */
export function sizeProblems({ size, unpackedSize }) {
  const over = (/** @type {string} */ what, /** @type {number} */ is, /** @type {number} */ most) =>
    is > most ? [`${what} it is ${formatBytes(is)}: at most ${formatBytes(most)}`] : [];
  return [...over('packed', size, MOST_PACKED_BYTES), ...over('unpacked', unpackedSize, MOST_UNPACKED_BYTES)];
}

/** @param {Record<string, any>} manifest @param {{ id: string }} packed @param {string} warnings of npm @returns {string[]} */
export function publishProblems(manifest, packed, warnings) {
  const id = `${manifest.name}@${manifest.version}`;
  const said = warnings.split('\n').filter((line) => /^npm (warn|error) publish /.test(line));
  const problems = said.filter((line) => !/requires you to be logged in/.test(line)); // not for a dry run
  return [...(packed.id === id ? [] : [`it would publish ${packed.id}, not ${id}`]), ...problems];
}

/** @param {string} root @param {string} folder @returns {Packed & { filename: string }} what is in the tarball that it made */
export function pack(root, folder) {
  return JSON.parse(
    npm(root, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]).stdout,
  )[0];
}

/** @param {string} tarball @param {string} folder in which the package will be @throws {HoldfastError} NO_TAR */
export function unpack(tarball, folder) {
  mkdirSync(folder, { recursive: true });
  const { status, error } = spawnSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1']);
  if (error || status !== 0) throw new HoldfastError('NO_TAR', `tar can't unpack ${tarball}`);
}

/** @param {string} root @returns {{ packed: Packed, warnings: string }} what npm publish would do */
export function publishDry(root) {
  const { stdout, stderr } = npm(root, ['publish', '--dry-run', '--json', '--ignore-scripts']);
  const answer = JSON.parse(stdout);
  return { packed: answer.id ? answer : Object.values(answer)[0], warnings: stderr };
}

/** @param {string} cwd @param {string[]} args */
export function npm(cwd, args) {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 64e6 });
  if (status === 0) return { stdout, stderr };
  throw new HoldfastError('NPM_FAILED', `npm ${args[0]}: ${stderr.trim().split('\n')[0]}`);
}
