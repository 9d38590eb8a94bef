import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { spawnDrone, urlOf } from './helpers/drone.js';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { hasTmux, openTerminal } from './helpers/tmux.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * The fleet command, with a folder of drones for the test alone. What it starts ends with the test.
 * @param {TestContext} t
 */
function fleet(t) {
  // Hooks run in order: this one needs the folder, which is removed by a later one.
  t.after(() => {
    const { stdout } = spawnSync(process.execPath, ['fleet/cli.js', 'stop', 'all'], {
      cwd: ROOT,
      env,
      encoding: 'utf8',
    });
    assert.match(stdout, /\d+ drones? stopped/);
    assert.deepEqual(dronesOf(folder), []);
  });
  const folder = join(temporaryFolder(t), 'fleet');
  const env = { ...process.env, HOLDFAST_FLEET_DIR: folder, HOLDFAST_TOKEN: '' };
  /** @param {string[]} args */
  const command = async (...args) => {
    const { exit, output } = run(t, process.execPath, ['fleet/cli.js', ...args], { env });
    const { code } = await exit;
    return { code, ...output };
  };
  /** @param {string[]} args */
  const json = async (...args) => {
    const { code, stdout, stderr } = await command(...args, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  return { folder, command, json };
}

/** @param {string} folder @returns {string[]} the processes of drones that register in it */
function dronesOf(folder) {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8', maxBuffer: 16_777_216 });
  return stdout.split('\n').filter((line) => line.includes('drone.js') && line.includes(folder));
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** @returns {Promise<number>} a port where nobody listens */
async function closedPort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('later commands list, change and stop the drones that were started', async (t) => {
  const server = await startServer(t, ['--ping-interval', '200', '--accept-load']);
  const { folder, command, json } = fleet(t);
  const { drones } = await json('start', '2', '--target', `127.0.0.1:${server.port}`, '--streams', '301');
  assert.equal(drones.length, 2);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  await server.untilTotals(({ streams }) => streams === 301, 'all are open');
  const { total, ...status } = await until(async () => {
    const seen = await json('status');
    return seen.total.counts.open === 301 && seen.total.percentiles.latenessMs.count > 0 && seen;
  }, 'status lists them, with the lateness of their pings');
  assert.deepEqual(status.drones.map((/** @type {any} */ one) => [one.state, one.counts.open]).sort(), [
    ['holding', 150],
    ['holding', 151],
  ]);
  assert.equal(total.percentiles.firstByteMs.count, 301);

  assert.match((await command('set', 'streams', '41')).stdout, /41 streams divided among 2 drones/);
  await server.untilTotals(({ streams }) => streams === 41, 'the rest was closed');
  assert.match((await command('set', 'n', '30')).stdout, /n set to 30 for each of 2 drones/);
  await server.untilTotals(({ streams }) => streams === 60, 'each holds 30');
  await command('set', 'restart', '1');
  await until(async () => {
    const { counts } = (await json('status')).total;
    return counts.open === 60 && counts.opened === 60;
  }, 'they count from 0');

  assert.deepEqual(await json('stop', '1'), { stopped: 1 });
  assert.equal((await json('status')).drones.length, 1);
  assert.match((await command('stop', 'all')).stdout, /1 drone stopped/);
  await server.untilTotals(({ streams }) => streams === 0, 'all are closed');
  assert.deepEqual(readdirSync(folder), []);
  assert.match((await command('status')).stdout, /no drones/);
});

test('status is a table without colours outside a terminal', async (t) => {
  const { command } = fleet(t);
  await command('start', '2');
  const { code, stdout } = await command('status');
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^drone +place +state +streams +of +flight +per second +p50\/p99 ms +p99 ms +errors$/m,
  );
  assert.equal(stdout.match(/^\d+ +local +idle +0 +0 +0 +0 +- +-$/gm)?.length, 2);
  assert.match(stdout, /^total +2 drones +0 +0 /m);
  assert.ok(!stdout.includes('\x1b'));
});

test('a drone that was killed disappears from the status, with its file', async (t) => {
  const { folder, json } = fleet(t);
  await json('start', '2');
  const [{ pid }] = (await json('status')).drones;
  process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(pid), 'it is gone');
  const { drones } = await json('status');
  assert.equal(drones.length, 1);
  assert.notEqual(drones[0].pid, pid);
  assert.deepEqual(readdirSync(folder), [`${drones[0].pid}.json`]);
});

test('a file whose pid belongs to another program by now is removed, and that program is left alone', async (t) => {
  const { folder, json } = fleet(t);
  await json('status');
  const other = run(t, process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  const url = `http://127.0.0.1:${await closedPort()}`;
  writeFileSync(join(folder, `${other.pid}.json`), JSON.stringify({ pid: other.pid, url, token: '' }));
  assert.deepEqual(await json('stop', 'all'), { stopped: 0 });
  assert.deepEqual(readdirSync(folder), []);
  assert.ok(isAlive(other.pid));
});

test('a drone that does not answer is late, and does not delay the others', async (t) => {
  const { command, json } = fleet(t);
  await json('start', '2');
  const [{ pid }, other] = (await json('status')).drones;
  process.kill(pid, 'SIGSTOP');
  t.after(() => isAlive(pid) && process.kill(pid, 'SIGCONT'));
  const { stdout } = await command('status');
  assert.match(stdout, new RegExp(`^${pid} +local +late +-`, 'm'));
  assert.match(stdout, new RegExp(`^${other.pid} +local +idle +0`, 'm'));
  assert.match(stdout, /^total +1 of 2 drones/m);
  assert.deepEqual(await json('stop', 'all'), { stopped: 2 });
  assert.ok(!isAlive(pid) && !isAlive(other.pid));
});

test('a target that refuses is an error of one line, and no drone is left', async (t) => {
  const { folder, command } = fleet(t);
  const { code, stdout, stderr } = await command('start', '2', '--target', '0.0.0.0:1', '--streams', '10');
  assert.equal(code, 1);
  assert.match(stderr, /^fleet: .*refusing to load 0\.0\.0\.0:1: .*\n$/);
  assert.doesNotMatch(stdout, /started/);
  assert.deepEqual(readdirSync(folder), []);
});

test('a folder that others can write to is refused', async (t) => {
  const folder = temporaryFolder(t);
  const open = join(folder, 'open');
  const { command } = fleet(t);
  mkdirSync(open);
  chmodSync(open, 0o777);
  const { code, stderr } = await command('status', '--fleet-dir', open);
  assert.equal(code, 1);
  assert.match(stderr, /^fleet: others can write to --fleet-dir .*\n$/);
});

test('drones on other machines are controlled with their tokens, and keep running after a run', async (t) => {
  const server = await startServer(t);
  const { command, json } = fleet(t);
  const file = join(temporaryFolder(t), 'hosts.json');
  const env = { ...process.env, HOLDFAST_TOKEN: 'the-token' };
  const drone = spawnDrone(t, ['--quiet'], { env });
  const port = Number(new URL(await urlOf(drone)).port);
  writeFileSync(file, JSON.stringify([{ host: '127.0.0.1', port, token: 'another' }]));
  const wrong = await command('set', 'n', '1', '--on', file);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /^fleet: drone 127\.0\.0\.1:\d+: the token is missing or wrong.*\n$/);

  writeFileSync(file, JSON.stringify([{ host: '127.0.0.1', port, token: 'the-token' }]));
  const target = ['--target', `127.0.0.1:${server.port}`];
  const report = await json('run', ...target, '-n', '20', '--hold', '0', '--on', file);
  assert.deepEqual([report.opened, report.place, report.isOk], [20, 'hosts', true]);
  const { drones } = await json('status', '--on', file);
  assert.deepEqual([drones[0].name, drones[0].counts.target], [`127.0.0.1:${port}`, 0]);
  await server.untilTotals(({ streams }) => streams === 0, 'it closed them');

  await command('set', 'streams', '5', '--on', file);
  const busy = await command('run', ...target, '-n', '20', '--on', file);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /has 0 idle drones, 1 are needed \(127\.0\.0\.1:\d+ \w+/);
  assert.deepEqual(await json('stop', 'all', '--on', file), { stopped: 1 });
  assert.deepEqual(await drone.exit, { code: 0, signal: null });
});

test('the error for a bad file of hosts names the entry', async (t) => {
  const { command } = fleet(t);
  const file = join(temporaryFolder(t), 'hosts.json');
  /** @type {[string, RegExp][]} */
  const cases = [
    ['{', /can't read .*hosts\.json: /],
    ['{}', /hosts\.json has no list of drones: expected /],
    [
      '[{"host":"10.0.0.5"},{"host":"a b"}]',
      /hosts\.json \[1\]\.host is "a b": expected a name or an IP address/,
    ],
    ['[{"host":"10.0.0.5","port":0}]', /hosts\.json \[0\]\.port is 0: expected a port from 1 to 65535/],
    ['[{"host":"10.0.0.5","prot":1}]', /hosts\.json \[0\] has 'prot': expected host, port, token/],
    ['[{}]', /hosts\.json \[0\]\.host is missing/],
    ['[{"host":"::1"},{"host":"::1","port":8889}]', /hosts\.json \[1\] repeats \[::1\]:8889/],
  ];
  for (const [text, expected] of cases) {
    writeFileSync(file, text);
    const { code, stderr } = await command('status', '--on', file);
    assert.equal(code, 1);
    assert.match(stderr, expected);
    assert.match(stderr, /^fleet: [^\n]+\n$/);
  }
});

test('a mistake is an error of one line, with a suggestion', async (t) => {
  const { command } = fleet(t);
  /** @type {[string[], RegExp][]} */
  const cases = [
    [['statsu'], /unknown command 'statsu': did you mean status\?/],
    [['set', 'rmap', '1'], /unknown parameter 'rmap': did you mean ramp\?/],
    [['set', 'n', 'x'], /n got 'x': expected a whole number/],
    [['set', 'n'], /set needs a parameter and its value/],
    [['set', 'n', '1'], /there are no drones: start some/],
    [['stop'], /stop needs the number of drones/],
    [['stop', 'some'], /stop got 'some': expected a whole number/],
    [['start', '0'], /start got '0': expected a whole number/],
    [['run'], /run needs the number of streams/],
    [['run', '-n', '1', '--publish-every', '9'], /--publish-every needs a --channel/],
    [['run', '-n', '1', '--report', '/nowhere/at/all.json'], /can't write --report \/nowhere\/at\/all\.json/],
    [['run', '-n', '1', '--target', 'x:0'], /--target got 'x:0': expected a host and its ports/],
    [['status', '--on', 'mars'], /--on got 'mars': expected local, ec2, or a file of hosts/],
  ];
  for (const [args, expected] of cases) {
    const { code, stderr, stdout } = await command(...args);
    assert.match(stderr, expected);
    assert.match(stderr, /^fleet: [^\n]+\n$/);
    assert.deepEqual([code, stdout], [1, ''], args.join(' '));
  }
});

test('there is help for all commands and for each', async (t) => {
  const { command } = fleet(t);
  const { stdout } = await command('--help');
  for (const name of ['run', 'start', 'status', 'set', 'stop', 'requests'])
    assert.match(stdout, new RegExp(`^ {2}${name} .*\\w`, 'm'));
  assert.equal((await command('help')).stdout, stdout);
  for (const name of ['run', 'start', 'status', 'set', 'stop']) {
    const { code, stdout: own } = await command(name, '--help');
    assert.equal(code, 0);
    assert.match(own, new RegExp(`^Usage: node fleet/cli\\.js ${name} `));
    assert.equal((await command('help', name)).stdout, own);
  }
});

test('the help of set has its texts in one column, and says what a flag may be', async (t) => {
  const { stdout } = await fleet(t).command('help', 'set');
  const params = stdout.slice(0, stdout.indexOf('\n  node fleet/cli.js set'));
  const rows = [...params.matchAll(/^ {2}(\S+ \S+)( {2,})\S/gm)];
  assert.ok(rows.length > 20, stdout);
  assert.equal(new Set(rows.map(([, words, gap]) => words.length + gap.length)).size, 1, stdout);
  assert.match(stdout, /^ {2}format \S+ {2}format of the streams/m);
  assert.match(stdout, /^ {2}tls 1\|0 /m);
});

test('a dry run on EC2 prints what would start, without credentials', async (t) => {
  const { command } = fleet(t);
  const args = ['--on', 'ec2', '--dry-run', '--regions', 'us-east-1,eu-west-1', '--host', 'load.example'];
  for (const line of [
    ['start', '10'],
    ['run', '--drones', '10'],
  ]) {
    const { code, stdout, stderr } = await command(...line, '-n', '1000', ...args);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^dry run: fleet 'default' would start 10 x t3\.small with 100 streams each \(1,000\)$/m,
    );
    assert.match(stdout, /^ {2}eu-west-1: 5 x t3\.small/m);
    assert.match(stdout, /^estimate: \$/m);
  }
  assert.match((await command('status', '--help')).stdout, /--on PLACE/);
  assert.match((await command('status', '--on', 'ec2', '--help')).stdout, /--regions/);
});

for (const signal of /** @type {const} */ (['SIGINT', 'SIGKILL'])) {
  test(`${signal} while drones start leaves none running`, async (t) => {
    const { folder, command } = fleet(t);
    await command('status');
    const env = { ...process.env, HOLDFAST_FLEET_DIR: folder };
    const start = run(t, process.execPath, ['fleet/cli.js', 'start', '4'], { env });
    await until(() => childrenOf(start.pid), 'the first was started');
    start.child.kill(signal);
    assert.equal((await start.exit).code, signal === 'SIGINT' ? 130 : null);
    await until(() => dronesOf(folder).length === 0, 'they are gone');
    assert.deepEqual(readdirSync(folder), []);
  });
}

/** @param {number} pid @returns {number[] | null} null if there are none yet */
function childrenOf(pid) {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  const pids = stdout.trim().split(/\s+/).filter(Boolean).map(Number);
  return pids.length > 0 ? pids : null;
}

test('status is live in a terminal, adapts to its size, and restores it', {
  skip: !hasTmux() && 'tmux is missing',
}, async (t) => {
  const { folder, command } = fleet(t);
  await command('start', '2');
  const node = `HOLDFAST_FLEET_DIR=${folder} ${process.execPath} ${join(ROOT, 'fleet/cli.js')}`;
  const terminal = openTerminal(t, { columns: 118, rows: 34, command: `env ${node} status` });
  const screen = await terminal.untilShown(/total +2 drones/);
  assert.match(screen, /^Holdfast fleet, local: 2 drones +q: quit$/m);
  assert.match(screen, /^\d+ +local +idle /m);
  terminal.resize(60, 8);
  await terminal.untilShown(/^Holdfast fleet, local: 2 drones {1,30}q: quit$/m);
  await command('stop', '1');
  await terminal.untilShown(/total +1 drone /);
  terminal.type('q');
  assert.match(await terminal.untilShown(/status \d+/), /status 0/);
  assert.doesNotMatch(terminal.read(), /Holdfast fleet/);
});
