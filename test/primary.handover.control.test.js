/*
 * Others than a new server at the control socket.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { controlOf, openStreams, startNew, startOld } from './helpers/handover.js';
import { startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const skip = native ? false : 'the native core is not built';

const REQUEST = {
  type: 'takeOver',
  protocol: 1,
  version: '9.0.0',
  pid: 1,
  transport: 'hold',
  port: 0,
  host: '',
  publications: 'memory',
};

/** @param {object} [fields] @returns {string} */
const requestOf = (fields = {}) => `${JSON.stringify({ ...REQUEST, shards: [1], ...fields })}\n`;

/** @param {{ folder: string }} server */
function dial(server) {
  const socket = connect(controlOf(server));
  const client = { socket, received: '', isClosed: false };
  socket.on('error', () => {});
  socket.on('data', (data) => {
    client.received += data;
  });
  socket.on('close', () => {
    client.isClosed = true;
  });
  return client;
}

test('what nobody understands on the control socket changes nothing', { skip }, async (t) => {
  const old = await startOld(t);
  for (const bytes of [
    '\0\0\0',
    'GET / HTTP/1.1\r\n\r\n',
    '{"type":"stop"}\n',
    'null\n',
    '{"type":"takeOver"}\n',
    requestOf({ shards: [0] }),
    requestOf({ shards: [1e9] }),
  ]) {
    const client = dial(old);
    client.socket.end(bytes);
    await until(() => client.isClosed, bytes);
    assert.doesNotMatch(client.received, /accepted/);
  }
  await startNew(t, old).listening;
});

test('a line without an end is not kept', { skip }, async (t) => {
  const old = await startOld(t);
  const client = dial(old);
  client.socket.write('x'.repeat(100_000));
  await until(() => client.isClosed, 'the connection is closed', 4000); // before it has been silent for too long
});

for (const [what, line] of [
  ['what makes no sense', '{"type":"append"}'],
  ['that the publications are wanted before anything has moved', '{"type":"close"}'],
]) {
  test(`if the new server says ${what}, the old one goes on`, { skip }, async (t) => {
    const old = await startOld(t);
    const { clients } = await openStreams(t, old.port, 4);
    const client = dial(old);
    client.socket.write(requestOf());
    await until(() => /accepted/.test(client.received), 'it is accepted');
    client.socket.write(`${line}\n`);
    await until(
      () => /it said what can't be understood \(.+\); this server goes on/.test(old.output.stderr),
      () => old.output.stderr,
    );
    await startNew(t, old).listening;
    assert.equal(clients.filter(({ closed }) => closed).length, 0);
  });
}

test('a control socket takes the place of no file, folder or link', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'file'), 'of somebody');
  symlinkSync('file', join(folder, 'link'));
  mkdirSync(join(folder, 'folder'));
  for (const name of ['file', 'link', 'folder'])
    await assert.rejects(
      startServer(t, ['--workers', '1', '--transport', 'hold', '--control', join(folder, name)]),
      /can't listen at --control .+: there is something else, and no socket; use another path\n$/,
    );
  assert.deepEqual(readdirSync(folder).sort(), ['file', 'folder', 'link']);
  assert.equal(readFileSync(join(folder, 'file'), 'utf8'), 'of somebody');
});
