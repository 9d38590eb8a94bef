/*
 * The view for dashboards, when the Hold for their streams can't be opened.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { HoldfastError } from '../lib/errors.js';
import { Live } from '../monitor/web/live.js';
import { until } from './helpers/until.js';

/** @param {import('../monitor/web/live.js').Source['openHold']} openHold */
function liveWith(openHold) {
  const topics = { begin() {}, end() {}, read: async () => ({}) };
  const status = () => /** @type {const} */ ({ state: 'running', problem: '' });
  return new Live({ openHold, topics, status, broker: () => null, about: {}, refreshMs: 1000 });
}

test('if it fails once, that dashboard gets an error, the next one a stream, and nothing is thrown at the end', async (t) => {
  let opened = 0;
  let closed = 0;
  const live = liveWith(async () => {
    if (opened++ === 0) throw new HoldfastError('EMFILE', 'too many open files');
    return {
      adopt: async (response) => response.end('adopted') && 1,
      publish: async () => 0,
      label() {},
      onStreamClose() {},
      close: async () => void closed++,
    };
  });
  const server = createServer((_, response) => void live.join(response, 0)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const get = () => fetch(`http://127.0.0.1:${port}/frames`);
  const first = await get();
  assert.deepEqual([first.status, await first.text()], [503, 'too many open files\n']);
  assert.equal(await (await get()).text(), 'adopted');
  await live.close();
  await until(() => closed === 1, 'it is closed');
});

test('if it never opens, closing and resting throw nothing', async () => {
  const live = liveWith(() => Promise.reject(new Error('never')));
  const opening = live.opened();
  live.rest();
  await assert.rejects(opening, /never/);
  await live.close();
});
