import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { findLimits, LIMITS_FILE, SYSCTL_FILE } from '../limits/index.js';
import { pathOfSysctl, readMachine } from '../limits/kernel.js';
import { mergeLines, revertSteps, runSteps, stepsOf } from '../scripts/tune/apply.js';
import { STATE_FILE } from '../scripts/tune/backup.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

const BACKLOG = 'net.ipv4.tcp_max_syn_backlog';
/** Needs a backlog of 262,144, and nothing else that --only lets through. */
const ONLY_BACKLOG = ['--streams', '1000', '--open-rate', '1000000', '--only', BACKLOG];
const MACHINES = join(ROOT, 'test/fixtures/machines');

/** @typedef {import('../limits/kernel.js').Machine} Machine */

/** @param {string[]} args @param {string[]} [prefix] @param {object} [options] */
function tune(args, prefix = [], options = {}) {
  const [command, ...words] = [...prefix, process.execPath, join(ROOT, 'scripts/tune.js'), ...args];
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', cwd: ROOT, ...options });
  return { status, stdout, stderr };
}

/** @param {string} name @returns {Machine} */
const saved = (name) => JSON.parse(readFileSync(join(MACHINES, `${name}.json`), 'utf8'));

/**
 * A folder to use instead of /, with the sysctls of a saved machine as files.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [files] more files
 */
function makeRoot(t, files = {}) {
  const root = temporaryFolder(t);
  const sysctls = Object.entries(saved('laptop').sysctls).map(([name, text]) => [
    pathOfSysctl(name),
    `${text}\n`,
  ]);
  const limits = 'Max open files            1024                 4096                 files\n';
  for (const [path, text] of [...sysctls, ['proc/self/limits', limits], ...Object.entries(files)]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** @param {string} root @returns {Record<string, string>} everything in it: bytes, modes, links, folders */
function photograph(root) {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const stat = lstatSync(join(root, name));
      if (stat.isSymbolicLink()) return [name, `link to ${readlinkSync(join(root, name))}`];
      if (stat.isDirectory()) return [name, 'folder'];
      return [name, `${stat.mode.toString(8)} ${readFileSync(join(root, name), 'latin1')}`];
    }),
  );
}

/** @param {string} root @param {number} streams */
function stepsFor(root, streams) {
  const wish = { streams, pingIntervalMs: 20_000, openRate: 20_000, isFleetHere: true, sources: 100 };
  return stepsOf(root, findLimits(readMachine(root), { ...wish, transport: 'http', ports: [40_000] }));
}

/** @param {string} root @returns {string} its last line of output */
function revertAll(root) {
  const { status, stdout, stderr } = tune(['revert', '--root', root]);
  assert.equal(status, 0, stdout + stderr);
  return stdout.trim().split('\n').at(-1) ?? '';
}

test('check exits with 1 if a limit forbids the run, and says what would fit', () => {
  const args = ['check', '--streams', '1000000', '--transport', 'hold'];
  const { status, stdout } = tune([...args, '--machine', join(MACHINES, 'container.json')]);
  assert.equal(status, 1);
  assert.match(stdout, /^FORBIDS {2}memory of the control group/m);
  const fits = /What would fit: --streams (\d+): 16 workers/.exec(stdout)?.[1];
  const again = tune([
    '--streams',
    String(fits),
    '--transport',
    'hold',
    '--machine',
    join(MACHINES, 'container.json'),
  ]);
  assert.equal(again.status, 0, again.stdout);
});

test('no line of the table is wider than 100 columns, and every limit has a reason', () => {
  for (const name of ['laptop', 'container', 'tuned', 'this']) {
    for (const transport of ['http', 'hold']) {
      const args = ['--fleet', '--streams', '9000000', '--open-rate', '100000', '--transport', transport];
      const { stdout } = tune([...args, '--machine', join(MACHINES, `${name}.json`)]);
      const lines = stdout.split('\n');
      for (const line of lines) assert.ok(line.length <= 100, line);
      for (const [i, line] of lines.entries()) {
        if (/^(ok|advice|FORBIDS) /.test(line)) assert.match(lines[i + 1], /^ {9}\S/);
      }
    }
  }
});

