/*
 * The fleet against two servers that are nodes of one hub on a real server of NATS: streams move between them, and one is killed.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SECRET } from './helpers/hub.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const [{ path, problem }] = await natsBinaries();
const HUB = ['--workers', '1', '--jwt-secret', SECRET, '--ping-interval', '500'];
const LOAD = [
  '-n',
  '60',
  '--drones',
  '1',
  '--topic',
  'room/{n%12}',
  '--token-secret',
  SECRET,
  '--publish',
  '100',
];

/** @param {import('node:test').TestContext} t @param {string[]} args */
async function startRun(t, ...args) {
  const nats = await startNats(t, { path });
  const options = [...HUB, '--nats', nats.url];
  const servers = [await startServer(t, options), await startServer(t, options)];
  const folder = temporaryFolder(t);
  const file = join(folder, 'report.json');
  const env = { ...process.env, HOLDFAST_FLEET_DIR: join(folder, 'fleet'), HOLDFAST_TOKEN: '' };
  const target = servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const words = ['fleet/cli.js', 'run', '--target', target, '--report', file, ...LOAD, ...args];
  const started = run(t, process.execPath, words, { env });
  return { ...started, nats, servers, options, report: () => JSON.parse(readFileSync(file, 'utf8')) };
}

/** @param {any} report */
function assertExact({ outcome, publications }) {
  const { lost, duplicated, outOfOrder, strayed, gaps, unseen, restarted, delivered } = outcome;
  const faults = { lost, duplicated, outOfOrder, strayed, gaps, unseen, restarted };
  assert.deepEqual(
    Object.entries(faults).filter(([, count]) => count > 0),
    [],
  );
  assert.deepEqual([publications.failed, delivered], [0, publications.expected]);
}

test('streams that move between two nodes get each publication once and in order', {
  skip: problem || false,
}, async (t) => {
  const { exit, output, report } = await startRun(t, '--churn', '20', '--hold', '4');
  assert.equal((await exit).code, 0, output.stdout + output.stderr);
  const { moved, targets, publications, ...rest } = report();
  assertExact({ publications, ...rest });
  assert.ok(moved > 40, `${moved}`);
  for (const { opened } of targets) assert.ok(opened > 30, JSON.stringify(targets));
  for (const { accepted } of publications.hubs) assert.ok(accepted > 100, JSON.stringify(publications));
  assert.match(
    output.stdout,
    /^ok: no stream failed or was lost, and each publication arrived once and in order$/m,
  );
});

test('if a node is killed and another one takes its place, nothing is lost or repeated', {
  skip: problem || false,
}, async (t) => {
  const { exit, output, servers, options, report } = await startRun(t, '--churn', '10', '--hold', '8');
  await until(() => /^holding .* delivered/m.test(output.stdout), 'it publishes');
  const [{ pid, port, exit: ended }] = servers;
  process.kill(-pid, 'SIGKILL');
  await ended;
  await startServer(t, [...options, '--port', String(port)]);
  assert.equal((await exit).code, 1, 'streams were lost');
  const { targets, publications, ...rest } = report();
  assertExact({ publications, ...rest });
  assert.ok(targets[0].lost > 10 && targets[0].open > 0, JSON.stringify(targets));
  assert.ok(publications.retried > 0, JSON.stringify(publications));
});
