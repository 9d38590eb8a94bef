import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { hasTmux, openTerminal } from './helpers/tmux.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * A run against a port of this machine, with a folder of drones for the test alone.
 * @param {TestContext} t @param {number} port @param {string[]} args
 */
function startRun(t, port, ...args) {
  const folder = join(temporaryFolder(t), 'fleet');
  const env = { ...process.env, HOLDFAST_FLEET_DIR: folder, HOLDFAST_TOKEN: '' };
  const words = ['fleet/cli.js', 'run', '--target', `127.0.0.1:${port}`, ...args];
  const started = run(t, process.execPath, words, { env });
  const drones = () => registered(folder, started.pid);
  return { ...started, folder, drones };
}

/** @param {string} folder @param {number} pid of the run @returns {{ pid: number, url: string }[]} its drones */
function registered(folder, pid) {
  const own = join(folder, `run-${pid}`);
  if (!existsSync(own)) return [];
  const files = readdirSync(own).filter((name) => /^\d+\.json$/.test(name));
  return files.map((name) => JSON.parse(readFileSync(join(own, name), 'utf8')));
}

/** @param {string} folder @returns {number[]} the pids of all drones that register below it */
function dronesOf(folder) {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8', maxBuffer: 16_777_216 });
  const lines = stdout.split('\n').filter((line) => line.includes('drone.js') && line.includes(folder));
  return lines.map((line) => Number.parseInt(line, 10));
}

/** Asserts that nothing is left of a run: no process, no file. @param {string} folder */
async function assertNothingLeft(folder) {
  await until(
    () => dronesOf(folder).length === 0,
    () => `no drone of ${folder} runs: ${dronesOf(folder)}`,
  );
  assert.deepEqual(existsSync(folder) ? readdirSync(folder) : [], []);
}

