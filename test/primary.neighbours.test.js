import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { neighboursIn, watchNeighbours } from '../primary/neighbours.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const HEADING = '  sl  local_address rem_address   st tx_queue rx_queue\n';
const ALL_SIX = '   0: 00000000000000000000000000000000:22B8 00000000000000000000000000000000:0000 0A 0:0\n';
const ALL_FOUR = '   0: 00000000:22B8 00000000:0000 0A 00000000:00000000\n';
const LOCAL_FOUR = '   1: 0100007F:22B8 00000000:0000 0A 00000000:00000000\n';
const LOCAL_SIX =
  '   1: 00000000000000000000000001000000:22B8 00000000000000000000000000000000:0000 0A 0:0\n';

test('our own sockets at all addresses are no neighbours, with IPv6 or without', () => {
  assert.deepEqual(neighboursIn(HEADING + ALL_SIX + ALL_SIX, HEADING, 8888), []);
  assert.deepEqual(neighboursIn('', HEADING + ALL_FOUR, 8888), []);
});

test('more specific addresses of the same port are found, each once', () => {
  const six = HEADING + ALL_SIX + LOCAL_SIX;
  const four = HEADING + ALL_FOUR + LOCAL_FOUR + LOCAL_FOUR;
  assert.deepEqual(neighboursIn(six, four, 8888), ['::1', '0.0.0.0', '127.0.0.1']);
});

test('other ports, and connections of this one, are ignored', () => {
  const four = HEADING + LOCAL_FOUR.replace('22B8', '22B9') + LOCAL_FOUR.replace(' 0A ', ' 01 ');
  assert.deepEqual(neighboursIn(HEADING + ALL_SIX, four, 8888), []);
});

test('a server on 0.0.0.0 has no neighbours on IPv6 addresses', async (t) => {
  const other = createServer().listen(0, '::1');
  t.after(() => other.close());
  try {
    await once(other, 'listening');
  } catch {
    return t.skip('IPv6 is not available');
  }
  const { port } = /** @type {import('node:net').AddressInfo} */ (other.address());
  /** @type {string[]} */
  const lines = [];
  await watchNeighbours(port, '0.0.0.0', (line) => lines.push(line));
  assert.equal(lines.length, 0);
  await watchNeighbours(port, '', (line) => lines.push(line));
  assert.equal(lines.length, 1);
});

test(
  'a process that listens on the same port at a more specific address is noted',
  NEEDS_NATIVE,
  async (t) => {
    if (spawnSync('python3', ['-V']).error) return t.skip('python3 is not installed (Debian: python3)');
    const server = await startServer(t, ['--transport', 'hold']);
    const thief = run(t, 'python3', ['test/fixtures/neighbour.py', String(server.port)]);
    await until(() => /listening/.test(thief.output.stdout), 'it listens');
    /** @type {string[]} */
    const lines = [];
    await watchNeighbours(server.port, '', (line) => lines.push(line));
    await watchNeighbours(server.port, '127.0.0.1', (line) => lines.push(line));
    const line = `another process listens on 127.0.0.1:${server.port} too, and gets all connections to that address`;
    assert.deepEqual(lines, [line]);
    await until(() => server.output.stderr.includes(line), 'the server notes it');
  },
);
