import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { byteUnit, logAxis, niceEnd, spread, timeAxis } from '../scripts/plot/axes.js';
import { differenceOf, figureTable, tableText } from '../scripts/plot/compare.js';
import { formatFigure } from '../scripts/plot/figures.js';
import { readRun } from '../scripts/plot/read.js';
import { chartsOf, movingAverage, stacked, thin } from '../scripts/plot/series.js';
import { CHARTS, GRAY, RUN_COLORS } from '../scripts/plot/wanted.js';
import { ROOT } from './helpers/server.js';

/** @param {string} name */
const fixture = (name) => readRun(join(ROOT, 'test/fixtures/plot', `${name}.csv`));

/** @param {string} color '#rrggbb' @returns {number} relative luminance (WCAG 2) */
function luminance(color) {
  const [red, green, blue] = [1, 3, 5]
    .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test('a moving average is the mean of the values within half a window before and after', () => {
  const seconds = [0, 1, 2, 3, 4, 5];
  assert.deepEqual(movingAverage(seconds, [0, 6, 0, 6, 0, 6], 2), [3, 2, 4, 2, 4, 3]);
  assert.deepEqual(movingAverage(seconds, [1, 2, 3, 4, 5, 6], 100), [3.5, 3.5, 3.5, 3.5, 3.5, 3.5]);
  assert.deepEqual(movingAverage(seconds, [1, 2, 3, 4, 5, 6], 0), [1, 2, 3, 4, 5, 6]);
});

test('a moving average goes by time, not by points, and skips gaps', () => {
  assert.deepEqual(movingAverage([0, 1, 50, 51], [2, 4, 10, 20], 10), [3, 3, 15, 15]);
  assert.deepEqual(movingAverage([0, 1, 2, 30], [2, null, 4, null], 10), [3, 3, 3, null]);
});

test('CPU is smoothed over 10 s and ticks over 20 s, with the raw maximum tick beside it', async () => {
  const run = await fixture('hold');
  const [, cpu, ticks] = chartsOf([run]);
  const total = cpu.panels[0].lines.find(({ label }) => label === 'total');
  const around = run.times.flatMap((time, i) => (Math.abs(time - run.times[30]) <= 5 ? [i] : []));
  const sums = around.map((i) => (run.values.cpuUserPercent[i] ?? 0) + (run.values.cpuSysPercent[i] ?? 0));
  const mean = sums.reduce((sum, one) => sum + one, 0) / sums.length;
  assert.ok(Math.abs((total?.values[30] ?? 0) - mean) < 1e-9);
  assert.deepEqual([cpu.panels[0].smoothS, ticks.panels[0].smoothS], [10, 20]);
  assert.deepEqual(ticks.panels[0].lines[0].values, run.values.tickMaxMs);
  assert.ok(ticks.panels[0].isLog);
});

test('buckets do not raise a smoothed maximum tick', async () => {
  const path = join(ROOT, 'test/fixtures/plot/hold.csv');
  const [rows, buckets] = [await readRun(path), await readRun(path, { most: 16 })];
  assert.equal(buckets.widthMs, 4000);
  const highest = (/** @type {import('../scripts/plot/read.js').Run} */ run, /** @type {number} */ line) =>
    Math.max(...chartsOf([run])[2].panels[0].lines[line].values.map((value) => value ?? 0));
  assert.equal(highest(buckets, 0), highest(rows, 0));
  assert.ok(highest(buckets, 1) <= highest(rows, 1) * 1.1, `${highest(buckets, 1)} ${highest(rows, 1)}`);
});

test('kernel, native and heap are stacked, and the whole machine is a separate line', async () => {
  const [memory] = chartsOf([await fixture('hold')]);
  const [kernel, native, heap, machine] = stacked(memory.panels[0].lines);
  assert.equal(native.bottom, kernel.top);
  assert.equal(heap.bottom, native.top);
  const sum = [kernel, native, heap].reduce((total, { line }) => total + (line.values[20] ?? 0), 0);
  assert.equal(heap.top[20], sum);
  assert.equal(machine.bottom, null);
});

test('every chart has the number of streams, dashed, on its own axis', async () => {
  const run = await fixture('hold');
  const panels = chartsOf([run]).flatMap(({ panels }) => panels);
  assert.equal(panels.length, 5);
  for (const { streams } of panels) {
    assert.deepEqual(streams[0].values, run.values.streams);
    assert.ok(streams[0].dash.length > 0);
  }
});

test('a second without pings is not a gap in the lateness, a second without streams is', () => {
  const values = { streams: [0, 5, 5, 5, 0], pingLatenessP99Ms: [null, 1, null, 3, null] };
  const run = {
    name: 'r',
    path: 'r.csv',
    rows: 5,
    widthMs: 0,
    times: [0, 1, 2, 3, 4],
    values,
    means: values,
    extents: {},
    startedAt: '',
    machine: '',
    notes: [],
  };
  const panel = chartsOf([run])[3].panels[1];
  assert.deepEqual(panel.lines[0].times, [0, 1, 3, 4]);
  assert.deepEqual(panel.lines[0].values, [null, 1, 3, null]);
});

test('runs are compared measure by measure, each from its own start', async () => {
  const runs = [await fixture('hold'), await fixture('http')];
  const charts = chartsOf(runs);
  assert.deepEqual(
    charts.map(({ panels }) => panels.length),
    [4, 4, 3, 6],
  );
  for (const { lines, title } of charts.flatMap(({ panels }) => panels)) {
    assert.deepEqual(
      lines.map(({ label }) => label),
      ['A hold', 'B http'],
      title,
    );
    assert.ok(lines.every(({ times }) => times[0] < 1));
    assert.notEqual(lines[0].color, lines[1].color);
    assert.notDeepEqual(lines[0].dash, lines[1].dash);
  }
});

test('the comparison table has the figures of each run and the differences from the first', async () => {
  const { head, rows } = figureTable([await fixture('hold'), await fixture('http')]);
  assert.deepEqual(head, ['A hold', 'B http']);
  const cells = Object.fromEntries(rows.map(({ label, cells }) => [label, cells]));
  assert.deepEqual(cells.duration, ['00:00:59', '00:00:44 (−25 %)']);
  assert.match(cells['JS heap of the workers, held'][1], /MB \(\+\d+ %\)/);
  const lines = tableText({ head, rows }).trimEnd().split('\n');
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
});

test('a difference is in percent of the first, or a factor from ten times on', () => {
  assert.equal(differenceOf(50, 56), '+12 %');
  assert.equal(differenceOf(50, 49), '−2.0 %');
  assert.equal(differenceOf(8, 8), '±0 %');
  assert.equal(differenceOf(2, 50), '×25.0');
  assert.equal(differenceOf(0, 50), '');
  assert.equal(differenceOf(null, 50), '');
});

test('a figure has a unit, and an unknown one is a dash', () => {
  const said = [
    formatFigure(8123, 'bytes'),
    formatFigure(10.24, 'ms'),
    formatFigure(250, '1/s'),
    formatFigure(83, 's'),
    formatFigure(12.34, '%'),
    formatFigure(null, 'ms'),
  ];
  assert.deepEqual(said, ['8.1 KB', '10.2 ms', '250/s', '00:01:23', '12 % of one core', '-']);
});

test('a picture gets only as many points as it can show, with the maximum where it counts', () => {
  const times = Array.from({ length: 100 }, (_, i) => i);
  const values = times.map((i) => (i === 42 ? 1000 : 1));
  assert.equal(thin(times, values, 'max', 10).length, 10);
  assert.equal(thin(times, values, 'max', 10)[4].v, 1000);
  assert.equal(thin(times, values, 'mean', 10)[4].v, 100.9);
  assert.deepEqual(thin([1, 2], [null, 5], 'mean', 10), [
    { t: 1, v: null },
    { t: 2, v: 5 },
  ]);
});

test('the time axis marks minutes, and labels as many as there is room for', () => {
  const short = timeAxis(95);
  assert.deepEqual([short.form, short.labelStep, short.strongStep], ['m:ss', 10, 60]);
  const hour = timeAxis(3600);
  assert.deepEqual([hour.form, hour.labelStep, hour.marks[1], hour.marks.length], ['min', 600, 60, 61]);
  const day = timeAxis(86_400);
  assert.deepEqual([day.form, day.labelStep, day.marks[1]], ['h:mm', 10_800, 600]);
  for (const s of [0, 1, 7, 61, 599, 5000, 40_000, 1e6, 1e8]) {
    const { marks, labelStep, end } = timeAxis(s);
    assert.ok(marks.length <= 160 && end / labelStep <= 10, `${s}`);
  }
});

test('axes of values end on round numbers above all values', () => {
  assert.deepEqual([niceEnd(97), niceEnd(100), niceEnd(6000), niceEnd(0)], [100, 120, 8000, 1]);
  assert.deepEqual(logAxis(9, 430), { domain: [5, 500], marks: [5, 10, 20, 50, 100, 200, 500] });
  assert.deepEqual(byteUnit(890e6), { unit: 'MB', factor: 1e6 });
});

test('labels move apart in their order and stay inside', () => {
  assert.deepEqual(spread([100, 20, 101], 10, 0, 200), [100, 20, 110]);
  assert.deepEqual(spread([199, 199, 199], 10, 0, 200), [180, 190, 200]);
  assert.deepEqual(spread([], 10, 0, 200), []);
});

test('every colour has a contrast of at least 3 with white and with black', () => {
  const lines = CHARTS.flatMap(({ panels }) => panels.flatMap(({ lines }) => lines));
  for (const color of [GRAY, ...RUN_COLORS, ...lines.map((line) => line.color)]) {
    assert.ok(1.05 / (luminance(color) + 0.05) >= 3, `${color} on white`);
    assert.ok((luminance(color) + 0.05) / 0.05 >= 3, `${color} on black`);
  }
});

test('the lines of a panel differ even without colours', () => {
  for (const { title, lines } of CHARTS.flatMap(({ panels }) => panels)) {
    const looks = lines.map(({ dash, width, isArea }, i) => (isArea ? `area ${i}` : `${dash} ${width}`));
    assert.equal(new Set(looks).size, lines.length, title);
  }
});

test('memory per stream that is nonsense or unknown is not shown, and not compared', async () => {
  const hold = await fixture('hold');
  const cellsOf = (/** @type {(number | null)[]} */ values) => {
    const other = { ...hold, values: { ...hold.values, streamHeapBytes: values } };
    return figureTable([other, hold]).rows.find(({ label }) => label === 'JS heap per stream, held')?.cells;
  };
  const { length } = hold.times;
  const known = figureTable([hold]).rows.find(({ label }) => label === 'JS heap per stream, held')?.cells[0];
  assert.deepEqual(cellsOf(Array(length).fill(-273)), ['-', known]);
  assert.deepEqual(cellsOf(hold.times.map((_, i) => (i % 3 === 0 ? 2400 : null))), ['-', known]);
  assert.match(String(cellsOf(Array(length).fill(2400))?.[0]), /^2\.4 KB$/);
});
