/*
 * Gets the native core ready; `npm install` runs it. An installed package has a prebuilt core for most machines, so there is
 * nothing to do, unless HOLDFAST_BUILD=1 says otherwise. In a clone, and without a prebuilt core that loads, it builds with
 * cargo. If that is not possible either, it prints the reason in one line, and npm install continues: Hold and the server
 * then hold streams in JS.
 *
 * Installed as a package, it builds in a temporary folder: cargo's intermediate files take 170 MB and would never be used
 * again. In a clone, and if CARGO_TARGET_DIR is set, they are kept for the next build.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDON, origin } from './index.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const IS_PACKAGE = FOLDER.split(sep).includes('node_modules');
const IS_FORCED = !['', '0', 'off'].includes(process.env.HOLDFAST_BUILD ?? '');

/** @param {string} line */
const say = (line) => process.stdout.write(`holdfast: ${line}\n`);

function main() {
  if (IS_PACKAGE && !IS_FORCED && origin)
    return say(`native core loaded (${origin}); HOLDFAST_BUILD=1 npm rebuild holdfast builds it here`);
  const why = attempt();
  if (!why) return say('native core built');
  say(`native core not built: ${why}; ${instead()}`);
}

/** @returns {string} why it was not built, '' on success. Folders may be missing or read-only */
function attempt() {
  try {
    return build();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** @returns {string} what happens without a new one */
function instead() {
  if (!origin) return 'streams will be held in JS';
  return `the one ${origin === 'built' ? 'built before' : `for ${origin}`} is used`;
}

/** @returns {string} why it was not built, '' on success */
function build() {
  if (process.env.HOLDFAST_NATIVE === 'off') return 'HOLDFAST_NATIVE is off';
  if (process.platform !== 'linux') return `it needs Linux, and this is ${process.platform}`;
  if (spawnSync('cargo', ['--version']).error) return 'cargo is not installed (https://rustup.rs)';
  say('building the native core with cargo; the first time takes about a minute');
  const kept = keptTarget();
  const target = kept ?? mkdtempSync(join(tmpdir(), 'holdfast-build-'));
  try {
    return buildIn(target);
  } finally {
    if (!kept) rmSync(target, { recursive: true, force: true });
  }
}

/** @returns {string | undefined} cargo's folder, undefined for a temporary one */
function keptTarget() {
  if (process.env.CARGO_TARGET_DIR) return process.env.CARGO_TARGET_DIR;
  return IS_PACKAGE ? undefined : join(FOLDER, 'target');
}

/** @param {string} target @returns {string} why it was not built, '' on success */
function buildIn(target) {
  const { status } = spawnSync('cargo', ['build', '--release', '--locked'], {
    cwd: FOLDER,
    stdio: 'inherit',
    env: { ...process.env, CARGO_TARGET_DIR: target },
  });
  if (status !== 0) return `cargo exited with status ${status}`;
  // Renamed, not overwritten: a process that has loaded the old one keeps it intact.
  copyFileSync(join(target, 'release', 'libholdfast_native.so'), `${ADDON}.new`);
  renameSync(`${ADDON}.new`, ADDON);
  return '';
}

main();
