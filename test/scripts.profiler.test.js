/*
 * The experiment `profiler`: its cases are right, and its sentences follow from the figures.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Findings } from '../scripts/lab/findings.js';
import { loop, sumOf } from '../scripts/lab/profiler/cases/inputs.js';
import { GROUPS } from '../scripts/lab/profiler/groups.js';
import { timeAll } from '../scripts/lab/profiler/micro.js';
import { NODES, nodeProgram } from '../scripts/lab/profiler/nodes.js';
import { sentencesOf } from '../scripts/lab/profiler/sentences.js';
import { FIGURES, pageText, specOf, targetsText } from '../scripts/lab/profiler/table.js';

const CALLS = 35;
const RUNS = ['node-20', 'node-22', 'node-24', 'server-off', 'server-16', 'server-all'];

/** @param {Record<string, Record<string, number>[]>} values by run @returns {Findings} */
function findingsOf(values) {
  const outcomes = Object.entries(values).flatMap(([run, list]) =>
    list.map((one, i) => ({ run, repeat: i + 1, values: one })),
  );
  return new Findings(FIGURES, RUNS, outcomes);
}

test('no two cases have the same name or the same text', () => {
  const cases = GROUPS.flatMap(({ cases }) => cases);
  assert.ok(cases.length > 80);
  for (const field of /** @type {const} */ (['name', 'text']))
    assert.equal(new Set(cases.map((one) => one[field])).size, cases.length, field);
});

for (const { title, cases } of GROUPS) {
  test(`${title}: each case gives what it must`, async () => {
    for (const one of cases) {
      const made = 'open' in one ? await one.open() : one;
      assert.equal(await made.run(CALLS), made.expected(CALLS), one.name);
      assert.equal(await made.run(1), made.expected(1), one.name);
      made.end?.();
    }
  });
}

test('a case sums up what its calls return, for any number of them', () => {
  const each = Array.from({ length: 16 }, (_, i) => i * i);
  const { run, expected } = loop('squares', 'squares', (i) => i * i, each);
  for (const n of [0, 1, 15, 16, 17, 160]) {
    const exact = Array.from({ length: n }, (_, i) => (i % 16) ** 2).reduce((sum, value) => sum + value, 0);
    assert.deepEqual([run(n), expected(n), sumOf(n, each)], [exact, exact, exact]);
  }
});

test('a case that returns something else than it must is an error', async () => {
  const wrong = { ...loop('wrong', 'wrong', () => 1), expected: () => 0 };
  await assert.rejects(timeAll([wrong], 1), /wrong: 16 calls gave 16, not 0/);
});

test('each case is timed, and ended', async () => {
  let ended = 0;
  const one = { ...loop('one', 'one', () => 1), end: () => ended++ };
  const { floor, timed } = await timeAll([one], 2);
  assert.ok(floor.ns > 0);
  assert.deepEqual(
    timed.map(({ name }) => name),
    ['one'],
  );
  assert.equal(ended, 1);
});

test('the version of Node that runs this is not installed', () => {
  assert.equal(nodeProgram(process.versions.node), process.execPath);
  for (const { run, version } of NODES) assert.equal(run, `node-${version.split('.')[0]}`);
});

test('sentences say which is cheaper, if the values are apart', () => {
  const findings = findingsOf({
    'node-20': [
      { lookupMap: 10, lookupObject: 30 },
      { lookupMap: 11, lookupObject: 33 },
    ],
    'node-22': [{ lookupMap: 60, lookupObject: 30 }],
    'node-24': [
      { lookupMap: 10, lookupObject: 30 },
      { lookupMap: 40, lookupObject: 30 },
    ],
  });
  const found = sentencesOf(findings).find((sentence) => sentence.includes('map.get'));
  assert.equal(
    found,
    '**map.get, 1,000 keys** instead of **object[key], 1,000 keys**: 3.0 times cheaper on Node 20, 2.0 times more expensive on Node 22, no clear difference on Node 24.',
  );
});

test('what can not be told from the empty loop is not compared', () => {
  const findings = findingsOf({ 'node-20': [{ eventCallback: -0.1, eventEmit: 20 }] });
  assert.match(sentencesOf(findings).join('\n'), /too little to compare on Node 20/);
});

test('a busy machine is mentioned', () => {
  const sentences = (/** @type {number} */ noisePercent) =>
    sentencesOf(findingsOf({ 'node-22': [{ noisePercent }] }));
  assert.match(
    sentences(40).join(),
    /The machine was busy \(Node 22: half of the cases vary by more than 15 %\)/,
  );
  assert.deepEqual(sentences(5), []);
});

test('missed targets are shown as missed', () => {
  const missed = findingsOf({
    'node-20': [{ measureAll: 1200, measureOff: 2 }],
    'server-off': [{ openUs: 10 }],
    'server-16': [{ openUs: 11 }],
  });
  assert.equal(targetsText(missed).match(/\*\*missed\*\*/g)?.length, 3);
  const reached = findingsOf({
    'node-20': [{ measureAll: 90, measureOff: 0 }],
    'server-off': [{ openUs: 10 }],
    'server-16': [{ openUs: 10.4 }],
  });
  assert.equal(targetsText(reached).match(/: reached/g)?.length, 3);
});

test('a target is neither reached nor missed while the values overlap', () => {
  const findings = findingsOf({
    'server-off': [{ openUs: 10 }, { openUs: 14 }],
    'server-16': [{ openUs: 13 }, { openUs: 15 }],
  });
  assert.match(
    targetsText(findings),
    /14\.0 µs, 1\.17 x without \| at most 1\.05 x: not clear, the values overlap/,
  );
});

test('a page and a chart can be made of what was measured, even if something is missing', () => {
  const findings = findingsOf({ 'node-22': [{ clockHrtime: 30 }, { clockHrtime: 34 }] });
  const report = {
    plan: { repeats: 2 },
    runs: [],
    notes: ['node-20 is skipped'],
    charts: [],
    facts: {},
    command: 'x',
  };
  const page = pageText(/** @type {any} */ (report), findings);
  assert.ok(
    page.includes('| process.hrtime(), as the profiler reads it | 32.0 ns (30.0 ns to 34.0 ns) |'),
    page,
  );
  assert.ok(page.includes('- Node-20 is skipped.'));
  const { vconcat } = specOf(findings, { title: 'clocks', groups: ['Reading a clock'] });
  assert.deepEqual(
    vconcat.map((/** @type {any} */ one) => one.data.values.length),
    [1],
  );
});
