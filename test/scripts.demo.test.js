import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupIsAlive, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const OWN = ['--port', '0', '--admin-port', 'auto', '--drain', '100'];

test('the demo shows streams opening and the link to the dashboard, and Ctrl-C ends all of its processes', async (t) => {
  const words = ['run', '--silent', 'demo', '--', ...OWN, '--log-dir', temporaryFolder(t)];
  const { output, exit, pid } = run(t, 'npm', words);
  await until(
    () => /streams [1-9][\d,]* \(\+2\d\d -0\)\/s/.test(output.stdout),
    () => `streams open: ${output.stderr}`,
  );
  const [, link] = /The dashboard is on (\S+)\n/.exec(output.stdout) ?? [];
  assert.match(await (await fetch(link)).text(), /<title>Holdfast<\/title>/);
  process.kill(-pid, 'SIGINT');
  await exit;
  assert.match(output.stderr, /streams opened, 0 lost/);
  await until(() => !groupIsAlive(pid), 'no process is left');
});

test('a demo whose server cannot start ends with the status and the message of the server', async (t) => {
  const { output, exit } = run(t, process.execPath, ['scripts/demo.js', '--port', 'nowhere']);
  assert.deepEqual(await exit, { code: 1, signal: null });
  assert.match(output.stderr, /^holdfast: --port got 'nowhere': [^\n]+\n$/);
});
