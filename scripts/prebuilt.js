/*
 * Makes the native cores that come with the package: one file for each kind of machine, in native/prebuilt/. Those that are
 * up to date are kept.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { formatBytes } from '../lib/format.js';
import { optionLines } from '../lib/help.js';
import { option, readOptions, text } from '../lib/options.js';
import { readVersion } from '../lib/version.js';
import { fileOf } from '../native/prebuilt.js';
import { build } from './prebuilt/build.js';
import { hashOfSources, isUpToDate, noteIn, sha256Of } from './prebuilt/manifest.js';
import { targetCalled, targets } from './prebuilt/targets.js';
import { findRust, pythonWithZig, ZIG } from './prebuilt/toolchain.js';

const OPTIONS = [
  option(
    'rust-src',
    'rustSrc',
    text('DIR', 'a folder'),
    '',
    'sources of the standard library (its folder library), of the version of rustc; default: the component rust-src of rustup',
  ),
];

/** @typedef {import('./prebuilt/targets.js').Target} Target */

async function main() {
  const { values, words, help, version } = readOptions(
    OPTIONS,
    process.argv.slice(2),
    process.env,
    targets.length,
  );
  if (help) return void process.stdout.write(helpText());
  if (version) return void process.stdout.write(`${readVersion()}\n`);
  const wanted = words.length === 0 ? targets : words.map(findTarget);
  const rustSrc = values.rustSrc ? resolve(String(values.rustSrc)) : '';
  const rust = findRust();
  const tools = `rustc ${rust.version}, zig ${ZIG}`;
  for (const target of wanted) {
    const problem = await make(target, rust, tools, rustSrc);
    if (problem) process.exitCode = 1;
    say(`${target.name}: ${problem || describe(target)}`);
  }
}

/**
 * @param {Target} target @param {import('./prebuilt/toolchain.js').Rust} rust @param {string} tools @param {string} rustSrc
 * @returns {Promise<string>} why it was not built, or ''
 */
async function make(target, rust, tools, rustSrc) {
  if (isUpToDate(target.name, tools)) return '';
  try {
    const sources = hashOfSources(); // before: whoever edits one meanwhile gets another hash
    const std = build(target, rust, await pythonWithZig(), rustSrc);
    noteIn(target.name, { sha256: sha256Of(fileOf(target.name)), sources, tools, std });
    return '';
  } catch (error) {
    if (error instanceof HoldfastError) return `not built: ${messageOf(error)}`;
    throw error;
  }
}

/** @param {string} name @returns {Target} */
function findTarget(name) {
  const target = targetCalled(name);
  if (target) return target;
  const names = targets.map((one) => one.name).join(', ');
  throw new HoldfastError('BAD_TARGET', `unknown target '${name}': expected ${names}`);
}

/** @param {Target} target */
const describe = ({ name }) => formatBytes(statSync(fileOf(name)).size);

/** @param {string} line */
const say = (line) => process.stdout.write(`prebuilt: ${line}\n`);

const helpText = () => `Usage: npm run prebuilt [-- TARGET…] [options]

Makes native/prebuilt/TARGET.node: ${targets.map(({ name }) => name).join(', ')}.

${optionLines(OPTIONS)}
`;

main().catch((error) => exitWith('prebuilt', error));
