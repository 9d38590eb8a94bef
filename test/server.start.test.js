/*
 * Starting: what can't work ends with one line and status 1, and node's flags reach the workers.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../lib/port.js';
import { get, rawClient } from './helpers/client.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { quietPort } from './helpers/port.js';
import { ROOT, run, startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @param {string[]} args @param {object} [options] */
function serverOf(args, options) {
  return spawnSync(process.execPath, ['server.js', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 20_000,
    ...options,
  });
}

/** @param {{ status: number | null, stderr: string, stdout: string }} ended @param {RegExp} line */
function assertOneLine({ status, stderr, stdout }, line) {
  assert.match(stderr, line);
  assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  assert.equal(stdout, '');
  assert.equal(status, 1);
}

test('--help lists every option, --version prints the version', () => {
  const help = serverOf(['--help']);
  assert.match(help.stdout, /--ping-interval N .*\(20000\)/);
  assert.equal(help.status, 0);
  assert.match(serverOf(['--version']).stdout, /^\d+\.\d+\.\d+\n$/);
});

test('started as a worker of another cluster, it says that it must be a separate process', () => {
  assertOneLine(serverOf([], { env: { ...process.env, NODE_UNIQUE_ID: '1' } }), /NODE_UNIQUE_ID is set/);
});

test('a bad option ends in one line', () => {
  assertOneLine(serverOf(['--port', 'eighty']), /^holdfast: --port got 'eighty': expected a whole number/);
  assertOneLine(serverOf(['--bogus']), /^holdfast: unknown option --bogus/);
  assertOneLine(serverOf(['tokn']), /^holdfast: unknown command 'tokn': did you mean token\?/);
  assertOneLine(serverOf(['--dashboard', 'tui']), /^holdfast: --dashboard tui needs a terminal/);
  assertOneLine(
    serverOf(['--port', '8890']),
    /^holdfast: --port and --admin-port are both 8890: they must be different/,
  );
});

test('streams that memory forbids end in one line before anything is forked; --force starts anyway', (t) => {
  const folder = temporaryFolder(t);
  const quick = ['--port', '0', '--admin-port', '0', '--log-dir', join(folder, 'logs')];
  for (const args of [
    ['--streams', '100000000'],
    ['--transport', 'http', '--streams', '100000000'],
  ]) {
    assertOneLine(
      serverOf([...quick, ...args]),
      /^holdfast: --streams 100000000 needs [\d.]+ [GT]B of memory .* use --streams \d+ or fewer, or --force/,
    );
  }
  assert.deepEqual(readdirSync(folder), []);
  const forced = serverOf([...quick, '--streams', '100000000', '--force', '--workers', '1']);
  assert.doesNotMatch(forced.stderr, /of memory/);
});

test('an unavailable transport ends in one line; auto uses another one, and says so', async (t) => {
  assertOneLine(
    serverOf(['--transport', 'hold', '--no-log', '--admin-port', '0', '--port', '0'], {
      env: { ...process.env, HOLDFAST_NATIVE: 'off' },
    }),
    /--transport hold needs the native core, which is unavailable: HOLDFAST_NATIVE is off; use --transport http/,
  );
  const server = await startServer(t, [], { prefix: ['env', 'HOLDFAST_NATIVE=off'] });
  assert.match(
    server.output.stderr,
    /native core unavailable \(HOLDFAST_NATIVE is off\): using the http transport/,
  );
  assert.match(server.output.stderr, /workers?, http transport, room for/);
});

test('one line says whether the limits of the machine allow the streams it should hold', async (t) => {
  const args = ['--streams', '1500', '--workers', '1', '--transport', 'http'];
  const server = await startServer(t, args);
  const [line] = /^holdfast: limits: .*/m.exec(server.output.stderr) ?? [''];
  assert.match(
    line,
    /limits: (fine for 1,500 streams$|\S.* should be .*: run node scripts\/tune\.js check --streams 1500$)/,
  );
});

test('a port in use ends in one line that names the option, and leaves no CSV', async (t) => {
  const server = await startServer(t);
  const folder = temporaryFolder(t);
  const log = ['--log-dir', folder];
  assertOneLine(
    serverOf(['--port', String(server.port), '--admin-port', '0', ...log]),
    new RegExp(`port ${server.port} is in use.*--port`),
  );
  assertOneLine(
    serverOf(['--port', '0', '--admin-port', String(server.adminPort), ...log]),
    /is in use.*--admin-port/,
  );
  assert.deepEqual(readdirSync(folder), []);
});

for (const transport of TRANSPORTS) {
  test(`of two servers started at the same moment, one gets the port (${transport} transport)`, async (t) => {
    for (let round = 0; round < 3; round++) {
      const port = await quietPort('');
      const args = ['--port', String(port), '--transport', transport, '--workers', '1', '--no-log'];
      const servers = [1, 2].map(() =>
        run(t, process.execPath, ['server.js', '--admin-port', '0', '--dashboard', 'off', ...args]),
      );
      const [loser] = await until(() => {
        const ended = servers.filter(({ child }) => child.exitCode !== null);
        return ended.length > 0 && ended;
      }, 'one of them ends');
      const winner = servers[1 - servers.indexOf(loser)];
      await until(() => /listening on/.test(winner.output.stderr), 'the other one listens');
      assert.equal(winner.child.exitCode, null);
      assert.equal(loser.child.exitCode, 1);
      assert.match(
        loser.output.stderr,
        new RegExp(`holdfast: port ${port} is in use: stop the other server, or use another --port\n$`),
      );
      winner.child.kill('SIGTERM');
      await winner.exit;
    }
  });
}

