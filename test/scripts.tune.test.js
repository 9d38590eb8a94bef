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
/** What asks for a backlog of 262,144, and for nothing else that --only lets through. */
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
 * A folder that stands for /, with the sysctls of a saved machine as files.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [files] others in it
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

/** @param {string} root @returns {Record<string, string>} all that is in it: bytes, modes, links, folders */
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

/** @param {string} root @returns {string} the last line that was said */
function revertAll(root) {
  const { status, stdout, stderr } = tune(['revert', '--root', root]);
  assert.equal(status, 0, stdout + stderr);
  return stdout.trim().split('\n').at(-1) ?? '';
}

test('check of a machine where the run is forbidden ends with 1, and says what would fit', () => {
  const args = ['check', '--streams', '1000000', '--transport', 'hold'];
  const { status, stdout } = tune([...args, '--machine', join(MACHINES, 'container.json')]);
  assert.equal(status, 1);
  assert.match(stdout, /^FORBIDS {2}memory of the control group/m);
  const fits = /What fits: --streams (\d+): 16 workers/.exec(stdout)?.[1];
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

test('no line of a table is wider than 100 columns, and every limit has its reason and its line', () => {
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

test('what --json prints can be judged again elsewhere', (t) => {
  const file = join(temporaryFolder(t), 'saved.json');
  const first = tune(['--streams', '60000', '--fleet', '--json']);
  writeFileSync(file, first.stdout);
  const second = tune(['--streams', '60000', '--fleet', '--json', '--machine', file]);
  assert.deepEqual(JSON.parse(second.stdout), JSON.parse(first.stdout));
  assert.ok(JSON.parse(first.stdout).findings.length > 10);
});

test('a dry run says the files, the lines and the values, and changes nothing', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  const { status, stdout } = tune(['apply', '--streams', '1000000', '--root', root, '--dry-run']);
  assert.equal(status, 0);
  assert.match(stdout, /would: sets net\.netfilter\.nf_conntrack_max to \d+ \(it is 262144\)/);
  assert.match(stdout, /would: writes \S+\/etc\/sysctl\.d\/90-holdfast\.conf:\n {4}net\./);
  assert.deepEqual(photograph(root), before);
});

test('apply loads the sysctls and writes the drop-ins, after which check has nothing to change', (t) => {
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

test('revert restores every byte, mode and link, and removes what was not there', (t) => {
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

test('an apply that was cut short after any of its steps is taken back', (t) => {
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

test('two applies keep the lines of the first, and one revert goes back before both', (t) => {
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
  assert.match(files[0], /^net\.netfilter\.nf_conntrack_max = 2004413$/m, 'what needs more is raised again');
  runSteps(stepsFor(root, 100_000), () => {});
  for (const [i, file] of [SYSCTL_FILE, LIMITS_FILE].entries())
    assert.equal(readFileSync(join(root, file), 'utf8'), files[i], 'fewer streams lower nothing');
  revertAll(root);
  assert.deepEqual(photograph(root), before);
});

test('a revert that was cut short is done again from the start', (t) => {
  const root = makeRoot(t);
  const before = photograph(root);
  runSteps(stepsFor(root, 1_000_000), () => {});
  runSteps(revertSteps(root).steps.slice(0, 3), () => {});
  assert.notDeepEqual(photograph(root), before);
  revertAll(root);
  assert.deepEqual(photograph(root), before);
  assert.match(revertAll(root), /nothing was applied/);
});

test('a limit of descriptors above fs.nr_open is not written, for nobody could log in any more', (t) => {
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
  assert.match(stdout, /can't: .*above fs\.nr_open \(5000\)/);
  assert.equal(existsSync(join(root, LIMITS_FILE)), false);
});

test('what was kept and can no longer be read is told, and nothing is touched', (t) => {
  const root = makeRoot(t, { [STATE_FILE.slice(1)]: '{"version":1,' });
  const before = photograph(root);
  for (const action of ['apply', 'revert']) {
    const { status, stderr } = tune([action, '--streams', '1000000', '--root', root]);
    assert.equal(status, 1);
    assert.match(stderr, /^tune: \S+tune\.json can't be used \(.*\): nothing was changed\n$/);
  }
  assert.deepEqual(photograph(root), before);
});

test('a line that says the same thing is replaced, comments and all others stay', () => {
  assert.equal(
    mergeLines('# a = 1\na = 1\n-b.c=2\nd = 3\n', ['a = 5', 'b.c = 6', 'e = 7']),
    '# a = 1\na = 5\nb.c = 6\nd = 3\ne = 7\n',
  );
  assert.equal(
    mergeLines('* hard nofile 9000\n* soft nofile 10\n', ['* hard nofile 5000', '* soft nofile 20']),
    '* hard nofile 9000\n* soft nofile 20\n',
  );
});

test('words and limits that there are not are one line each', () => {
  for (const [args, line] of /** @type {[string[], RegExp][]} */ ([
    [['undo'], /there is no 'undo': there are check, apply, revert/],
    [['--only', 'net.core.nothing'], /--only got 'net\.core\.nothing', which is no limit here/],
    [['apply', '--machine', 'x.json'], /--machine goes with check alone/],
    [['--machine', 'nowhere.json'], /nowhere\.json has no readings of a machine/],
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
    return 'the limits of this machine are tuned: not touched';
  try {
    accessSync(`/${pathOfSysctl(BACKLOG)}`, constants.W_OK);
  } catch (error) {
    return `sysctls can't be written here (${error instanceof Error ? error.message : error})`;
  }
  return Number(readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8')) < 262_144 ? '' : 'it is raised already';
}

test('apply and revert, for real: this machine is as it was before', { skip: whyNotHere() || false }, (t) => {
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

test('who may not keep what is there changes nothing, and is told to be root', {
  skip: whyNotHere() || false,
}, (t) => {
  const nobody = { uid: 65_534, gid: 65_534 };
  if (tune(['--help'], [], nobody).status !== 0) return t.skip('others may not read this folder');
  const before = readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8');
  const { status, stderr } = tune(['apply', ...ONLY_BACKLOG], [], nobody);
  assert.equal(status, 1);
  assert.match(stderr, /^tune: can't write \/var\/lib\/holdfast\/tune\.json \(EACCES\): run it as root/);
  assert.equal(readFileSync(`/${pathOfSysctl(BACKLOG)}`, 'utf8'), before);
});

/** A mount namespace of its own, with folders of its own for what apply writes; its own /proc/sys can't be written. */
const READ_ONLY = [
  'unshare',
  '-m',
  'sh',
  '-ec',
  'mkdir -p /etc/sysctl.d; mount -t tmpfs none /etc/sysctl.d; mount -t tmpfs none /var/lib; mount -o bind,ro /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; "$@"; status=$?; ls /etc/sysctl.d; exit $status',
  'sh',
];

test('sysctls that are read-only are said one by one, and no drop-in has what was refused', (t) => {
  const [unshare, ...words] = READ_ONLY;
  const { status: made, stderr, error } = spawnSync(unshare, [...words, 'true'], { encoding: 'utf8' });
  if (made !== 0) return t.skip(`no mount namespace here: ${error?.message ?? stderr}`);
  const names = [BACKLOG, 'net.core.somaxconn'];
  const isLow = (/** @type {string} */ name) =>
    Number(readFileSync(`/${pathOfSysctl(name)}`, 'utf8')) < 262_144;
  if (!names.every(isLow)) return t.skip('the limits of this machine are raised already');
  const args = ['apply', '--streams', '1000', '--open-rate', '1000000', '--only', names.join(',')];
  const { status, stdout } = tune(args, READ_ONLY);
  assert.equal(status, 1);
  for (const name of names) {
    assert.ok(stdout.includes(`can't: sets ${name} to 262144 (it is `), stdout);
    assert.match(stdout, /it is read-only here.*\(EROFS\)/);
  }
  assert.doesNotMatch(stdout, /^90-holdfast\.conf$/m);
});
