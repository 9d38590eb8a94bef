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

/**
 * A run of one worker: in each frame, so many streams are open, and the machine has so many sockets and so much slab.
 * @param {[streams: number, tcpSockets: number, slabBytes: number][]} frames @param {object} [memory] of the worker with streams
 */
function costAfter(frames, memory = {}) {
  const usage = { cpuPercent: 1, cpuSeconds: 1, rssBytes: 150e6 };
  const samples = frames.map(([streams, tcpSockets, slabBytes], i) =>
    sample({
      elapsedMs: i * 1000,
      host: host({ tcpSockets, slabBytes }),
      workers: [
        workerSample(
          1,
          { streams, opened: streams, ...(streams > 0 ? memory : {}) },
          streams > 0 ? { usage } : {},
        ),
      ],
    }),
  );
  return frameAfter(...samples).totals;
}

/** The client's ends are here too. @type {[number, number, number][]} */
const RAMP = Array.from({ length: 13 }, (_, i) => [i * 1000, 10 + i * 2000, 100e6 + i * 2000 * 4100]);

test('the cost of a stream is the growth of memory per stream; that of the kernel is per socket', () => {
  const totals = costAfter(RAMP, { heapPhysicalBytes: 60e6 });
  const { heapPhysicalBytes: before } = costAfter(RAMP.slice(0, 1));
  assert.equal(Math.round(Number(totals.streamHeapBytes)), Math.round((60e6 - Number(before)) / 12_000));
  assert.equal(Math.round(Number(totals.streamHeapMostBytes)), Math.round((63e6 - Number(before)) / 12_000));
  assert.ok(Number(totals.streamNativeBytes) > 0);
  assert.equal(totals.streamKernelBytes, 4100);
  assert.equal(totals.streamKernelMostBytes, 4100);
});

test('a cost that the usual variation exceeds is unknown, and its most is given', () => {
  const few = RAMP.slice(0, 3);
  const { heapPhysicalBytes: before } = costAfter(RAMP.slice(0, 1));
  const totals = costAfter(few, { heapPhysicalBytes: Number(before) - 1e6 });
  assert.equal(totals.streamHeapBytes, null);
  assert.equal(totals.streamHeapMostBytes, (3e6 - 1e6) / 2000);
});

test('other programs do not change the cost of a socket: what they do in quiet frames or in some frames is left out', () => {
  const jumps = [0, 0, 0, 60e6, 60e6, 60e6, -40e6, -40e6, -40e6, -40e6, 90e6, 90e6, 90e6];
  const disturbed = RAMP.map(
    ([streams, tcp, slab], i) => /** @type {[number, number, number]} */ ([streams, tcp, slab + jumps[i]]),
  );
  const [streams, tcp, slab] = disturbed[12];
  const after = Array.from(
    { length: 30 },
    (_, i) => /** @type {[number, number, number]} */ ([streams, tcp, slab + i * 20e6]),
  );
  const { streamKernelBytes, streamKernelMostBytes } = costAfter([...disturbed, ...after]);
  assert.ok(streamKernelBytes === null || Math.abs(Number(streamKernelBytes) - 4100) < 1);
  assert.ok(Number(streamKernelMostBytes) >= 4100);
  assert.equal(costAfter(disturbed).streamKernelBytes, 4100);
});

test('if other programs change the memory of the kernel in every frame by more than the sockets, their cost is unknown', () => {
  const noisy = RAMP.map(
    ([streams, tcp, slab], i) =>
      /** @type {[number, number, number]} */ ([streams, tcp, slab + 10e6 * ((i * i * 37) % 23)]),
  );
  const { streamKernelBytes, streamKernelMostBytes } = costAfter(noisy);
  assert.equal(streamKernelBytes, null);
  assert.ok(streamKernelMostBytes === null || Number(streamKernelMostBytes) > 4100);
});

test('sockets that come again cost nothing new, and many small steps count as well as a few large ones', () => {
  const again = /** @type {[number, number, number][]} */ ([
    ...RAMP,
    [6000, 12_010, 140e6],
    [12_000, 24_010, 140.1e6],
    [12_000, 24_010, 140.1e6],
  ]);
  assert.equal(costAfter(again).streamKernelBytes, 4100);
  const slow = Array.from(
    { length: 200 },
    (_, i) =>
      /** @type {[number, number, number]} */ ([
        i * 30,
        10 + i * 30,
        100e6 + i * 30 * 4100 + 500_000 * (i % 2),
      ]),
  );
  const { streamKernelBytes } = costAfter(slow);
  assert.ok(Math.abs(Number(streamKernelBytes) - 4100) < 400, String(streamKernelBytes));
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
  const most = (/** @type {number} */ streams) =>
    frameAfter(sample({ workers: [workerSample(1)] }), held(5000), held(streams)).totals.streamHeapMostBytes;
  assert.notEqual(most(4600), null);
  assert.equal(most(4000), null);
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
