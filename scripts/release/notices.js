/*
 * THIRD-PARTY.md: whose software is in the package besides ours, and the licences that have to come with it. The crates are in
 * the prebuilt native cores; packages of npm that are in the tarball have their licences in their own folders.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { targets } from '../prebuilt/targets.js';
import { linkedCrates, npmParts, readMetadata } from './licences.js';

const INTRODUCTION = `# Third-party software

Written by \`npm run notices\`.

The prebuilt native cores (\`native/prebuilt/\`) contain the crates below, and the standard library of Rust (MIT or Apache-2.0,
copyright The Rust Project Contributors and the authors of the crates in it). The linker adds parts of LLVM (libunwind and
compiler-rt: Apache-2.0 with the LLVM exception) and, with glibc, the few functions that glibc links into every program (LGPL-2.1 with an exception for that).
`;

/** @typedef {import('./licences.js').Part} Part */
/** @typedef {import('./licences.js').CratePart} CratePart */

/**
 * @param {CratePart[]} crates
 * @param {Part[]} bundled packages of npm
 * @param {(crate: CratePart) => string} textOf the licence of a crate
 * @param {string} standard the licence of the standard library
 * @returns {string}
 */
export function makeNotices(crates, bundled, textOf, standard) {
  const rows = (/** @type {Part[]} */ parts) =>
    parts.map(({ name, version, licence }) => `- ${name} ${version}: ${licence}\n`).join('');
  /** @type {Map<string, string[]>} names by text */
  const texts = new Map([[standard, ['the standard library of Rust']]]);
  for (const crate of crates) {
    const text = textOf(crate);
    texts.set(text, [...(texts.get(text) ?? []), crate.name]);
  }
  const sections = [...texts].map(([text, names]) => `### ${names.join(', ')}\n\n\`\`\`\n${text}\n\`\`\`\n`);
  return [
    INTRODUCTION,
    `## Crates in the native core\n\n${rows(crates)}`,
    `## Packages of npm in the tarball\n\nTheir licences are in \`node_modules/\`.\n\n${rows(bundled)}`,
    '## Licences of the crates\n',
    ...sections,
  ].join('\n');
}

/**
 * @param {CratePart} crate
 * @param {string} standard the text of the MIT licence, for crates that have it without a file
 * @returns {string} the licence that we use it under: MIT if there is a choice
 */
export function textOf({ name, licence, folder }, standard) {
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying)/i.test(file));
  const file = files.find((one) => /mit/i.test(one)) ?? files[0];
  if (file) return readFileSync(join(folder, file), 'utf8').replaceAll('\r', '').trim();
  if (licence !== 'MIT') throw new Error(`${name} has the licence ${licence}, and no file with its text`);
  return licensedTo(`the authors of ${name}`, standard);
}

/** @param {string} owner @param {string} standard @returns {string} */
const licensedTo = (owner, standard) => standard.replace(/^Copyright .*$/m, `Copyright (c) ${owner}`).trim();

/** @param {string} root @returns {CratePart[]} those of all targets */
export function allCrates(root) {
  const lists = targets.map(({ triple }) => linkedCrates(readMetadata(join(root, 'native'), triple)));
  const byName = new Map(lists.flat().map((crate) => [`${crate.name} ${crate.version}`, crate]));
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @param {string} root @param {string[]} bundled names of the packages in the tarball @returns {string} */
export function noticesFor(root, bundled) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const parts = npmParts(root, packages).filter(({ name }) => bundled.includes(name));
  const mit = readFileSync(join(root, 'LICENSE'), 'utf8');
  const std = licensedTo('The Rust Project Contributors', mit);
  return makeNotices(allCrates(root), parts, (crate) => textOf(crate, mit), std);
}
