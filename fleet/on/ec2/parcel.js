/*
 * What another machine needs to run a drone: exactly the files that the drone imports, minified. They need no
 * packages, only Node.js.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { minify_sync } from 'terser';
import { COUNTS, HISTOGRAMS } from '../../drone/counters.js';
import { OPTIONS } from '../../drone/options.js';
import { PARAMS } from '../../drone/params.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ENTRY = 'fleet/drone.js';
/**
 * Only for the addon, which isn't sent: it is large, and built for one kind of machine; for drones started by hand; and for
 * topics, TLS and most formats, which would not fit.
 */
const NOT_SENT = new Set([
  'fleet/drone/dial.native.js',
  'native/index.js',
  'fleet/drone/help.js',
  'lib/variables.js',
  'fleet/drone/formats/index.js',
  'fleet/drone/topics/index.js',
  'fleet/drone/tls/index.js',
]);
/** Nobody reads them there. */
const HELP = [...PARAMS, ...OPTIONS, ...COUNTS, ...HISTOGRAMS].map(
  ({ help }) => `'${help.replaceAll("'", "\\'")}'`,
);

const IMPORT = /\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

/** @typedef {Record<string, string>} Files contents by path, with slashes */

/** @param {string} source @returns {string} the same module, shorter */
export function shorten(source) {
  // In JSON, double quotes are longer.
  const code = minify_sync(source, { module: true, ecma: 2020, format: { quote_style: 1 } }).code ?? '';
  return HELP.reduce((text, help) => text.replaceAll(help, "''"), code);
}

/**
 * @param {string} text a program without comments
 * @returns {string[]} what it imports, as written
 */
function importsOf(text) {
  return [...text.matchAll(IMPORT)].map(([, name]) => name);
}

/** @returns {Files} the drone and everything it imports @throws {Error} if that includes a package */
export function collect() {
  /** @type {Files} */
  const files = {};
  const waiting = [ENTRY];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (path in files || NOT_SENT.has(path)) continue;
    files[path] = shorten(readFileSync(join(ROOT, path), 'utf8'));
    for (const name of importsOf(files[path])) {
      if (name.startsWith('.')) waiting.push(posix.join(posix.dirname(path), name));
      else if (!name.startsWith('node:'))
        throw new Error(`${path} imports ${name}: a drone may not need packages`);
    }
  }
  return files;
}

/** @returns {Buffer} all files in one, for UNPACK */
export function pack() {
  const text = JSON.stringify({ ...collect(), 'package.json': '{"type":"module"}' });
  return brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT } });
}

/** The program that unpacks the file 'parcel' in its own folder. */
export const UNPACK = `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
const files = JSON.parse(brotliDecompressSync(readFileSync('parcel')).toString());
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
`;