test('check --machine gives the same result for what --json has printed', (t) => {
  const file = join(temporaryFolder(t), 'saved.json');
  const first = tune(['--streams', '60000', '--fleet', '--json']);
  writeFileSync(file, first.stdout);
  const second = tune(['--streams', '60000', '--fleet', '--json', '--machine', file]);
  assert.deepEqual(JSON.parse(second.stdout), JSON.parse(first.stdout));
  assert.ok(JSON.parse(first.stdout).findings.length > 10);
});

test('a dry run shows files, lines and values, and changes nothing', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  const { status, stdout } = tune(['apply', '--streams', '1000000', '--root', root, '--dry-run']);
  assert.equal(status, 0);
  assert.match(stdout, /would set net\.netfilter\.nf_conntrack_max from 262144 to \d+/);
  assert.match(stdout, /would write \S+\/etc\/sysctl\.d\/90-holdfast\.conf:\n {4}net\./);
  assert.deepEqual(photograph(root), before);
});

test('apply loads the sysctls and writes the files, after which check has nothing to change', (t) => {
  const root = makeRoot(t);
  const args = ['--streams', '600000', '--fleet', '--transport', 'http', '--root', root];
  assert.match(tune(['check', ...args]).stdout, /nofile \(hard\)/);
  const { status, stdout } = tune(['apply', ...args]);
  assert.equal(status, 0, stdout);
  assert.equal(readFileSync(join(root, pathOfSysctl('vm.compaction_proactiveness')), 'utf8'), '0\n');
  assert.match(readFileSync(join(root, SYSCTL_FILE), 'utf8'), /^net\.ipv4\.tcp_mem = \d+ \d+ \d+$/m);
  assert.match(readFileSync(join(root, LIMITS_FILE), 'utf8'), /^\* hard nofile \d+\nroot hard nofile \d+$/m);
  const { findings } = JSON.parse(tune(['check', ...args, '--json']).stdout);
  const unmet = findings.filter((/** @type {any} */ { isMet, fix }) => !isMet && fix.file === SYSCTL_FILE);
  assert.deepEqual(unmet, []);
});

test('revert restores every byte, mode and link, and removes new files', (t) => {
  const root = makeRoot(t, { 'etc/security/limits.d/90-holdfast.conf': '# mine, no newline at its end' });
  chmodSync(join(root, LIMITS_FILE), 0o600);
  mkdirSync(join(root, dirname(SYSCTL_FILE)), { recursive: true });
  symlinkSync('/dev/null', join(root, SYSCTL_FILE));
  const before = photograph(root);
  assert.equal(
    runSteps(stepsFor(root, 1_000_000), () => {}),
    0,
  );
  const applied = photograph(root);
  assert.match(applied[LIMITS_FILE.slice(1)], /^100600 # mine, no newline at its end\n\* hard/);
  assert.ok(lstatSync(join(root, SYSCTL_FILE)).isFile());
  revertAll(root);
  assert.deepEqual(photograph(root), before);
});

test('an apply that was interrupted after any step can be reverted', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  const { length } = stepsFor(root, 1_000_000);
  assert.ok(length > 6, `${length} steps`);
  for (let cut = 0; cut <= length; cut++) {
    runSteps(stepsFor(root, 1_000_000).slice(0, cut), () => {});
    assert.equal(existsSync(join(root, STATE_FILE)), cut > 0);
    revertAll(root);
    assert.deepEqual(photograph(root), before, `cut after ${cut}`);
  }
});

