import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { readVersion } from '../lib/version.js';
import bench from '../scripts/experiments/bench.js';
import { pageText, tableText } from '../scripts/lab/bench/table.js';
import { Findings } from '../scripts/lab/findings.js';
import { planOf } from '../scripts/lab/plan.js';
import { ROOT } from './helpers/server.js';

/** @typedef {import('../scripts/lab/findings.js').Outcome} Outcome */

/** @param {Record<string, Record<string, number | null>[]>} values by run */
function findingsOf(values) {
  /** @type {Outcome[]} */
  const outcomes = Object.entries(values).flatMap(([run, all]) =>
    all.map((one) => ({ run, repeat: 1, values: one })),
  );
  return new Findings(bench.figures, ['floor', 'http', 'hold'], outcomes);
}

test('each target says whether it was reached: by itself, or as a ratio to the floor', () => {
  const text = tableText(
    findingsOf({
      floor: [{ openUs: 10 }, { pingUs: 4 }],
      http: [{ openUs: 80 }],
      hold: [{ openUs: 13 }, { openUs: 15 }, { pingUs: 5 }, { memoryBytes: 64 }, { busyTickMaxMs: 25 }],
    }),
  );
  assert.match(text, /^\| user memory per stream \| {2}\| {2}\| 64 B \| {2}\| 100 B: reached \|$/m);
  assert.match(
    text,
    /^\| CPU to open a stream \| 10\.0 µs \| 80\.0 µs \| 14\.0 µs \(13\.0 µs to 15\.0 µs\) \| 1\.40 \| 1\.4 x floor: reached \|$/m,
  );
  assert.match(text, /^\| CPU per ping .+ \| 1\.25 \| 1\.15 x floor: \*\*missed\*\* \|$/m);
  assert.match(text, /^\| JS tick max meanwhile .+ 25\.0 ms .+\*\*missed\*\* \|$/m);
});

test('a figure that was not measured counts as missed, and the summary lists it', () => {
  const findings = findingsOf({ hold: [{ memoryBytes: 64 }] });
  const [sentence] = bench.read(findings);
  assert.match(sentence, /^Targets missed: CPU to open a stream \(\(not known\), target 1\.4 x floor\); /);
  assert.doesNotMatch(sentence, /user memory/);
});

test('the page counts the seconds that were left out because the machine paused', () => {
  const plan = planOf({ ...bench, name: 'bench' }, { streams: 0, hold: 0, repeats: 0, isLong: false });
  const report = /** @type {any} */ ({ plan, facts: { machine: 'a machine' } });
  const seconds = [0.3, 5, 1.9].map((busyPauseMs) => ({ busyPauseMs }));
  const page = pageText(report, findingsOf({ hold: seconds }));
  assert.match(page, /are left out \(1 of 3 busy seconds\)/);
  assert.match(page, /from 5,000 to 15,000 streams/);
  assert.match(page, /measured with 60,000 streams/);
  assert.match(page, /follows 12 s of rest/);
});

test('every script says its version instead of doing anything', () => {
  const scripts = ['bench', 'demo', 'experiment', 'million', 'picture', 'plot', 'prebuilt', 'tune'];
  for (const name of [...scripts.map((one) => `scripts/${one}`), 'fleet/drone']) {
    const path = join(ROOT, `${name}.js`);
    const { stdout, stderr } = spawnSync(process.execPath, [path, '--version'], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.deepEqual({ name, stdout, stderr }, { name, stdout: `${readVersion()}\n`, stderr: '' });
  }
});
