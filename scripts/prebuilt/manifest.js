/*
 * native/prebuilt/prebuilt.json says what each file was made from, so that an outdated one is noticed, even one that this
 * machine can't load.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FOLDER, fileOf } from '../../native/prebuilt.js';
import { CRATE } from './build.js';

/** @typedef {{ sha256: string, sources: string, tools: string, std: string }} Entry hashes of the file and of the sources; what built it; where Rust's standard library is from */
/** @typedef {Record<string, Entry>} Manifest by target */

/** How it is built counts as well. */
const RECIPE = ['build.js', 'targets.js', 'toolchain.js', '../../native/prebuilt.js'].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
const INPUTS = ['Cargo.toml', 'Cargo.lock', 'build.rs', 'src', 'core/Cargo.toml', 'core/src'];

/** @param {string} [folder] @returns {Manifest} */
export function readManifest(folder = FOLDER) {
  const path = join(folder, 'prebuilt.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
}

/** @param {string} target @param {Entry} entry */
export function noteIn(target, entry) {
  const entries = Object.entries({ ...readManifest(), [target]: entry });
  const sorted = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  const path = join(FOLDER, 'prebuilt.json');
  writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(sorted, null, 2)}\n`);
  renameSync(`${path}.${process.pid}`, path);
}

/** @param {string} path @returns {string} '' if there is none */
export function sha256Of(path) {
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
}

/** @param {string} [crate] the folder of the crate @returns {string} a hash of everything that the native core is made from */
export function hashOfSources(crate = CRATE) {
  const hash = createHash('sha256');
  for (const path of INPUTS.flatMap((input) => filesOf(crate, input)).sort())
    hash.update(`${path}\n${sha256Of(join(crate, path))}\n`);
  for (const path of RECIPE) hash.update(sha256Of(path));
  return hash.digest('hex');
}

/** @param {string} crate @param {string} path @returns {string[]} */
function filesOf(crate, path) {
  if (/\.(toml|lock|rs)$/.test(path)) return [path];
  const names = readdirSync(join(crate, path), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.rs')).map((name) => join(path, name));
}

/** @param {string} target @param {string} tools @returns {boolean} whether its file is what the sources and these tools give */
export function isUpToDate(target, tools) {
  const entry = readManifest()[target];
  return (
    entry?.tools === tools && entry.sources === hashOfSources() && entry.sha256 === sha256Of(fileOf(target))
  );
}