test('a second apply keeps the lines of the first, and one revert undoes both', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  runSteps(stepsFor(root, 1_000_000), () => {});
  const names = () =>
    readFileSync(join(root, SYSCTL_FILE), 'utf8')
      .split('\n')
      .map((line) => line.split(' = ')[0]);
  const first = names();
  runSteps(stepsFor(root, 2_000_000), () => {});
  assert.deepEqual(
    first.filter((name) => !names().includes(name)),
    [],
  );
  const files = [SYSCTL_FILE, LIMITS_FILE].map((file) => readFileSync(join(root, file), 'utf8'));
  assert.match(files[0], /^net\.netfilter\.nf_conntrack_max = 2004413$/m, 'a higher need raises it again');
  runSteps(stepsFor(root, 100_000), () => {});
  for (const [i, file] of [SYSCTL_FILE, LIMITS_FILE].entries())
    assert.equal(readFileSync(join(root, file), 'utf8'), files[i], 'fewer streams lower nothing');
  revertAll(root);
  assert.deepEqual(photograph(root), before);
});

test('an interrupted revert can be repeated', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  runSteps(stepsFor(root, 1_000_000), () => {});
  runSteps(revertSteps(root).steps.slice(0, 3), () => {});
  assert.notDeepEqual(photograph(root), before);
  revertAll(root);
  assert.deepEqual(photograph(root), before);
  assert.match(revertAll(root), /nothing was applied/);
});

