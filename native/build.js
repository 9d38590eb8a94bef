/*
 * Builds the addon with cargo, as `npm install` does. Where it can't, it says in one line why, and that the http
 * transport serves; npm install goes on.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDON } from './index.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? join(FOLDER, 'target');

/** @returns {string} why it was not built, '' where it was */
function build() {
  if (process.env.HOLDFAST_NATIVE === 'off') return 'HOLDFAST_NATIVE is off';
  if (process.platform !== 'linux') return `it is for Linux, and this is ${process.platform}`;
  if (spawnSync('cargo', ['--version']).error) return 'cargo is not here (https://rustup.rs)';
  process.stdout.write('holdfast: building the native core with cargo, about half a minute the first time\n');
  const { status } = spawnSync('cargo', ['build', '--release', '--locked'], {
    cwd: FOLDER,
    stdio: 'inherit',
  });
  if (status !== 0) return `cargo ended with status ${status}`;
  // Renamed into its place: a process that has the old one loaded keeps it whole.
  copyFileSync(join(TARGET, 'release', 'libholdfast_native.so'), `${ADDON}.new`);
  renameSync(`${ADDON}.new`, ADDON);
  return '';
}

const why = build();
process.stdout.write(
  why
    ? `holdfast: the native core was not built: ${why}. The http transport serves.\n`
    : 'holdfast: the native core is built\n',
);
