import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCounts } from '../lib/counts.js';
import { CLOSE_REASONS, zeroes } from '../lib/reasons.js';
import { encoded, frameAfter, host, sample, workerSample } from './helpers/samples.js';

test('counters of the workers are added up, and rates are since the last frame', () => {
  const before = sample({ workers: [workerSample(1, { opened: 100, pings: 10 }), workerSample(2)] });
  const after = sample({
    timeMs: Date.UTC(2026, 0, 2, 3, 4, 7),
    elapsedMs: 2000,
    workers: [
      workerSample(1, { opened: 400, pings: 70, streams: 390 }),
      workerSample(2, { opened: 60, streams: 60 }),
    ],
  });
  const { totals } = frameAfter(before, after);
  assert.equal(totals.time, '2026-01-02T03:04:07.000Z');
  assert.equal(totals.streams, 450);
  assert.equal(totals.opened, 460);
  assert.equal(totals.openedPerSecond, 180);
  assert.equal(totals.pingsPerSecond, 30);
});

test('the counters of a dead worker stay in the totals, and its streams are lost', () => {
  const retired = {
    ...noCounts(),
    opened: 1000,
    lostWithWorkers: 900,
    closed: { ...zeroes(CLOSE_REASONS), slow: 100 },
  };
  const closed = { ...zeroes(CLOSE_REASONS), slow: 1, drain: 2 };
  const { totals } = frameAfter(
    sample({ retired, workers: [workerSample(1, { opened: 10, streams: 7, closed })] }),
  );
  assert.equal(totals.opened, 1010);
  assert.equal(totals.closed, 103);
  assert.equal(totals.closedSlow, 101);
  assert.equal(totals.lost, 900);
  assert.equal(totals.streams, Number(totals.opened) - Number(totals.closed) - Number(totals.lost));
});

test('percentiles of the whole come from merged histograms, and the maximum is the worst', () => {
  const quiet = workerSample(1, { ticks: encoded(Array(990).fill(10_000)) });
  const busy = workerSample(2, { ticks: encoded(Array(10).fill(500_000)) });
  const { totals, workers } = frameAfter(sample({ workers: [quiet, busy] }));
  assert.ok(Math.abs(Number(totals.tickP99Ms) - 10) < 0.1);
  assert.equal(totals.tickMaxMs, 500);
  assert.equal(workers[1].values.tickP90Ms, 500);
});

test('a late worker keeps its last counters, has no ticks in this frame, and is shown as late', () => {
  const late = workerSample(2, { streams: 50 }, { late: true, unread: [] });
  const { totals, workers } = frameAfter(sample({ workers: [workerSample(1, { streams: 40 }), late] }));
  assert.equal(totals.streams, 90);
  assert.equal(totals.workersLate, 1);
  assert.equal(workers[1].state, 'late');
  assert.equal(workers[1].values.tickAvgMs, null);
});

test('late snapshots are merged into the next frame', () => {
  const two = [{ ticks: encoded([10_000]) }, { ticks: encoded([700_000]) }].map(
    (values) => workerSample(1, values).snapshot,
  );
  const worker = workerSample(1, {}, { unread: two.flatMap((one) => one ?? []) });
  assert.equal(frameAfter(sample({ workers: [worker] })).totals.tickMaxMs, 700);
});

test('CPU of the machine is in percent of one core', () => {
  const { totals } = frameAfter(
    sample({ host: host({ user: 100, sys: 100, idle: 800 }) }),
    sample({ elapsedMs: 1000, host: host({ user: 150, sys: 120, idle: 930 }) }),
  );
  assert.deepEqual([totals.cpuUserPercent, totals.cpuSysPercent, totals.cpuIdlePercent], [50, 20, 130]);
});

test('the cost of a stream is the growth of memory per stream; that of the kernel is per socket', () => {
  const start = sample({ host: host({ slabBytes: 100e6, bufferBytes: 0, tcpSockets: 10 }) });
  const usage = { cpuPercent: 1, cpuSeconds: 1, rssBytes: 100e6 };
  const later = sample({
    elapsedMs: 1000,
    host: host({ slabBytes: 140e6, bufferBytes: 2e6, tcpSockets: 20_010 }),
    workers: [1, 2].map((id) =>
      workerSample(id, { streams: 5000, opened: 5000, heapPhysicalBytes: 40e6 }, { usage }),
    ),
  });
  const { totals } = frameAfter(start, later);
  assert.equal(totals.streamHeapBytes, (80e6 - 20e6) / 10_000);
  assert.equal(totals.streamNativeBytes, (120e6 - 80e6) / 10_000);
  assert.equal(totals.streamKernelBytes, 42e6 / 20_000);
});

test('with few streams the cost is unknown, and without /proc the machine is', () => {
  const workers = [workerSample(1, { streams: 3 })];
  const few = sample({ elapsedMs: 1000, host: null, workers });
  const { totals } = frameAfter(sample({ host: null }), few);
  assert.equal(totals.streamHeapBytes, null);
  assert.equal(totals.memoryUsedBytes, null);
  assert.equal(totals.cpuUserPercent, null);
});

test('the baseline for costs is the memory before the first stream, however late that comes', () => {
  const idle = (/** @type {number} */ heapPhysicalBytes) =>
    sample({ workers: [workerSample(1, { heapPhysicalBytes })] });
  const held = sample({
    workers: [workerSample(1, { streams: 2000, opened: 2000, heapPhysicalBytes: 50e6 })],
  });
  assert.equal(frameAfter(idle(10e6), idle(30e6), held).totals.streamHeapBytes, 20e6 / 2000);
});

test('after many streams have left the cost is unknown: memory does not shrink with streams', () => {
  const held = (/** @type {number} */ streams) =>
    sample({ workers: [workerSample(1, { streams, opened: 5000 })] });
  assert.notEqual(frameAfter(sample(), held(5000), held(4600)).totals.streamHeapBytes, null);
  assert.equal(frameAfter(sample(), held(5000), held(4000)).totals.streamHeapBytes, null);
});

test('CPU time includes dead workers, and memory is unknown without workers', () => {
  const gone = workerSample(1, {}, { state: 'gone', snapshot: null, unread: [], usage: null });
  const { totals } = frameAfter(sample(), sample({ workers: [gone] }));
  assert.equal(totals.processCpuSeconds, 3);
  assert.deepEqual(
    [totals.rssBytes, totals.heapPhysicalBytes, totals.nativeBytes, totals.streams],
    [null, null, null, 0],
  );
});
