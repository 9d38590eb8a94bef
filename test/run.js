/*
 * Runs tests: node test/run.js [unit|js|native|all]
 *
 *     unit     those that start no process and no server; seconds
 *     js       all but the next
 *     native   those that run cargo. Never next to the others: cargo takes all cores, and their servers would be late
 *     all      js, then native
 *
 * With HOLDFAST_SKIPS=fail, a skip that helpers/skips.js does not expect fails the run.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
/** What a test imports that starts something. */
const STARTS =
  /node:child_process|playwright-core|\b(startServer|run)\b.*'\.\/helpers\/server\.js'|helpers\/(browser|client|dialers|hold|moto|namespace|package|proxy|tmux)\.js/;
const USES_CARGO = /^native\.(cargo|package)\./;

const REPORTERS = [
  ['spec', 'stdout'],
  [join(FOLDER, 'helpers/skips.js'), 'stderr'],
].flatMap(([reporter, to]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${to}`]);

/** @param {string} name @returns {boolean} */
const isUnit = (name) => !STARTS.test(readFileSync(join(FOLDER, name), 'utf8'));

/** @param {(name: string) => boolean} wanted @param {number} concurrency @returns {boolean} whether they passed */
function run(wanted, concurrency) {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.test.js') && wanted(name));
  const paths = files.map((name) => join(FOLDER, name));
  const args = ['--test', `--test-concurrency=${concurrency}`, ...REPORTERS, ...paths];
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status === 0;
}

/** @type {Record<string, () => boolean>} */
const GROUPS = {
  unit: () => run((name) => isUnit(name), 3),
  js: () => run((name) => !USES_CARGO.test(name), 3),
  native: () => run((name) => USES_CARGO.test(name), 1),
  all: () => [GROUPS.js(), GROUPS.native()].every(Boolean),
};

const group = process.argv[2] ?? 'all';
if (!Object.hasOwn(GROUPS, group)) {
  process.stderr.write(`test/run.js: got '${group}', expected one of ${Object.keys(GROUPS).join(', ')}\n`);
  process.exit(1);
}
process.exit(GROUPS[group]() ? 0 : 1);