test('nobody else can take the port while the only worker is replaced', NEEDS_NATIVE, async (t) => {
  const server = await startServer(t, ['--workers', '1', '--transport', 'hold']);
  const [victim] = server.workerPids;
  process.kill(victim, 'SIGKILL');
  await until(() => /restarting in/.test(server.output.stderr), 'no worker is left');
  while (!/is listening/.test(server.output.stderr)) {
    await assert.rejects(freePort(server.port, ''), { code: 'EADDRINUSE' });
    await assert.rejects(freePort(server.port, '127.0.0.1'), { code: 'EADDRINUSE' });
    await new Promise(setImmediate); // lets the output arrive
  }
});

test('the port is free for the next server as soon as a drain begins', async (t) => {
  for (const transport of TRANSPORTS) {
    const server = await startServer(t, ['--transport', transport, '--drain', '60000']);
    const clients = Array.from({ length: 20 }, () => rawClient(server.port, get()));
    for (const client of clients) await client.untilRead(/Welcome!/);
    server.child.kill('SIGTERM');
    await until(() => freePort(server.port, '').catch(() => false), 'the port is free');
    assert.ok(
      clients.some(({ closed }) => !closed),
      'it still has streams',
    );
    for (const client of clients) client.close();
  }
});

test('an address that this machine does not have ends in one line', () => {
  assertOneLine(
    serverOf(['--host', '192.0.2.1', '--no-log', '--admin-port', '0', '--port', '0']),
    /'192\.0\.2\.1' is not an address of this machine/,
  );
});

test('a log folder that cannot be made ends in one line', () => {
  const file = join(ROOT, 'package.json', 'logs');
  assertOneLine(
    serverOf(['--log-dir', file, '--admin-port', '0', '--port', '0']),
    /can't write to --log-dir .*ENOTDIR/,
  );
});

test("a worker can't be started by hand", () => {
  const { status, stderr } = spawnSync(process.execPath, ['worker.js'], { cwd: ROOT, encoding: 'utf8' });
  assert.match(stderr, /run node server\.js/);
  assert.equal(status, 1);
});

test('options are read from environment variables', async (t) => {
  const server = await startServer(t, [], { prefix: ['env', 'HOLDFAST_WORKERS=3'] });
  assert.equal((await server.frame()).workers.length, 3);
});

test('flags of node reach the workers, and with --expose-gc they collect garbage every --gc-interval', async (t) => {
  const major = Number(process.versions.node.split('.')[0]);
  const nodeArgs = ['--expose-gc', ...(major < 24 ? ['--nouse-idle-notification'] : [])];
  const server = await startServer(t, ['--gc-interval', '100', '--workers', '1'], { nodeArgs });
  const { workers } = await server.frame();
  const command = readFileSync(`/proc/${workers[0].pid}/cmdline`, 'utf8').split('\0');
  for (const flag of nodeArgs) assert.ok(command.includes(flag), flag);
  const before = Number(workers[0].values.gcCountMajor);
  await until(
    async () => Number((await server.frame()).workers[0].values.gcCountMajor) >= before + 5,
    'five collections',
  );
});

for (const transport of TRANSPORTS) {
  test(`writes of the ${transport} transport are not delayed unless --nagle is given`, async (t) => {
    if (spawnSync('strace', ['-V']).error) return t.skip('strace is not installed (Debian: strace)');
    for (const [flags, expected] of /** @type {[string[], boolean][]} */ ([
      [[], true],
      [['--nagle'], false],
    ])) {
      const trace = join(temporaryFolder(t), 'trace');
      const prefix = ['strace', '-f', '-qq', '-e', 'trace=setsockopt', '-o', trace];
      const server = await startServer(t, ['--transport', transport, '--workers', '1', ...flags], { prefix });
      const client = rawClient(server.port, get());
      await client.untilRead(/Welcome!/);
      client.close();
      const [{ pid }] = (await server.frame()).workers;
      const threads = readdirSync(`/proc/${pid}/task`).join('|');
      const calls = readFileSync(trace, 'utf8').match(
        new RegExp(`^(${threads}) .*TCP_NODELAY, \\[1\\]`, 'm'),
      );
      assert.equal(calls !== null, expected, `${flags}`);
    }
  });
}

test('each frame writes a row to disk; a full disk drops rows, says so, and later takes rows again', async (t) => {
  const folder = temporaryFolder(t);
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const mount = 'mount -t tmpfs -o size=32k none "$0/disk" && head -c 20000 /dev/zero > "$0/disk/filler"';
  const release = '(until [ -e "$0/release" ]; do sleep 0.1; done; rm "$0/disk/filler") >&- 2>&- &';
  const prefix = ['unshare', '-m', 'sh', '-c', `${mount} && { ${release} } && exec "$@"`, folder];
  const { error, status, stderr } = spawnSync(prefix[0], ['-m', 'sh', '-c', mount, folder], {
    encoding: 'utf8',
  });
  if (error || status !== 0) return t.skip(`no disk can be mounted here: ${error?.message ?? stderr}`);
  const server = await startServer(t, ['--log-dir', disk], { prefix });
  await until(async () => (await server.frame()).log?.rowsDropped, 'rows are dropped');
  assert.match(server.output.stderr, /CSV: row dropped: ENOSPC/);
  const client = rawClient(server.port, get());
  await client.untilRead(/Welcome!/);
  client.close();
  run(t, 'touch', [join(folder, 'release')]);
  await until(() => /CSV: writing again/.test(server.output.stderr), 'rows are written again');
  const inside = `/proc/${(await server.frame()).primary.pid}/root${disk}`;
  const [name] = readdirSync(inside).filter((file) => file.endsWith('.csv'));
  const [head, ...rows] = readFileSync(join(inside, name), 'utf8').split('\r\n').slice(0, -1);
  for (const row of rows) assert.equal(row.split(',').length, head.split(',').length, 'no row is torn');
});
