/*
 * The profiler of examples/microprofiler: what it measures, and what it says about it.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CSV_HEAD, csvLines } from '../examples/microprofiler/csv.js';
import { Frame } from '../examples/microprofiler/frame.js';
import { Histogram } from '../examples/microprofiler/histogram.js';
import { profilerOptions } from '../examples/microprofiler/options.js';
import { Profiler } from '../examples/microprofiler/profiler.js';
import { ROWS } from '../examples/microprofiler/rows.js';
import { readArguments } from '../examples/microprofiler/runoptions.js';
import { nextGap } from '../examples/microprofiler/sampling.js';
import { Screen } from '../examples/microprofiler/screen.js';
import { durationText, tableText } from '../examples/microprofiler/table.js';
import { randomNumbers } from './helpers/random.js';
import { ROOT } from './helpers/server.js';

const FRACTIONS = [0.01, 0.5, 0.9, 0.99, 0.999, 1];
const RIGHT_TO = 0.008;

/** @param {number} count @returns {number[]} from a few ns to some seconds */
function someDurations(count) {
  const random = randomNumbers(16);
  return Array.from({ length: count }, () => random(2 ** (1 + random(31))));
}

/** @param {Record<string, number[]>} durations by key @param {Record<string, number>} [budgets] */
function rowsOf(durations, budgets = {}, every = 1) {
  const frame = new Frame(budgets);
  /** @type {[string, import('../examples/microprofiler/histogram.js').Recorded][]} */
  const keys = Object.entries(durations).map(([key, list]) => {
    const histogram = new Histogram(budgets[key]);
    for (const ns of list) histogram.record(ns);
    return [key, histogram.take()];
  });
  frame.add({ every, keys });
  return frame.rows(1e9);
}

/** @param {Profiler} profiler @param {string} key */
function recordedFor(profiler, key) {
  const found = profiler.take().keys.find(([name]) => name === key);
  assert.ok(found, key);
  return found[1];
}

test('a histogram is right to within 0.8 % of the sorted durations', () => {
  const durations = someDurations(20_000);
  const histogram = new Histogram();
  for (const ns of durations) histogram.record(ns);
  const sorted = durations.toSorted((one, other) => one - other);
  for (const fraction of FRACTIONS) {
    const exact = sorted[Math.ceil(fraction * sorted.length) - 1];
    const found = histogram.percentile(fraction);
    assert.ok(
      Math.abs(found - exact) <= Math.max(1, exact * RIGHT_TO),
      `p${fraction}: ${found}, not ${exact}`,
    );
  }
  const sum = sorted.reduce((all, ns) => all + ns, 0);
  assert.deepEqual(
    [histogram.count, histogram.sumNs, histogram.minNs, histogram.maxNs],
    [20_000, sum, sorted[0], sorted.at(-1)],
  );
});

test('histograms that are merged are the histogram of all durations', () => {
  const durations = someDurations(5000);
  const [whole, first, second, merged] = Array.from({ length: 4 }, () => new Histogram(1e6));
  for (const [i, ns] of durations.entries()) {
    whole.record(ns);
    (i % 3 ? first : second).record(ns);
  }
  for (const part of [first, second, new Histogram()]) merged.merge(part.take());
  assert.deepEqual(merged, whole);
  assert.equal(first.count, 0);
  assert.ok(whole.over > 0);
});

test('durations beyond the last bucket keep their largest value, and nothing is below 0', () => {
  const histogram = new Histogram();
  histogram.record(9e9);
  histogram.record(-30);
  assert.equal(histogram.percentile(1), 9e9);
  assert.equal(histogram.percentile(0.1), 0);
  assert.equal(histogram.sumNs, 9e9);
});

test('the cost of measuring is measured', () => {
  const { innerNs, wholeNs } = new Profiler();
  assert.ok(innerNs > 0);
  assert.ok(wholeNs >= innerNs, `${wholeNs}, not less than ${innerNs}`);
});