test('a descriptor limit above fs.nr_open is not written, because nobody could log in', (t) => {
  const root = makeRoot(t);
  writeFileSync(join(root, pathOfSysctl('fs.nr_open')), '5000\n');
  const { status, stdout } = tune([
    'apply',
    '--streams',
    '600000',
    '--transport',
    'http',
    '--only',
    'nofile',
    '--root',
    root,
  ]);
  assert.equal(status, 1);
  assert.match(stdout, /can't .*above fs\.nr_open \(5000\)/);
  assert.equal(existsSync(join(root, LIMITS_FILE)), false);
});

test('an unreadable backup is reported, and nothing changes', (t) => {
  const root = makeRoot(t, { [STATE_FILE.slice(1)]: '{"version":1,' });
  const before = photograph(root);
  for (const action of ['apply', 'revert']) {
    const { status, stderr } = tune([action, '--streams', '1000000', '--root', root]);
    assert.equal(status, 1);
    assert.match(stderr, /^tune: can't use \S+tune\.json: .*; nothing was changed\n$/);
  }
  assert.deepEqual(photograph(root), before);
});

test('a line about the same setting is replaced, comments and other lines stay', () => {
  assert.equal(
    mergeLines('# a = 1\na = 1\n-b.c=2\nd = 3\n', ['a = 5', 'b.c = 6', 'e = 7']),
    '# a = 1\na = 5\nb.c = 6\nd = 3\ne = 7\n',
  );
  assert.equal(
    mergeLines('* hard nofile 9000\n* soft nofile 10\n', ['* hard nofile 5000', '* soft nofile 20']),
    '* hard nofile 9000\n* soft nofile 20\n',
  );
});

test('unknown commands and limits give one line each', () => {
  for (const [args, line] of /** @type {[string[], RegExp][]} */ ([
    [['undo'], /unknown command 'undo': expected check, apply, revert/],
    [['chekc'], /unknown command 'chekc': did you mean check\? expected check, apply, revert/],
    [['--only', 'net.core.nothing'], /--only got 'net\.core\.nothing', which is not a limit here/],
    [['apply', '--machine', 'x.json'], /--machine works with check only/],
    [['--machine', 'nowhere.json'], /nowhere\.json was not written by check --json/],
  ])) {
    const { status, stderr } = tune(args);
    assert.deepEqual([status, stderr.split('\n').length], [1, 2], stderr);
    assert.match(stderr, line);
  }
});

/** @returns {string} why apply can't be tried on this machine, or '' */
function whyNotHere() {
  if (process.getuid?.() !== 0) return 'not root';
  if (existsSync(STATE_FILE) || existsSync(SYSCTL_FILE))
    return 'the limits of this machine are tuned already: left alone';
  try {
    accessSync(`/${pathOfSysctl(BACKLOG)}`, constants.W_OK);
  } catch (error) {
    return `sysctls can't be written here (${error instanceof Error ? error.message : error})`;
  }
  return Number(readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8')) < 262_144
    ? ''
    : 'it is high enough already';
}

test('apply and revert for real: this machine is as it was before', { skip: whyNotHere() || false }, (t) => {
  const path = `/${pathOfSysctl(BACKLOG)}`;
  const before = readFileSync(path, 'utf8');
  const hadFolder = existsSync(dirname(STATE_FILE));
  t.after(() => {
    writeFileSync(path, before);
    rmSync(SYSCTL_FILE, { force: true });
    rmSync(STATE_FILE, { force: true });
    if (!hadFolder) rmSync(dirname(STATE_FILE), { recursive: true, force: true });
  });
  const applied = tune(['apply', ...ONLY_BACKLOG]);
  assert.equal(applied.status, 0, applied.stdout + applied.stderr);
  assert.equal(readFileSync(path, 'utf8'), '262144\n');
  assert.match(readFileSync(SYSCTL_FILE, 'utf8'), /\nnet\.ipv4\.tcp_max_syn_backlog = 262144\n$/);
  assert.match(tune(['apply', ...ONLY_BACKLOG]).stdout, /^nothing to change/);
  const reverted = tune(['revert']);
  assert.equal(reverted.status, 0, reverted.stdout + reverted.stderr);
  assert.equal(readFileSync(path, 'utf8'), before);
  assert.deepEqual([SYSCTL_FILE, STATE_FILE].filter(existsSync), []);
  assert.equal(existsSync(dirname(STATE_FILE)), hadFolder);
});

test('without permission to write the backup nothing changes, and the message says to run it as root', {
  skip: whyNotHere() || false,
}, (t) => {
  const nobody = { uid: 65_534, gid: 65_534 };
  if (tune(['--help'], [], nobody).status !== 0) return t.skip('other users can not read this folder');
  const before = readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8');
  const { status, stderr } = tune(['apply', ...ONLY_BACKLOG], [], nobody);
  assert.equal(status, 1);
  assert.match(stderr, /^tune: can't write \/var\/lib\/holdfast\/tune\.json \(EACCES\): run it as root/);
  assert.equal(readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8'), before);
});

/** A mount namespace with its own folders for what apply writes, and a read-only /proc/sys. */
const READ_ONLY = [
  'unshare',
  '-m',
  'sh',
  '-ec',
  'mkdir -p /etc/sysctl.d; mount -t tmpfs none /etc/sysctl.d; mount -t tmpfs none /var/lib; mount -o bind,ro /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; "$@"; status=$?; ls /etc/sysctl.d; exit $status',
  'sh',
];

test('read-only sysctls are reported one by one, and no file contains what was refused', (t) => {
  const [unshare, ...words] = READ_ONLY;
  const { status: made, stderr, error } = spawnSync(unshare, [...words, 'true'], { encoding: 'utf8' });
  if (made !== 0) return t.skip(`no mount namespace here: ${error?.message ?? stderr}`);
  const names = [BACKLOG, 'net.core.somaxconn'];
  const isLow = (/** @type {string} */ name) =>
    Number(readFileSync(`/${pathOfSysctl(name)}`, 'utf8')) < 262_144;
  if (!names.every(isLow)) return t.skip('the limits of this machine are high enough already');
  const args = ['apply', '--streams', '1000', '--open-rate', '1000000', '--only', names.join(',')];
  const { status, stdout } = tune(args, READ_ONLY);
  assert.equal(status, 1);
  for (const name of names) {
    assert.ok(stdout.includes(`can't set ${name} from `), stdout);
    assert.match(stdout, /read-only here.*\(EROFS\)/);
  }
  assert.doesNotMatch(stdout, /^90-holdfast\.conf$/m);
});
