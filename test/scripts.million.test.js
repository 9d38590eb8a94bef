import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native } from '../native/index.js';
import million from '../scripts/experiments/million.js';
import { Findings } from '../scripts/lab/findings.js';
import { findCommand } from '../scripts/lab/install.js';
import { quietTickMaxMs } from '../scripts/lab/million/pauses.js';
import { ownNetworkProblem } from '../scripts/lab/namespace.js';
import { readCsv } from '../scripts/lab/phases.js';
import { ROOT, run, temporaryFolder } from './helpers/server.js';

const HELD = { skip: !native && 'the native core is not built' };

/** @param {Record<string, Record<string, number>>} values by run */
function findingsOf(values) {
  const outcomes = Object.entries(values).map(([name, found]) => ({ run: name, repeat: 1, values: found }));
  return new Findings(million.figures, Object.keys(values), outcomes);
}

for (const network of ['off', 'on']) {
  const why = network === 'on' ? ownNetworkProblem() : '';
  test(`a small run leaves a report, and a copy with charts (own network ${network})`, {
    skip: HELD.skip || why || false,
  }, async (t) => {
    const folder = temporaryFolder(t);
    const copy = join(folder, 'copy.md');
    const words = ['--streams', '300', '--ramp', '1000', '--hold', '3', '--own-network', network];
    const places = ['--out', folder, '--to', copy, '--dashboard', 'off'];
    const { exit, output } = run(t, process.execPath, ['scripts/million.js', ...words, ...places]);
    assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
    const [name] = readdirSync(folder).filter((one) => one.endsWith('-million'));
    const { outcomes } = JSON.parse(readFileSync(join(folder, name, 'report.json'), 'utf8'));
    const { values } = outcomes.find((/** @type {any} */ one) => one.run === 'hold');
    assert.deepEqual([values.open, values.failed, values.lost, values.unanswered], [300, 0, 0, 0]);
    for (const figure of ['heldTickP99Ms', 'upTickP90Ms', 'cpuPercent', 'answerMs'])
      assert.ok(values[figure] > 0, figure);
    assert.equal(
      values.downS !== null,
      network === 'on',
      'only in its own network the last socket can be seen',
    );
    const text = readFileSync(copy, 'utf8');
    assert.match(
      text,
      /## Comparison\n\nThe targets are for a full run\.[^\n]+\n\n[^\n]+\n\n\| figure \| to reach \| here \|/,
    );
    const charts = [...text.matchAll(/\]\((copy\/[^)]+\.svg)\)/g)].map(([, path]) => decodeURI(path));
    assert.ok(charts.length >= 4 && charts.every((path) => existsSync(join(folder, path))), `${charts}`);
  });
}

test('a small run over TLS makes a full handshake for each stream', {
  skip: HELD.skip || (!findCommand('openssl') && 'openssl, which makes the certificate, is not installed'),
}, async (t) => {
  const out = temporaryFolder(t);
  const words = ['--tls', '--streams', '200', '--ramp', '500', '--hold', '3', '--own-network', 'off'];
  const places = ['--out', out, '--dashboard', 'off'];
  const { exit, output } = run(t, process.execPath, ['scripts/million.js', ...words, ...places]);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  const folder = join(out, readdirSync(out)[0]);
  const [{ values }] = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')).outcomes;
  assert.deepEqual([values.open, values.failed, values.lost, values.unanswered], [200, 0, 0, 0]);
  assert.ok(values.heldTickP99Ms > 0 && values.cpuPercent > 0, JSON.stringify(values));
  const rows = readCsv(join(folder, 'tls-1.csv'));
  const most = (/** @type {string} */ name) => Math.max(...rows.map((row) => Number(row[name])));
  assert.ok(most('handshakes') >= 200);
  assert.equal(most('resumed'), 0);
});

test('too many streams are refused in one line, with the number that fits', HELD, async (t) => {
  const words = ['--streams', '10000000', '--own-network', 'off', '--out', temporaryFolder(t)];
  const { exit, output } = run(t, process.execPath, ['scripts/million.js', ...words], { cwd: ROOT });
  assert.equal((await exit).code, 1);
  const [line] = output.stderr.trimEnd().split('\n').slice(-1);
  assert.match(
    line,
    /^million: 10,000,000 streams do not fit here: .+ fit: npm run million -- --streams \d+$/,
  );
});

test('the comparison says for each target whether it was reached; an unknown figure does not count as missed', () => {
  const hold = { failed: 0, lost: 3, upS: 70, pingUs: 12 };
  const text = million.comparison?.(findingsOf({ hold, floor: { pingUs: 10 } })) ?? '';
  assert.match(text, /^\| failed \/ lost \| 0 \/ 0 \| 0 \/ 3 \| \*\*no\*\* \|/m);
  assert.match(text, /^\| ramp \| 80 s \| 70\.0 s \| yes \|/m);
  assert.match(text, /^\| CPU .+ \| 1\.15 \| 1\.20 \| \*\*no\*\* \|/m);
  assert.match(text, /^\| ticks while held.+ \| - \/ - \/ - \| - \|/m);
});

test('the longest tick without pauses excludes seconds that a pause touches, and seconds that were not watched', () => {
  const rows = [10.9, 11, 36, 12, 13, 99].map((tickMaxMs, i) => ({ time: 10_000 + i * 1000, tickMaxMs }));
  const seconds = [0.2, 0.3, 26, 0.1, 0.4].map((longestMs, i) => ({ endMs: 10_400 + i * 1000, longestMs }));
  // Rows end at 10.0, 11.0 …, seconds of the watch at 10.4, 11.4 …: the pause is between 11.4 and 12.4.
  assert.equal(quietTickMaxMs(rows, seconds), 13);
  assert.equal(quietTickMaxMs(rows.slice(0, 5), seconds.slice(0, 3)), 11);
  assert.equal(quietTickMaxMs(rows, []), null);
});