test('the cost of measuring is subtracted, but never more than what was measured', () => {
  const profiler = new Profiler();
  profiler.innerNs = 1e9;
  profiler.measure(profiler.start(), 'empty');
  assert.deepEqual(recordedFor(profiler, 'empty'), {
    count: 1,
    sumNs: 0,
    minNs: 0,
    maxNs: 0,
    over: 0,
    buckets: [0, 1],
  });
});

test('an empty piece of code takes less time with the cost subtracted than without', () => {
  const [subtracting, raw] = [new Profiler(), new Profiler()];
  raw.innerNs = 0;
  for (let i = 0; i < 20_000; i++)
    for (const profiler of [subtracting, raw]) profiler.measure(profiler.start(), 'empty'); // in turn: both meet the same machine
  const [less, more] = [subtracting, raw].map(
    ({ histograms }) => histograms.get('empty')?.percentile(0.5) ?? 0,
  );
  assert.ok(less < more, `${less}, not ${more}`);
});

test('what inner measurements cost is subtracted from those around them', () => {
  const profiler = new Profiler();
  profiler.wholeNs = 1e9;
  const start = profiler.start();
  profiler.measure(profiler.start(), 'inner');
  profiler.measure(start, 'outer');
  assert.equal(recordedFor(profiler, 'outer').sumNs, 0);
});

test('calibrating again neither counts as calls nor changes which call is measured next', () => {
  const profiler = new Profiler({ every: 1000 });
  const { gap } = profiler;
  profiler.calibrate();
  assert.equal(profiler.gap, gap);
  assert.deepEqual(profiler.take().keys, []);
});

test('sampling measures one call in N', () => {
  const profiler = new Profiler({ every: 16 });
  let measured = 0;
  for (let i = 0; i < 160_000; i++) if (profiler.start() !== 0) measured++;
  assert.ok(Math.abs(measured - 10_000) < 600, `${measured} of 160,000`); // six standard deviations
});

test('sampling does not prefer a call of a loop whose length is N', () => {
  const profiler = new Profiler({ every: 4 });
  const counts = [0, 0, 0, 0];
  for (let i = 0; i < 160_000; i++) if (profiler.start() !== 0) counts[i % 4]++;
  for (const count of counts) assert.ok(Math.abs(count - 10_000) < 600, `${counts}`);
});

test('whether a call is measured does not depend on when one was measured before', () => {
  const random = randomNumbers(7);
  const gaps = Array.from({ length: 100_000 }, () => nextGap(5, random(2 ** 31) / 2 ** 31));
  assert.ok(gaps.every((gap) => gap >= 1 && Number.isInteger(gap)));
  for (const waited of [0, 1, 5, 10]) {
    const later = gaps.filter((gap) => gap > waited);
    const share = later.filter((gap) => gap === waited + 1).length / later.length;
    assert.ok(Math.abs(share - 0.2) < 0.02, `after ${waited}: ${share}`);
  }
});

test('a call that is not sampled is not measured', () => {
  const profiler = new Profiler();
  profiler.measure(0, 'skipped');
  assert.deepEqual(profiler.take().keys, []);
});

test('a table estimates all calls from those that were sampled', () => {
  const [row] = rowsOf({ parse: [1000, 3000] }, {}, 16);
  assert.deepEqual([row.samples, row.calls, row.perSecond, row.meanNs], [2, 32, 32, 2000]);
  assert.equal(row.totalNs, 64_000);
  assert.equal(row.share, 64_000 / 1e9);
});

test('a frame adds up the processes', () => {
  const frame = new Frame({ parse: 10 });
  const profilers = [new Profiler({ budgets: { parse: 10 } }), new Profiler({ budgets: { parse: 10 } })];
  for (const profiler of profilers) {
    profiler.add('parse').record(100);
    profiler.add('store').record(5);
    frame.add(profiler.take());
  }
  const rows = frame.rows(2e9);
  assert.deepEqual(
    rows.map(({ key, calls, perSecond, overShare }) => ({ key, calls, perSecond, overShare })),
    [
      { key: 'parse', calls: 2, perSecond: 1, overShare: 1 },
      { key: 'store', calls: 2, perSecond: 1, overShare: 0 },
    ],
  );
});

