/*
 * docs/deploy/holdfast.service: systemd accepts it, its sandbox is tight, and the server works under its filter of system calls.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { rawClient } from './helpers/client.js';
import { configurationOf } from './helpers/deploy.js';
import { startServer, temporaryFolder } from './helpers/server.js';

/** As docs/deploy.md says it; 10 is no sandbox at all. */
const MOST_EXPOSURE = 1.4;
const UNIT = configurationOf('holdfast.service', []);
const skip = spawnSync('systemd-analyze', ['--version']).error ? 'systemd-analyze is not installed' : false;

/** @param {string[]} args of systemd-analyze @returns {{ status: number | null, stdout: string, stderr: string }} */
const analyze = (...args) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

/** @param {import('node:test').TestContext} t @returns {string} the unit, with the Node of this machine */
function unitFile(t) {
  const file = join(temporaryFolder(t), 'holdfast.service');
  writeFileSync(file, configurationOf('holdfast.service', [['/usr/bin/node', process.execPath]]));
  return file;
}

test('systemd accepts the unit', { skip }, (t) => {
  const { status, stderr } = analyze('verify', unitFile(t));
  assert.equal(status, 0, stderr);
  const ofUnit = stderr.split('\n').filter((line) => line.includes('holdfast.service'));
  assert.deepEqual(ofUnit, []);
});

test('systemd finds the unit as little exposed as the document says', { skip }, (t) => {
  const { stdout } = analyze('security', '--offline=true', unitFile(t));
  const exposure = Number(/Overall exposure level for holdfast\.service: ([\d.]+)/.exec(stdout)?.[1]);
  assert.ok(exposure <= MOST_EXPOSURE, stdout);
  const document = readFileSync(new URL('../docs/deploy.md', import.meta.url), 'utf8');
  assert.ok(document.includes(`\`systemd-analyze security\`: ${MOST_EXPOSURE}`));
});

test('the server of the unit is the one that npm installs', () => {
  const { bin } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.ok(UNIT.includes(`/node_modules/holdfast/${bin.holdfast} `));
});

/** @param {string} name of a system call, or of a group (@…) @returns {string[]} system calls */
function callsOf(name) {
  if (!name.startsWith('@')) return [name];
  const [, ...lines] = analyze('syscall-filter', name).stdout.split('\n');
  const names = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  return names.flatMap(callsOf);
}

/** @returns {string[]} the system calls that the unit allows */
function allowedCalls() {
  const words = [...UNIT.matchAll(/^SystemCallFilter=(.+)$/gm)].map(([, word]) => word);
  const refused = words.filter((word) => word.startsWith('~')).flatMap((word) => callsOf(word.slice(1)));
  const allowed = words.filter((word) => !word.startsWith('~')).flatMap(callsOf);
  return [...new Set(allowed)].filter((name) => !refused.includes(name));
}

/** @param {string[]} names @returns {string[]} the start of a command that runs under a filter */
const allowing = (names) => ['python3', 'test/fixtures/allow-only.py', names.join(',')];

test('under the filter of the unit, shards have descriptor tables of their own, and publications arrive', {
  skip: skip || (!native && 'the native core is not built'),
}, async (t) => {
  const names = allowedCalls();
  assert.ok(names.includes('read') && names.includes('unshare') && !names.includes('mount'));
  const [command, ...args] = allowing(names);
  const { error, status } = spawnSync(command, [...args, 'true']);
  if (error || status !== 0) return t.skip('python3 or libseccomp is not installed');
  const store = join(temporaryFolder(t), 'store');
  const server = await startServer(t, ['--workers', '1', '--store', store], { prefix: allowing(names) });
  assert.match(readFileSync(`/proc/${server.workerPids[0]}/status`, 'utf8'), /^Seccomp:\t2$/m);
  const threads = `/proc/${server.workerPids[0]}/task`;
  const shard = readdirSync(threads).find((id) =>
    readFileSync(`${threads}/${id}/comm`, 'utf8').startsWith('holdfast-'),
  );
  assert.equal(readdirSync(`${threads}/${shard}/fd`).length, 11, 'its own (see server.shards.test.js)');
  assert.doesNotMatch(server.output.stderr, /descriptor tables/);
  const client = rawClient(server.port, 'GET /?channel=news HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await client.untilRead(/Welcome!/);
  const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
  assert.deepEqual(await (await fetch(url, { method: 'POST', body: 'hello' })).json(), { listeners: 1 });
  await client.untilRead(/hello/);
  client.close();
  assert.equal((await server.stop()).code, 0);
});
