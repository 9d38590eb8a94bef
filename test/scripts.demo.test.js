import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { groupIsAlive, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @returns {Promise<number>} a port that is free now, outside the range of outgoing connections */
async function freePort() {
  for (let port = 20_000 + (process.pid % 8000); ; port++) {
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

test('the demo shows streams opening, and Ctrl-C ends all of its processes', async (t) => {
  const ports = ['--port', String(await freePort()), '--admin-port', String((await freePort()) + 1)];
  const { output, exit, pid } = run(t, 'npm', [
    'run',
    '--silent',
    'demo',
    '--',
    ...ports,
    '--drain',
    '100',
    '--log-dir',
    temporaryFolder(t),
  ]);
  await until(
    () => /streams [1-9][\d,]* \(\+2\d\d -0\)\/s/.test(output.stdout),
    () => `streams open: ${output.stderr}`,
  );
  process.kill(-pid, 'SIGINT');
  await exit;
  assert.match(output.stderr, /streams opened, 0 lost/);
  await until(() => !groupIsAlive(pid), 'no process is left');
});
