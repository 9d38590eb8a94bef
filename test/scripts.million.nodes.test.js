import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergeCounts } from '../fleet/merge.js';
import { native } from '../native/index.js';
import experiment from '../scripts/experiments/million-nodes.js';
import { Findings } from '../scripts/lab/findings.js';
import { endValues } from '../scripts/lab/million/nodes.js';
import { natsBinaries } from './helpers/nats.js';
import { run, temporaryFolder } from './helpers/server.js';

const STREAMS = 300;
const [{ path, problem }] = await natsBinaries();

test('a small run with three nodes has all figures, and no answered publication is lost when one is killed', {
  skip: problem || (!native && 'the native core is not built') || false,
}, async (t) => {
  const folder = temporaryFolder(t);
  const words = ['--nodes', '--streams', String(STREAMS), '--ramp', '1000', '--hold', '2'];
  const places = ['--own-network', 'off', '--out', folder, '--dashboard', 'off'];
  const env = { ...process.env, NATS_SERVER: path };
  const { exit, output } = run(t, process.execPath, ['scripts/million.js', ...words, ...places], { env });
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  const [name] = readdirSync(folder).filter((one) => one.endsWith('-million-nodes'));
  const { outcomes } = JSON.parse(readFileSync(join(folder, name, 'report.json'), 'utf8'));
  const [{ values }] = outcomes;
  assert.ok(values.killed > STREAMS / 4 && values.killed < STREAMS / 2, `${values.killed} were at the node`);
  assert.equal(values.moved, values.killed);
  const { missing, duplicated, disordered, gaps, restarted, lost, failed, unpublished } = values;
  const faults = { missing, duplicated, disordered, gaps, restarted, lost, unpublished };
  assert.deepEqual(Object.values(faults), [0, 0, 0, 0, 0, 0, 0], JSON.stringify({ ...faults, failed }));
  assert.ok(values.accepted > 500 && values.expected === 100 * values.accepted, JSON.stringify(values));
  assert.ok(values.recovered > 0, 'streams missed something while they were away');
  assert.ok(values.retried > 0, 'the publisher noticed it');
  assert.ok(values.backS > 0 && values.recoveredS > 0, JSON.stringify(values));
  const missingFigures = experiment.figures.filter((one) => !Number.isFinite(values[one.name]));
  assert.deepEqual(
    missingFigures.map((one) => one.name).filter((one) => one !== 'kernelBytes'),
    [],
  );
});

test('a delivery that did not arrive is seen in the figures, and the target is missed', () => {
  const counts = { ...mergeCounts([]), delivered: 299, duplicated: 2, strayed: 1, moved: 7 };
  const hubs = [
    { hub: 'a', accepted: 2, refused: 1, unanswered: 0 },
    { hub: 'b', accepted: 1, refused: 3, unanswered: 2 },
  ];
  const published = { sent: 3, failed: 1, retried: 6, expected: 300, hubs, problem: '', topics: 3, batch: 1 };
  const values = endValues(counts, { ...published, clock: 'monotonic' });
  const { missing, duplicated, disordered, refused, unanswered, moved, unpublished } = values;
  assert.deepEqual(
    [missing, duplicated, disordered, refused, unanswered, moved, unpublished],
    [1, 2, 1, 4, 2, 7, 1],
  );
  const findings = new Findings(experiment.figures, ['nodes'], [{ run: 'nodes', repeat: 1, values }]);
  assert.match(experiment.comparison?.(findings) ?? '', /\| 1 \/ 2 \/ 1 \| \*\*no\*\* \|/);
});
