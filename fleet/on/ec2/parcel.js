/*
 * What travels to another machine so that it can run a drone: exactly the files that the drone imports, without
 * comments and indentation, and the packages that they need, pinned as they are here.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ENTRY = 'fleet/drone.js';
/** It serves the addon alone, which does not travel: it is built for one machine, and large. */
const LEFT_BEHIND = new Set(['fleet/drone/dial.native.js']);

const IMPORT = /\b(?:from|import)\s*\(?\s*'([^']+)'/g;

/**
 * Texts and regular expressions, so that nothing in them is taken for a comment; comments; and the white space that
 * begins a line. A regular expression is told from a division by what stands before it.
 */
const PIECES = new RegExp(
  [
    String.raw`'(?:\\.|[^'\\\n])*'`,
    String.raw`"(?:\\.|[^"\\\n])*"`,
    '`(?:\\\\[^]|[^`\\\\])*`',
    String.raw`(?<comment>\s*(?:\/\*[^]*?\*\/|\/\/[^\n]*))`,
    String.raw`(?<indent>\n\s+)`,
    String.raw`(?<=[(,=:[!&|?{};>\n]\s*|\breturn )\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/`,
  ].join('|'),
  'g',
);

/** @typedef {Record<string, string>} Files texts by their paths, with slashes */

/**
 * @param {string} source
 * @returns {string} the same program, shorter
 */
export function strip(source) {
  const bare = source.replace(PIECES, (piece, ...rest) => {
    const { comment, indent } = rest.at(-1);
    if (comment !== undefined) return '';
    return indent === undefined ? piece : '\n';
  });
  return bare.trimStart();
}

/**
 * @param {string} text a program without comments
 * @returns {string[]} what it imports, as it says it
 */
function importsOf(text) {
  return [...text.matchAll(IMPORT)].map(([, name]) => name);
}

/**
 * The drone and all that it imports, and the packages among that.
 * @returns {{ files: Files, packages: Set<string> }}
 */
export function collect() {
  /** @type {Files} */
  const files = {};
  /** @type {Set<string>} */
  const packages = new Set();
  const waiting = [ENTRY];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (path in files || LEFT_BEHIND.has(path)) continue;
    files[path] = strip(readFileSync(join(ROOT, path), 'utf8'));
    for (const name of importsOf(files[path])) {
      if (name.startsWith('.')) waiting.push(posix.join(posix.dirname(path), name));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  }
  return { files, packages };
}

/** @typedef {{ version: string, integrity?: string, dependencies?: Record<string, string> }} Locked */

/**
 * The part of our package-lock.json that these packages are, with their checksums.
 * @param {Iterable<string>} names
 * @returns {Record<string, Locked>} by folder, as in the lock
 */
function lockedOf(names) {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  /** @type {Record<string, Locked>} */
  const found = {};
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const folder = `node_modules/${name}`;
    if (folder in found) continue;
    const { version, integrity, dependencies } = packages[folder];
    found[folder] = { version, integrity, dependencies };
    waiting.push(...Object.keys(dependencies ?? {}));
  }
  return found;
}

/**
 * @param {Iterable<string>} names of packages
 * @returns {Files} package.json and package-lock.json, for `npm ci`
 */
export function manifests(names) {
  const locked = lockedOf(names);
  const dependencies = Object.fromEntries(
    [...names].map((name) => [name, locked[`node_modules/${name}`].version]),
  );
  const own = { name: 'holdfast-drone', version: '0.0.0', dependencies };
  return {
    'package.json': JSON.stringify({ ...own, private: true, type: 'module' }),
    'package-lock.json': JSON.stringify({ ...own, lockfileVersion: 3, packages: { '': own, ...locked } }),
  };
}

/** @returns {Buffer} all of it in one piece, for UNPACK */
export function pack() {
  const { files, packages } = collect();
  const text = JSON.stringify({ ...files, ...manifests(packages) });
  return brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT } });
}

/** The program that lays the piece out in the folder where it runs; it stands in the file 'parcel' there. */
export const UNPACK = `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
const files = JSON.parse(brotliDecompressSync(readFileSync('parcel')).toString());
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
`;
