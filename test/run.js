/*
 * Runs tests: node test/run.js [unit|js|node|native|all]
 *
 *     unit     those that start no process and no server; seconds
 *     js       all that do not run cargo
 *     node     the part of them that another version of Node might fail: not those about other programs, examples, the fleet, scripts and docs
 *     native   those that run cargo. Never next to the others: cargo takes all cores, and their servers would be late
 *     all      js, then native
 *
 * With HOLDFAST_SKIPS=fail, a skip that helpers/skips.js does not expect fails the run. With TEST_AGAIN=1, files that failed run
 * once more, alone: CI machines are shared, and a test that fails only next to others is reported, but does not stop a merge.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
/** What a test imports that starts something. */
const STARTS =
  /node:child_process|playwright-core|\b(startServer|run)\b.*'\.\/helpers\/server\.js'|helpers\/(browser|client|dialers|hold|memcached|moto|namespace|package|proxy|tmux)\.js/;
const USES_CARGO = /^native\.(cargo|package)\./;
/** What is tested here is mostly something other than our code on Node. */
const ABOUT_OTHERS = [
  /^(deploy|docs|examples|fleet|release|scripts)\./,
  /^(broker\.nats|handover\.fleet|hub\.browser|hub\.clients|monitor\.prometheus|monitor\.web\.page)\./,
  /^(native\.build|primary\.handover\.systemd|server\.nats|server\.nodes|tls\.clients)\./,
];

const REPORTERS = [
  ['spec', 'stdout'],
  [join(FOLDER, 'helpers/skips.js'), 'stderr'],
].flatMap(([reporter, to]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${to}`]);
/** Longer than any file takes: one that hangs fails, and does not use up the time of CI. */
const MOST_MS = 30 * 60_000;
/** If more files fail, something is broken, and running them again would only take time. */
const MOST_AGAIN = 8;

/** What was printed long ago is hard to find in the log of CI: it is said again at the end. @type {string[]} */
const remarks = [];

/** @param {string} name @returns {boolean} */
const isUnit = (name) => !STARTS.test(readFileSync(join(FOLDER, name), 'utf8'));

/** @param {string} name @returns {boolean} */
const isAboutOthers = (name) => ABOUT_OTHERS.some((pattern) => pattern.test(name));

/** @param {(name: string) => boolean} wanted @param {number} concurrency @returns {boolean} whether they passed */
function run(wanted, concurrency) {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.test.js') && wanted(name));
  const paths = files.map((name) => join(FOLDER, name));
  const first = runFiles(paths, concurrency);
  if (first.passed) return true;
  const names = first.failures.map((path) => basename(path)).join(', ') || 'no file, but the run';
  remarks.push(`failed: ${names}`);
  const { length } = first.failures;
  if (process.env.TEST_AGAIN !== '1' || length === 0 || length > MOST_AGAIN) return false;
  const { passed } = runFiles(first.failures, 1);
  remarks.push(`alone, they ${passed ? 'passed' : 'failed again'}`);
  return passed;
}

/** @param {string[]} paths @param {number} concurrency @returns {{ passed: boolean, failures: string[] }} */
function runFiles(paths, concurrency) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tests-'));
  const list = join(folder, 'failures');
  const env = { ...process.env, TEST_FAILURES: list };
  try {
    const limits = [`--test-concurrency=${concurrency}`, `--test-timeout=${MOST_MS}`];
    const args = ['--test', ...limits, ...REPORTERS, ...paths];
    const passed = spawnSync(process.execPath, args, { stdio: 'inherit', env }).status === 0;
    return { passed, failures: readFileSync(list, 'utf8').split('\n').filter(Boolean) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @type {Record<string, () => boolean>} */
const GROUPS = {
  unit: () => run(isUnit, 3),
  js: () => run((name) => !USES_CARGO.test(name), 3),
  node: () => run((name) => !USES_CARGO.test(name) && !isAboutOthers(name), 3),
  native: () => run((name) => USES_CARGO.test(name), 1),
  all: () => [GROUPS.js(), GROUPS.native()].every(Boolean),
};

const group = process.argv[2] ?? 'all';
if (!Object.hasOwn(GROUPS, group)) {
  process.stderr.write(`test/run.js: got '${group}', expected one of ${Object.keys(GROUPS).join(', ')}\n`);
  process.exit(1);
}
const passed = GROUPS[group]();
for (const line of remarks) process.stderr.write(`test/run.js: ${line}\n`);
process.exit(passed ? 0 : 1);