test('a table marks what exceeds its budget, and colours it on a terminal', () => {
  const calls = (/** @type {number} */ slow) =>
    Array.from({ length: 1000 }, (_, i) => (i < slow ? 9000 : 1000));
  const rows = rowsOf(
    { much: calls(500), some: calls(5), none: calls(0) },
    { much: 4000, some: 4000, none: 4000 },
  );
  const lines = tableText(rows).split('\n');
  assert.deepEqual(
    lines.slice(1, 4).map((line) => line.slice(0, 6)),
    ['!!  mu', '!   so', '    no'],
  );
  assert.match(lines[1], /much +4\.00 µs +1,000 +5\.00 µs .* 50 %$/);
  assert.ok(!lines.join('').includes('\x1b'));
  const coloured = tableText(rows, { colour: true }).split('\n');
  assert.ok(coloured[1].startsWith('\x1b[31m!!'));
  assert.ok(coloured[2].startsWith('\x1b[33m!'));
  assert.ok(!coloured[3].includes('\x1b'));
});

test('a table fits the terminal', () => {
  const lines = tableText(rowsOf({ parse: [1] }), { width: 30 }).split('\n');
  for (const line of lines) assert.ok(line.length <= 30, line);
});

test('durations have a unit and three digits', () => {
  const texts = [0, 850, 4250, 12_345, 999_999, 2_500_000, 3e9].map(durationText);
  assert.deepEqual(texts, ['0 ns', '850 ns', '4.25 µs', '12.3 µs', '1.00 ms', '2.50 ms', '3.00 s']);
});

test('a CSV has a row for each key that was measured', () => {
  const rows = [...rowsOf({ 'a,b': [1000, 2000], idle: [] }, { 'a,b': 1500 })];
  const text = csvLines(new Date(0), rows);
  assert.equal(
    text,
    '1970-01-01T00:00:00.000Z,"a,b",2,2,2.0,1500.0,1004,2000,2000,2000,3000,0.000003,1500,0.500000\n',
  );
  assert.equal(CSV_HEAD.split(',').length, text.replace('"a,b"', 'ab').split(',').length);
});

test('a screen draws a table in place of the one before, and lines above it', () => {
  let written = '';
  const stream = {
    isTTY: true,
    rows: 24,
    columns: 80,
    write: (/** @type {string} */ text) => (written += text),
  };
  const screen = new Screen(/** @type {any} */ (stream));
  screen.draw('one\ntwo\n');
  written = '';
  screen.line('note');
  assert.ok(written.startsWith('\r\x1b[A\x1b[A\x1b[Jnote\n'));
  assert.match(written, /note\n.*one\ntwo\n/);
  written = '';
  screen.end('last\n');
  assert.equal(written, '\r\x1b[A\x1b[A\x1b[Jlast\n');
});

test('options are checked', () => {
  assert.deepEqual(profilerOptions({ budget: ['parse=4us,store=1.5ms', 'send=20ns'], every: '16' }), {
    every: 16,
    budgets: { parse: 4000, store: 1_500_000, send: 20 },
    csv: '',
  });
  for (const budget of ['parse', 'parse=4', '=4us', 'parse=0us', 'parse=-1us', 'parse=4h'])
    assert.throws(
      () => profilerOptions({ budget: [budget] }),
      /--budget got '.*': expected KEY=TIME/,
      budget,
    );
  for (const every of ['0', '1.5', 'x', '', '1000001'])
    assert.throws(() => profilerOptions({ every }), /--every got/, every);
  assert.throws(() => profilerOptions({ csv: '' }), /--csv needs/);
});

