/*
 * NATS with the configuration of docs/deploy: three servers with TLS, and a user that may do what Holdfast needs and nothing else.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { rawClient } from './helpers/client.js';
import { configurationOf, makeNodeCertificate } from './helpers/deploy.js';
import { eventsIn, legacyToken, PATH, SECRET } from './helpers/hub.js';
import { natsBinaries } from './helpers/nats.js';
import { quietPort } from './helpers/port.js';
import { run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const BINARIES = await natsBinaries();
const HUB = ['--jwt-secret', SECRET, '--anonymous', '--workers', '1'];
const PUBLISHER = legacyToken({ publish: ['*'] });

/** @param {import('node:test').TestContext} t @param {string} path of the program */
async function startThree(t, path) {
  const certificate = makeNodeCertificate(t);
  const { folder, cert, key } = certificate;
  const ports = await Promise.all(Array.from({ length: 6 }, () => quietPort()));
  const servers = ports.slice(0, 3).map((port, i) => {
    const text = configurationOf('nats.conf', [
      ['server_name: n1', `server_name: n${i + 1}`],
      ['10.0.0.21:4222', `127.0.0.1:${port}`],
      ['listen: "10.0.0.21:6222"', `listen: "127.0.0.1:${ports[3 + i]}"`],
      ...[0, 1, 2].map(
        (n) => /** @type {[string, string]} */ ([`10.0.0.2${n + 1}:6222`, `127.0.0.1:${ports[3 + n]}`]),
      ),
      ['/var/lib/nats', join(folder, `n${i + 1}`)],
      ['/etc/nats/server.crt', cert],
      ['/etc/nats/server.key', key],
    ]);
    const file = join(folder, `n${i + 1}.conf`);
    writeFileSync(file, text);
    return run(t, path, ['-c', file]);
  });
  for (const { output } of servers)
    await until(() => output.stderr.includes('Server is ready'), () => output.stderr); // biome-ignore format: one line
  const urls = ports.slice(0, 3).map((port) => `tls://holdfast:change%20this@localhost:${port}`);
  return { servers, options: ['--nats', urls.join(','), '--nats-ca', cert, '--nats-replicas', '3'] };
}

/** @param {number} port @param {string} data */
async function publish(port, data) {
  const body = new URLSearchParams({ topic: 'news', data, id: `urn:${data}` });
  const headers = { Authorization: `Bearer ${PUBLISHER}` };
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`, { method: 'POST', body, headers });
  return `${answer.status} ${await answer.text()}`;
}

/** @param {number} port @param {string} data */
function publishSurely(port, data) {
  let said = '';
  return until(
    async () => {
      said = await publish(port, data);
      return said.startsWith('200');
    },
    () => `${data} is published: ${said}`,
  );
}

/** @param {number} port @param {string} [cursor] */
function subscribe(port, cursor = '') {
  const header = cursor ? `Last-Event-ID: ${cursor}\r\n` : '';
  return rawClient(port, `GET ${PATH}?topic=news HTTP/1.1\r\nHost: a\r\n${header}\r\n`);
}

/** @param {{ received: string }} client @returns {string[]} */
const datasOf = ({ received }) => eventsIn(received).flatMap(({ data }) => data ?? []);

/** It needs a second stream. */
const CACHED = ['--cache-topics', 'news'];

for (const { version, path, problem } of BINARIES) {
  test(`NATS ${version}: two nodes are one hub, with TLS and the permissions of the document`, {
    skip: problem || false,
  }, async (t) => {
    const nats = await startThree(t, path);
    const first = await startServer(t, [...HUB, ...nats.options, ...CACHED]);
    const second = await startServer(t, [...HUB, ...nats.options, '--history-count', '10']);
    const clients = [first, second].map(({ port }) => subscribe(port));
    for (const client of clients) await client.untilRead(/\r\n\r\n/);
    await publishSurely(first.port, 'one');
    await publishSurely(second.port, 'two');
    const expected = ['one', 'two'];
    await until(() => clients.every((client) => datasOf(client).length === 2), 'both have both');
    for (const client of clients) assert.deepEqual(datasOf(client), expected);

    // A server of NATS dies, and publishing goes on.
    process.kill(nats.servers[0].pid, 'SIGKILL');
    await publishSurely(first.port, 'three');
    await until(() => clients.every((client) => datasOf(client).length === 3), 'all have it');

    // A node that comes later has the history. It reads what it doesn't keep itself from NATS.
    for (let i = 0; i < 30; i++) await publishSurely(first.port, `more ${i}`);
    const third = await startServer(t, [...HUB, ...nats.options, '--history-count', '10', ...CACHED]);
    const late = subscribe(third.port, 'urn:one');
    await until(() => datasOf(late).length === 32, () => `everything since then: ${datasOf(late)}`); // biome-ignore format: one line
    assert.deepEqual(datasOf(late).slice(0, 2), ['two', 'three']);
    const notes = [first, second, third].map(({ output }) => output.stdout + output.stderr).join('');
    assert.doesNotMatch(notes, /permission|authorization/i);
    for (const { output } of nats.servers) assert.doesNotMatch(output.stderr, /Permissions Violation/);
  });
}
