import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelRows, linearScale, logScale, timeAxis } from '../monitor/chart.js';
import { FEWEST_COLUMNS, FEWEST_ROWS, layout } from '../monitor/layout.js';
import { costOf, formatCost } from '../monitor/lines.js';
import { costContent, HELP, headerContent, PANELS, TABLE, tableRows } from '../monitor/panels.js';
import { encoded, frameAfter, sample, workerSample } from './helpers/samples.js';

/** @param {string} text without the colours of blessed */
const plain = (text) => text.replace(/\{[^}]*\}/g, '');

/** The longest texts that a run of a million might show. */
const LARGE = frameAfter(
  sample(),
  sample({
    timeMs: Date.UTC(2026, 0, 2, 3, 4, 6),
    elapsedMs: 99 * 3_600_000,
    log: { path: 'logs/2026-01-02T03-04-05.csv', bytes: 12_345_678, rowsDropped: 0, problem: '' },
    workers: Array.from({ length: 60 }, (_, i) =>
      workerSample(
        i + 1,
        { streams: 16_667, opened: 16_667, heapTotalBytes: 250e6, heapPhysicalBytes: 240e6 },
        { pid: 4_194_000 + i, usage: { cpuPercent: 99.9, cpuSeconds: 1, rssBytes: 350e6 } },
      ),
    ),
  }),
);

test('the parts cover the terminal without overlapping, at any size', () => {
  for (const [columns, rows] of [
    [80, 24],
    [160, 48],
    [61, 20],
    [97, 31],
    [300, 100],
  ]) {
    const parts = Object.values(layout(columns, rows) ?? {});
    const area = parts.reduce((sum, { width, height }) => sum + width * height, 0);
    assert.equal(area, columns * rows, `${columns}x${rows}`);
    for (const { left, top, width, height } of parts) {
      assert.ok(left >= 0 && top >= 0 && left + width <= columns && top + height <= rows && height >= 1);
    }
  }
  assert.equal(layout(40, 10), null);
});

test('at 80 columns every title fits its chart and every row its table', () => {
  const places = layout(80, 24);
  assert.ok(places);
  for (const [name, panel] of Object.entries(PANELS)) {
    const width = places[/** @type {'streams'} */ (name)].width - 4;
    assert.ok(
      plain(panel.label(LARGE, width)).length <= width,
      `${plain(panel.label(LARGE, width))} in ${width}`,
    );
  }
  assert.ok(TABLE.widths.reduce((sum, width) => sum + width) <= places.workers.width - 2);
  for (const row of tableRows(LARGE)) {
    for (const [i, text] of row.entries())
      assert.ok(text.length <= TABLE.widths[i], `${text} in ${TABLE.widths[i]}`);
  }
  for (const line of `${plain(costContent(LARGE, 8))}\n${plain(costContent(frameAfter(sample()), 8))}`.split(
    '\n',
  ))
    assert.ok(line.length <= places.cost.width - 2, line);
  assert.ok(headerContent(LARGE, 80).length <= 80);
  assert.match(headerContent(LARGE, 80), /99:00:00.*2026-01-02T03-04-05\.csv 12\.3 MB/);
});

test('the labels of a linear scale are round, evenly spaced in value and in rows, and reach above all values', () => {
  for (let rows = 2; rows <= 40; rows++) {
    for (const max of [10, 99, 100, 101, 2725, 4999, 5000, 83_000, 1.2e6, 697e6, 7.3e9]) {
      const scale = linearScale(max, rows);
      const labels = [...labelRows(scale, rows)];
      const text = `${max} in ${rows}: ${labels}`;
      assert.equal(labels.length, scale.ticks.length, text);
      assert.ok(labels.length >= 2 && labels.length <= 6, text);
      assert.ok(labels.every(([row]) => row >= 0 && row < rows) && labels[0][0] === rows - 1, text);
      const steps = labels
        .slice(1)
        .map(([row, value], i) => [labels[i][0] - row, Math.round(value - labels[i][1])]);
      assert.equal(new Set(steps.map(String)).size, 1, text);
      assert.match(String(steps[0][1]), /^[125]0*$/, text);
      assert.ok(scale.fraction(max) <= 1 && scale.fraction(max) * 5.1 >= 1, text);
    }
  }
});

test('a log scale has whole powers of ten, the same number of rows apart, and 2 and 5 if there is room', () => {
  assert.deepEqual(logScale(10, 45, 4).ticks, [10, 100]);
  assert.deepEqual(logScale(10, 45, 10).ticks.slice(0, 4), [10, 20, 50, 100]);
  for (const [max, rows] of [
    [100, 4],
    [3000, 4],
    [90_000, 4],
    [90_000, 13],
    [700, 20],
  ]) {
    const scale = logScale(10, max, rows);
    const powers = scale.ticks.filter((tick) => Number.isInteger(Math.log10(tick)));
    const at = powers.map((tick) => (1 - scale.fraction(tick)) * (rows - 1));
    assert.ok(
      at.every((row) => Math.abs(row - Math.round(row)) < 1e-9),
      `${max} in ${rows}: ${at}`,
    );
    assert.ok(scale.fraction(max) < 1 || max === 100, `${max} in ${rows}`);
    assert.equal(scale.fraction(0), 0);
  }
});

test('the time axis says how long ago each part of the chart was', () => {
  assert.equal(timeAxis(38, 1), '──────────────────── -30s ──────── now');
  assert.match(timeAxis(98, 1), /^─+ -2:30 ─+ -2:00 ─+ -1:30 ─+ -1:00 ─+ -30s ─+ now$/);
  for (const columns of [1, 5, 8, 20, 38, 98, 150])
    for (const seconds of [0.1, 1, 60]) assert.equal(timeAxis(columns, seconds).length, columns);
});

test('the help fits the smallest terminal without wrapping', () => {
  assert.ok(HELP.length + 2 <= FEWEST_ROWS);
  for (const line of HELP) assert.ok(line.length + 4 <= FEWEST_COLUMNS, line);
});

test('the memory panel says that it is stacked, and has the values if there is room', () => {
  const label = (/** @type {number} */ columns) => plain(PANELS.memory.label(LARGE, columns));
  assert.match(label(36), /^stacked memory: kernel\+native\+heap$/);
  assert.match(label(90), /^stacked memory: kernel \S+ \+ native \S+ \+ heap \S+$/);
});

test('the cost box has a row for each kind of memory and of CPU, with its unit', () => {
  const ns = (/** @type {number} */ us) => encoded([us * 1000], 'ns');
  const costs = (/** @type {object} */ values, /** @type {number} */ rows) =>
    plain(costContent(frameAfter(sample({ workers: [workerSample(1, values)] })), rows));
  const known = { openCpu: ns(12.4), pingCpu: ns(4.9) };
  assert.match(costs(known, 8), /\n open +12 µs\n ping +4\.9 µs\n deliver +-$/);
  assert.match(costs(known, 5), /\n ping +4\.9 µs$/);
  assert.doesNotMatch(costs(known, 5), /open|deliver/);
  assert.doesNotMatch(costs({}, 8), /µs/);
});

test('a cost that is not precise is shown as its most', () => {
  const cost = (/** @type {number | null} */ bytes, /** @type {number | null} */ most) =>
    formatCost(costOf({ streamHeapBytes: bytes, streamHeapMostBytes: most }, 'Heap'));
  assert.equal(cost(4100, 4200), '4.1 KB');
  assert.equal(cost(4100, 8000), '<8.0 KB');
  assert.equal(cost(null, 500), '<500 B');
  assert.equal(cost(null, null), '?');
});
