/*
 * What another machine needs to run a drone: exactly the files that the drone imports, without comments and
 * indentation. They need no packages, only Node.js.
 */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ENTRY = 'fleet/drone.js';
/** Only for the addon, which isn't sent: it is large, and built for one kind of machine; and for drones started by hand. */
const NOT_SENT = new Set(['fleet/drone/dial.native.js', 'lib/variables.js']);

const IMPORT = /\b(?:from|import)\s*\(?\s*'([^']+)'/g;

/**
 * Matches strings and regular expressions, so that nothing in them is mistaken for a comment; comments; and the
 * indentation of a line. What precedes a slash tells a regular expression from a division.
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

/** @typedef {Record<string, string>} Files contents by path, with slashes */

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
    files[path] = strip(readFileSync(join(ROOT, path), 'utf8'));
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
