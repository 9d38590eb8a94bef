/*
 * A takeover under a service manager, as ExecReload= does it: in the background, with another main process at the end.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { OPTIONS, openStreams, untilTotals } from './helpers/handover.js';
import { startManager } from './helpers/notified.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const noPython = spawnSync('python3', ['--version']).error ? 'python3 is not installed' : false;
const skip = native ? noPython : 'the native core is not built';

/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @param {string} folder @param {string} path of the service manager @param {string[]} args */
function reload(t, folder, path, ...args) {
  const words = ['--takeover', '--background', '--port', '0', '--admin-port', 'auto', '--dashboard', 'off'];
  const more = ['--log-dir', folder, '--workers', '1', '--refresh', '100', ...OPTIONS, ...args];
  const env = { ...process.env, NOTIFY_SOCKET: path };
  const { child, output } = run(t, process.execPath, ['server.js', ...words, ...more], { env });
  // Not until its output ends: the new server has that too.
  return { output, exit: once(child, 'exit') };
}

test('a takeover in the background exits with 0 when the service manager knows the new server', {
  skip,
}, async (t) => {
  const { path, datagrams, lines } = await startManager(t);
  const script = `export NOTIFY_SOCKET='${path}' WATCHDOG_USEC=200000 WATCHDOG_PID=$$; exec "$@"`;
  const old = await startServer(t, ['--workers', '1', ...OPTIONS], { prefix: ['sh', '-c', script, 'sh'] });
  const { clients } = await openStreams(t, old.port, 10);
  const { exit, output } = reload(t, old.folder, path);
  assert.deepEqual(await exit, [0, null], output.stderr);
  assert.equal((await old.exit).code, 0);
  const main = Number(
    lines()
      .find((line) => line.startsWith('MAINPID='))
      ?.slice(8),
  );
  t.after(() => process.kill(main, 'SIGKILL'));
  assert.match(readFileSync(`/proc/${main}/cmdline`, 'utf8'), /server\.js/);
  const ready = datagrams().filter(
    ({ lines: [first, second] }) => first === `MAINPID=${main}` && second === 'READY=1',
  );
  assert.deepEqual(
    ready.map(({ pid }) => pid),
    [main],
  );
  assert.ok(!lines().some((line) => line.startsWith('STOPPING')));
  const count = datagrams().length;
  await until(
    () =>
      datagrams()
        .slice(count)
        .some((one) => one.pid === main && one.lines.includes('WATCHDOG=1')),
    'the new server feeds the watchdog',
  );
  await untilTotals(old.adminPort, ({ streams }) => streams === 10, 'its admin port is the same');
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
});

test('a takeover in the background that fails exits with 1, after a line that says why', {
  skip,
}, async (t) => {
  const { path, lines } = await startManager(t);
  const old = await startServer(t, ['--workers', '1', ...OPTIONS]);
  const { exit, output } = reload(t, old.folder, path, '--host', '127.0.0.1');
  assert.deepEqual(await exit, [1, null]);
  assert.match(output.stderr, /^holdfast: not taken over: .*use the same --port and --host\n$/);
  assert.deepEqual(lines(), []);
});
