/*
 * npm run release:check: everything that has to be right before a release, as a table. It changes nothing, and publishes
 * nothing. npm run notices writes THIRD-PARTY.md.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { CHECKS } from './release/checks.js';
import { noticesFor } from './release/notices.js';
import { pack, unpack } from './release/tarball.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ACTIONS = { check, notices };

/** @typedef {import('./release/checks.js').Release} Release */

function main() {
  const [action = 'check', stray] = process.argv.slice(2);
  if (!Object.hasOwn(ACTIONS, action) || stray !== undefined)
    throw new HoldfastError('BAD_OPTION', `unknown '${stray ?? action}': expected check or notices`);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'));
  try {
    ACTIONS[/** @type {keyof typeof ACTIONS} */ (action)](folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder a temporary one */
function check(folder) {
  const release = prepare(folder);
  const width = Math.max(...CHECKS.map(({ name }) => name.length));
  for (const { name, run } of CHECKS) {
    const { problems, note } = attempt(run, release);
    const mark = problems.length > 0 ? '✗' : '✓';
    process.stdout.write(`${mark} ${name.padEnd(width)}  ${problems.join('; ') || note}\n`);
    if (problems.length > 0) process.exitCode = 1;
  }
}

/** @param {string} folder @returns {Release} the package, as a user has it */
function prepare(folder) {
  const packed = pack(ROOT, folder);
  unpack(join(folder, packed.filename), join(folder, 'node_modules/holdfast'));
  return { root: ROOT, consumer: folder, packed, today: new Date().toISOString().slice(0, 10) };
}

/** A check that fails has found something as well. @param {import('./release/checks.js').Check['run']} run @param {Release} release */
function attempt(run, release) {
  try {
    return run(release);
  } catch (error) {
    return { problems: [messageOf(error)], note: '' };
  }
}

/** @param {string} folder */
function notices(folder) {
  writeFileSync(join(ROOT, 'THIRD-PARTY.md'), noticesFor(ROOT, pack(ROOT, folder).bundled));
  process.stdout.write('release: THIRD-PARTY.md is written\n');
}

try {
  main();
} catch (error) {
  exitWith('release', error);
}
