/*
 * `requests memcached://…` doesn't fill the memory of its machine.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { ROOT, run } from './helpers/server.js';

/** @param {import('node:test').TestContext} t @param {string[]} args */
async function requests(t, ...args) {
  const { exit, output } = run(t, process.execPath, ['fleet/cli.js', 'requests', ...args], { cwd: ROOT });
  return { code: (await exit).code, ...output };
}

test('more values at once than fit into memory are refused', async (t) => {
  const large = ['--value-size', '134217728', '--pipeline', '100'];
  const { code, stderr } = await requests(t, 'memcached://127.0.0.1:1', '--op', 'set', ...large);
  assert.equal(code, 1);
  assert.match(stderr, /^fleet: requests got values of 125\.0 GB at once .*: expected at most 4 GB\n$/);
});

test('an answer of many gigabytes is not waited for', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const isGet = data.toString('latin1').startsWith('get');
      socket.write(isGet ? 'VALUE key-00000000 0 99999999999\r\n' : 'STORED\r\n');
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => void server.close());
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `memcached://127.0.0.1:${port}`;
  const { code, stdout } = await requests(t, url, '-c1', '-n1', '--keys', '1', '--quiet', '--json');
  assert.equal(code, 1);
  assert.match(JSON.parse(stdout).result.lastError, /not the answer to a request: VALUE key-00000000 0 9999/);
});
