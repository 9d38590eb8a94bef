import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelRows, linearScale, logScale } from '../monitor/chart.js';
import { layout } from '../monitor/layout.js';
import { costContent, headerContent, PANELS, TABLE, tableRows } from '../monitor/panels.js';
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
    assert.ok(plain(panel.label(LARGE)).length <= width, `${plain(panel.label(LARGE))} in ${width}`);
  }
  assert.ok(TABLE.widths.reduce((sum, width) => sum + width) <= places.workers.width - 2);
  for (const row of tableRows(LARGE)) {
    for (const [i, text] of row.entries())
      assert.ok(text.length <= TABLE.widths[i], `${text} in ${TABLE.widths[i]}`);
  }
  for (const line of `${plain(costContent(LARGE))}\n${plain(costContent(frameAfter(sample())))}`.split('\n'))
    assert.ok(line.length <= places.cost.width - 2, line);
  assert.ok(headerContent(LARGE, 80).length <= 80);
  assert.match(headerContent(LARGE, 80), /99:00:00.*2026-01-02T03-04-05\.csv 12\.3 MB/);
});

test('a linear scale ends at a round number above all values', () => {
  const { ticks, fraction } = linearScale(2725, 2);
  assert.deepEqual(ticks, [0, 2000, 4000]);
  assert.equal(fraction(2000), 0.5);
  assert.equal(fraction(9999), 1);
});

test('a log scale has whole powers of ten, and 2 and 5 if there is room', () => {
  assert.deepEqual(logScale(10, 45, 4).ticks, [10, 100]);
  assert.deepEqual(logScale(10, 45, 10).ticks, [10, 20, 50, 100]);
  const { fraction } = logScale(1, 100, 4);
  assert.equal(fraction(10), 0.5);
  assert.equal(fraction(0), 0);
});

test('labels are in different rows from bottom to top', () => {
  assert.deepEqual(
    [...labelRows(linearScale(4, 2), 5)],
    [
      [4, 0],
      [2, 2],
      [0, 4],
    ],
  );
});

test('a value between two rows gets no label', () => {
  assert.deepEqual([...labelRows(linearScale(10, 2), 4).values()], [0, 10]);
});

test('the cost box has the CPU of the native transport: to open, to ping, to deliver', () => {
  const ns = (/** @type {number} */ us) => encoded([us * 1000], 'ns');
  const costs = (/** @type {object} */ values) =>
    plain(costContent(frameAfter(sample({ workers: [workerSample(1, values)] }))));
  assert.match(costs({ openCpu: ns(12.4), pingCpu: ns(4.9) }), /\n µs 12\/4\.9\/-$/);
  assert.doesNotMatch(costs({}), /µs/);
});
