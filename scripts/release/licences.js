/*
 * The licences of everything that users get: packages of npm, those in the tarball included, and the crates in the native
 * core.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { HoldfastError } from '../../lib/errors.js';

/** Licences that ask for no more than a notice. */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 WITH LLVM-exception',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'Unicode-3.0',
  'Unlicense',
  'Zlib',
]);
/** Those that say it only in their documentation. @type {Map<string, string>} */
const READ_BY_HAND = new Map([['term-canvas', 'MIT']]);

/** @typedef {{ name: string, version: string, licence: string }} Part */
/** @typedef {Record<string, { version: string, license?: string, dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>, peerDependencies?: Record<string, string> }>} Locked */

/** @param {string} expression of SPDX, such as '(MIT OR GPL-2.0) AND ISC' @returns {boolean} */
export function isAllowed(expression) {
  const inner = /\(([^()]*)\)/.exec(expression);
  if (inner) return isAllowed(expression.replace(inner[0], isAllowed(inner[1]) ? 'MIT' : 'none'));
  return expression
    .split(/ OR |\//)
    .some((part) => part.split(' AND ').every((id) => ALLOWED.has(id.trim())));
}

/** @param {Part[]} parts @returns {string[]} */
export function licenceProblems(parts) {
  const wrong = parts.filter(({ licence }) => !isAllowed(licence));
  return wrong.map(
    ({ name, version, licence }) => `${name} ${version} has the licence '${licence || 'none'}'`,
  );
}

/** @param {Locked} packages of the lock file @returns {string[]} the paths of those that npm installs with the package */
export function runtimePaths(packages) {
  /** @type {Set<string>} */
  const found = new Set();
  const queue = [''];
  for (const path of queue) {
    const { dependencies, optionalDependencies } = packages[path];
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const target = resolve(packages, path, name);
      if (target && !found.has(target)) queue.push(target);
      if (target) found.add(target);
    }
  }
  return [...found].sort();
}

/** As Node does it. @param {Locked} packages @param {string} from @param {string} name @returns {string | undefined} */
function resolve(packages, from, name) {
  const parts = from === '' ? [] : from.split('/node_modules/');
  for (let depth = parts.length; depth >= 0; depth--) {
    const base = parts.slice(0, depth).join('/node_modules/');
    const path = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`;
    if (packages[path]) return path;
  }
  return undefined; // an optional one for another system
}

/** @param {string} root @param {Locked} packages @returns {Part[]} */
export function npmParts(root, packages) {
  return runtimePaths(packages).map((path) => {
    const name = path.split('node_modules/').at(-1) ?? '';
    const { version, license } = packages[path];
    return { name, version, licence: license ?? installedLicence(join(root, path), name) };
  });
}

/** @param {string} folder @param {string} name @returns {string} '' if it is not known */
function installedLicence(folder, name) {
  const path = join(folder, 'package.json');
  const { license, licenses = [] } = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const types = licenses.map((/** @type {{ type: string }} */ { type }) => type);
  return license ?? (types.join(' OR ') || (READ_BY_HAND.get(name) ?? ''));
}

/** @typedef {{ id: string, name: string, version: string, license: string, manifest_path: string, targets: { kind: string[] }[] }} Crate */
/** @typedef {{ packages: Crate[], resolve: { root: string, nodes: { id: string, deps: { pkg: string, dep_kinds: { kind: string | null }[] }[] }[] } }} Metadata */
/** @typedef {Part & { folder: string }} CratePart */

/** @param {string} crate its folder @param {string} triple @returns {Metadata} */
export function readMetadata(crate, triple) {
  const args = ['metadata', '--locked', '--format-version', '1', '--filter-platform', triple];
  const { status, stdout, stderr, error } = spawnSync('cargo', args, {
    cwd: crate,
    encoding: 'utf8',
    maxBuffer: 64e6,
  });
  if (error) throw new HoldfastError('NO_CARGO', 'cargo is not installed (https://rustup.rs)');
  if (status !== 0) throw new HoldfastError('CARGO_FAILED', stderr.trim().split('\n')[0]);
  return JSON.parse(stdout);
}

/** @param {Metadata} metadata @returns {CratePart[]} the crates of others whose code is in the native core */
export function linkedCrates({ packages, resolve: { root, nodes } }) {
  const crates = new Map(packages.map((one) => [one.id, one]));
  const deps = new Map(nodes.map((node) => [node.id, node.deps]));
  const found = new Set([root]);
  for (const id of found)
    for (const { pkg, dep_kinds } of deps.get(id) ?? [])
      if (dep_kinds.some(({ kind }) => kind === null) && !isMacro(crates.get(pkg))) found.add(pkg);
  return [...found]
    .map((id) => /** @type {Crate} */ (crates.get(id)))
    .filter(({ name }) => !name.startsWith('holdfast-'))
    .map(({ name, version, license, manifest_path }) => ({
      name,
      version,
      licence: license,
      folder: dirname(manifest_path),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @param {Crate | undefined} crate @returns {boolean} whether it only runs in the compiler */
const isMacro = (crate) => crate?.targets.some(({ kind }) => kind.includes('proc-macro')) ?? false;
