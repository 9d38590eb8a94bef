import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { untilListening } from '../lib/listening.js';
import { ROOT } from './helpers/server.js';

/** @param {import('node:test').TestContext} t @param {string} code of a child with an IPC channel */
function childOf(t, code) {
  const script = `import { tellParent } from './lib/listening.js';\n${code}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('the parent gets the message, and other messages are not taken for it', async (t) => {
  const code =
    "process.send({ type: 'hello' }); tellParent({ type: 'listening', port: 5 }); setInterval(() => {}, 1e6);";
  assert.deepEqual(await untilListening(childOf(t, code)), { type: 'listening', port: 5 });
});

test('a child that exits first, or sends no message in time, is an error', async (t) => {
  await assert.rejects(untilListening(childOf(t, 'process.exit(3)')), {
    code: 'NOT_LISTENING',
    message: 'it exited (3) before it was listening',
  });
  const ended = childOf(t, 'process.exit(4)');
  await new Promise((resolve) => ended.once('exit', resolve));
  await assert.rejects(untilListening(ended), /exited \(4\)/);
  await assert.rejects(untilListening(childOf(t, 'setInterval(() => {}, 1e6)'), 300), /within 300 ms/);
});

test('a program whose parent does not listen sends nothing, and can end', async (t) => {
  const code = "process.disconnect(); tellParent({ type: 'listening' });";
  const child = childOf(t, code);
  assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0);
});