/** @returns {Promise<number>} a port where nobody listens */
async function closedPort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('a run opens its streams, measures, reports, and leaves nothing behind', async (t) => {
  const server = await startServer(t, ['--ping-interval', '200', '--accept-load']);
  const file = join(temporaryFolder(t), 'report.json');
  const args = ['-n', '500', '--drones', '2', '--hold', '2', '--report', file];
  const publishing = [
    '--channel',
    'news',
    '--publish-every',
    '100',
    '--admin',
    `http://127.0.0.1:${server.adminPort}`,
  ];
  const { exit, output, folder } = startRun(t, server.port, ...args, ...publishing);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  assert.match(output.stdout, /^ramping \[/m);
  assert.match(output.stdout, /^holding \[/m);
  assert.match(output.stdout, /^500 streams to 127\.0\.0\.1:\d+, 2 drones \(local, (native|plain)\)$/m);
  assert.match(output.stdout, /^ok: no stream failed or was lost$/m);
  assert.ok(!output.stdout.includes('\x1b'));

  const report = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual([report.asked, report.opened, report.openAtEnd, report.retried], [500, 500, 500, 0]);
  assert.deepEqual([report.failed.total, report.lost.total, report.isOk], [0, 0, true]);
  assert.ok(report.publications.sent > 0 && report.publications.failed === 0);
  assert.equal(report.messages, report.publications.sent * 500);
  const { percentiles } = report;
  assert.deepEqual([percentiles.connectMs.count, percentiles.firstByteMs.count], [500, 500]);
  assert.equal(percentiles.deliveryMs.count, report.messages);
  assert.ok(percentiles.latenessMs.count > 0);
  const totals = await server.untilTotals(({ streams }) => streams === 0, 'they were closed');
  assert.deepEqual([totals.opened, totals.closedClientGone], [500, 500]);
  await assertNothingLeft(folder);
});

test('with --json, stdout contains only the report', async (t) => {
  const server = await startServer(t);
  const { exit, output } = startRun(t, server.port, '-n', '10', '--hold', '0', '--json');
  assert.equal((await exit).code, 0);
  assert.equal(JSON.parse(output.stdout).opened, 10);
  assert.match(output.stderr, /^ramping/m);
});

test('the lateness of pings is measured on this machine although the server was not asked to accept load', async (t) => {
  const server = await startServer(t, ['--ping-interval', '200']);
  const { exit, output } = startRun(t, server.port, '-n', '5', '--hold', '2', '--json');
  assert.equal((await exit).code, 0);
  assert.ok(JSON.parse(output.stdout).percentiles.latenessMs.count > 0);
});

test('if no stream was pinged twice, the report says how to learn the lateness', async (t) => {
  const server = await startServer(t, ['--ping-interval', '60000']);
  const { exit, output } = startRun(t, server.port, '-n', '5', '--hold', '0');
  assert.equal((await exit).code, 0);
  assert.match(
    output.stdout,
    /ping lateness is unknown: no ping came; hold for more than two ping intervals/,
  );
});

test('a run against a port where nobody listens says so at once, in one line', async (t) => {
  const port = await closedPort();
  const { exit, output, folder } = startRun(t, port, '-n', '50', '--within', '600');
  assert.equal((await exit).code, 1);
  const line = `nothing is listening on 127.0.0.1:${port}: start the server there, or use another --target`;
  assert.equal(output.stderr, `fleet: ${line}\n`);
  await assertNothingLeft(folder);
});

test('a server that is restarted during a run gets its streams back', async (t) => {
  const first = await startServer(t, ['--drain', '0']);
  const { output, child, exit } = startRun(t, first.port, '-n', '20', '--hold', '600');
  await until(() => /^holding/m.test(output.stdout), 'it holds');
  process.kill(-first.pid, 'SIGKILL');
  await first.exit;
  const second = await startServer(t, ['--port', String(first.port)]);
  await second.untilTotals(({ streams }) => streams === 20, 'all are back');
  child.kill('SIGINT');
  assert.equal((await exit).code, 130);
});

test('streams are lost if the server dies, and the status is 1', async (t) => {
  const server = await startServer(t);
  const { exit, output, folder } = startRun(t, server.port, '-n', '40', '--hold', '5', '--json');
  await until(() => /^holding/m.test(output.stderr), 'it holds');
  process.kill(-server.pid, 'SIGKILL');
  assert.equal((await exit).code, 1);
  const report = JSON.parse(output.stdout);
  assert.equal(report.lost.total, 40);
  assert.equal(report.openAtEnd, 0);
  assert.ok(report.failed.byCause.refused > 0, 'the drones tried to reopen them');
  await assertNothingLeft(folder);
});

test('the death of a drone is reported, its streams are lost, and another drone takes over', async (t) => {
  const server = await startServer(t, ['--ping-interval', '200']);
  const { exit, output, drones, child, folder } = startRun(
    t,
    server.port,
    '-n',
    '40',
    '--drones',
    '2',
    '--hold',
    '600',
  );
  await until(() => /^holding/m.test(output.stdout), 'it holds');
  const [{ pid }] = drones();
  process.kill(pid, 'SIGKILL');
  await until(
    () => output.stdout.includes(`drone ${pid} died: 20 streams lost; another drone takes over`),
    'it is reported',
  );
  await server.untilTotals(({ streams, opened }) => streams === 40 && opened === 60, 'all are open again');
  await until(() => /40 open, .*lost 20 \(drone died\)$/m.test(output.stdout), 'and the run knows', 40_000);
  child.kill('SIGINT');
  assert.equal((await exit).code, 130);
  assert.match(output.stdout, /^lost +20 {2}drone died 20$/m);
  assert.match(output.stdout, /^opened +60 {2}40 open at the end$/m);
  await assertNothingLeft(folder);
});

/** @type {[string, (a: ReturnType<typeof startRun>) => unknown][]} */
const STAGES = [
  ['starting', ({ folder }) => dronesOf(folder).length > 0],
  ['ramping', ({ output }) => /^ramping .* [1-9]\d* of 100,000 open/m.test(output.stdout)],
];

for (const [stage, isThere] of STAGES) {
  test(`Ctrl-C while ${stage} prints the report and leaves nothing behind`, async (t) => {
    const server = await startServer(t);
    const a = startRun(t, server.port, '-n', '100000', '--ramp', '20');
    await until(() => isThere(a), stage);
    a.child.kill('SIGINT');
    assert.equal((await a.exit).code, 130);
    assert.match(a.output.stdout, /^asked +100,000$/m);
    assert.match(a.output.stdout, /^ended early: interrupted/m);
    await assertNothingLeft(a.folder);
  });
}

test('Ctrl-C while holding prints the report and leaves nothing behind', async (t) => {
  const server = await startServer(t);
  const { exit, output, child, folder } = startRun(t, server.port, '-n', '30', '--hold', '600');
  await until(() => /^holding/m.test(output.stdout), 'it holds');
  child.kill('SIGINT');
  assert.equal((await exit).code, 130);
  assert.match(output.stdout, /^opened +30 {2}30 open at the end$/m);
  await assertNothingLeft(folder);
});

test('the drones of a run that is killed end, and the next run removes its folder', async (t) => {
  const server = await startServer(t);
  const { exit, output, child, folder } = startRun(t, server.port, '-n', '30', '--hold', '600');
  await until(() => /^holding/m.test(output.stdout), 'it holds');
  assert.ok(dronesOf(folder).length > 0);
  child.kill('SIGKILL');
  assert.equal((await exit).signal, 'SIGKILL');
  await until(() => dronesOf(folder).length === 0, 'its drones end');
  const env = { ...process.env, HOLDFAST_FLEET_DIR: folder };
  const words = ['fleet/cli.js', 'run', '--target', `127.0.0.1:${server.port}`, '-n', '1', '--hold', '0'];
  assert.equal((await run(t, process.execPath, words, { env }).exit).code, 0);
  await assertNothingLeft(folder);
});

test('a run that can not begin is an error of one line and leaves nothing behind', async (t) => {
  const { exit, output, folder } = startRun(t, 1, '-n', '1', '--host', '0.0.0.0');
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^fleet: .*refusing to load 0\.0\.0\.0:1: .*\n$/);
  await assertNothingLeft(folder);
});

test('a wrong --admin is an error before anything starts', async (t) => {
  const admin = `http://127.0.0.1:${await closedPort()}`;
  const { exit, output, folder } = startRun(
    t,
    1,
    '-n',
    '1',
    '--channel',
    'x',
    '--publish-every',
    '9',
    '--admin',
    admin,
  );
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^fleet: --admin http:\S+ is not the admin port of a server \(ECONNREFUSED\)/);
  await assertNothingLeft(folder);
});

test('in a terminal the progress is one line that is redrawn', {
  skip: !hasTmux() && 'tmux is missing',
}, async (t) => {
  const server = await startServer(t);
  const folder = join(temporaryFolder(t), 'fleet');
  const cli = `${process.execPath} ${join(ROOT, 'fleet/cli.js')}`;
  const command = `HOLDFAST_FLEET_DIR=${folder} ${cli} run --target 127.0.0.1:${server.port} -n 1000 --ramp 20`;
  const terminal = openTerminal(t, { columns: 80, rows: 24, command: `env ${command}` });
  const first = await terminal.untilShown(/^ramping \[-*\] \d+ of 1,000 open/m);
  const second = await terminal.untilShown(/^ramping \[#+-*\] \d+ of 1,000 open/m);
  for (const screen of [first, second]) assert.equal(screen.match(/^ramping/gm)?.length, 1);
  terminal.type('C-c');
  const last = await terminal.untilShown(/status \d+/);
  assert.match(last, /^ended early: interrupted$/m);
  assert.match(last, /status 130/);
  assert.doesNotMatch(last, /^ramping/m);
  await assertNothingLeft(folder);
});