test('the runner knows its keys', () => {
  assert.throws(() => readArguments(['--keys', 'decide,nothing', '--', 'x'], false), /no key 'nothing'/);
  assert.throws(() => readArguments(['--budget', 'nothing=1us', '--', 'x'], false), /no key 'nothing'/);
  assert.throws(() => readArguments(['--interval', 'x', '--', 'x'], false), /--interval got 'x'/);
  assert.throws(() => readArguments(['--what', '--', 'x'], false), /--what/);
  assert.throws(() => readArguments([], false), /name a program/);
  const given = ['--budget', 'append settled=1ms', '--keys', 'append', '--', 'server.js', '--every', '3'];
  const { keys, budgets, program, every, intervalS } = readArguments(given, true);
  assert.deepEqual(
    { keys, budgets, program, every, intervalS },
    {
      keys: ['append'],
      budgets: { 'append settled': 1e6 },
      program: ['server.js', '--every', '3'],
      every: 1,
      intervalS: 1,
    },
  );
});

test('a measured method does the same as before', () => {
  class Counter {
    count = 1;
    /** @param {number} one @param {number} other */
    add(one, other) {
      this.count += one + other;
      return this;
    }
    fail() {
      throw new Error('failed');
    }
  }
  const { add } = Counter.prototype;
  const profiler = new Profiler();
  const undos = ['add', 'fail'].map((name) => profiler.wrapMethod(Counter.prototype, name, name));
  const counter = new Counter();
  assert.equal(counter.add(2, 3), counter);
  assert.equal(counter.count, 6);
  assert.throws(() => counter.fail(), /failed/);
  assert.deepEqual([counter.add.name, counter.add.length, Object.keys(Counter.prototype)], ['add', 2, []]);
  const counts = profiler.take().keys.map(([key, { count }]) => [key, count]);
  assert.deepEqual(counts, [
    ['add', 1],
    ['fail', 1],
  ]);
  for (const undo of undos) undo();
  assert.equal(Counter.prototype.add, add);
});

test('a method that does not exist can not be measured', () => {
  assert.throws(
    () => new Profiler().wrapMethod({}, 'parse', 'p'),
    /there is no method 'parse' to measure as 'p'/,
  );
});

test('a promise is measured until it is settled, and is the same promise', async () => {
  const profiler = new Profiler();
  const [kept, failed] = [Promise.resolve(1), Promise.reject(new Error('full'))];
  const wrapped = profiler.wrap((/** @type {Promise<number>} */ promise) => promise, 'store');
  assert.equal(wrapped(kept), kept);
  await assert.rejects(wrapped(failed), /full/);
  const counts = profiler.take().keys.map(([key, { count }]) => [key, count]);
  assert.deepEqual(counts, [
    ['store', 2],
    ['store settled', 2],
  ]);
});

for (const { module, name, method, key } of ROWS) {
  test(`${key}: ${module} still has ${name}.${method}`, async () => {
    const exports = await import(new URL(`../${module}`, import.meta.url).href);
    assert.equal(typeof Object.getOwnPropertyDescriptor(exports[name].prototype, method)?.value, 'function');
  });
}

test('nothing that users install knows about the profiler', () => {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const folders = files.filter((/** @type {string} */ name) => /^[a-z]+(\.js)?$/.test(name));
  assert.ok(folders.includes('hub') && folders.includes('server.js'));
  for (const name of folders.flatMap(codeIn))
    assert.ok(!/profiler/i.test(readFileSync(join(ROOT, name), 'utf8')), name);
});

/** @param {string} name of a file or folder @returns {string[]} */
function codeIn(name) {
  if (!statSync(join(ROOT, name)).isDirectory()) return [name];
  const names = readdirSync(join(ROOT, name), { recursive: true, encoding: 'utf8' });
  return names.filter((one) => one.endsWith('.js')).map((one) => join(name, one));
}
