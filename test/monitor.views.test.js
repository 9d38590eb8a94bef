import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvHeader, csvRow } from '../monitor/csv.js';
import { FIELDS, METRICS_ONLY } from '../monitor/fields.js';
import { lineOf } from '../monitor/lines.js';
import { metricsText } from '../monitor/metrics.js';
import { encoded, frameAfter, sample, workerSample } from './helpers/samples.js';

const ISSUE_COLUMNS =
  `time, elapsedMs, workers, streams, openedPerSecond, closedPerSecond, pingsPerSecond, bytesPerSecond,
  cpuUserPercent, cpuSysPercent, cpuIdlePercent, processCpuPercent, memoryUsedBytes, memoryFreeBytes, memoryCachedBytes,
  slabBytes, kernelSocketBytes, rssBytes, heapUsedBytes, heapTotalBytes, nativeBytes, streamHeapBytes, streamNativeBytes,
  streamKernelBytes, tickAvgMs, tickP90Ms, tickP99Ms, tickMaxMs, pingLatenessP99Ms, pingLatenessMaxMs, gcCount, gcMs,
  backlogBytes, frameMs`.split(/,\s+/);

const STREAMING = sample({
  workers: [
    workerSample(1, { streams: 1200, opened: 1200, lateness: encoded([1000, 2000]) }),
    workerSample(2, { streams: 800, opened: 800 }, { late: true }),
  ],
});

test('the CSV has the documented columns, each once, and every row has as many values', () => {
  const columns = csvHeader().trimEnd().split(',');
  for (const name of ISSUE_COLUMNS) assert.ok(columns.includes(name), name);
  assert.equal(new Set(columns).size, columns.length);
  const row = csvRow(frameAfter(STREAMING));
  assert.equal(row.split(',').length, columns.length);
  assert.ok(row.endsWith('\r\n'));
});

test('a value with a comma or a quote is quoted as in RFC 4180', () => {
  const frame = frameAfter(STREAMING);
  frame.totals.time = 'a,"b"';
  assert.match(csvRow(frame), /^"a,""b""",/);
});

test('every field has a help text', () => {
  const fields = [...FIELDS, ...METRICS_ONLY];
  for (const { name, help, unit } of fields) assert.ok(help && unit, name);
  assert.equal(new Set(fields.map(({ name }) => name)).size, fields.length);
});

test('the line has streams, ticks, the cost of a stream, and late workers', () => {
  const line = lineOf(frameAfter(sample({ elapsedMs: 60_000 }), { ...STREAMING, elapsedMs: 61_000 }));
  assert.match(
    line,
    /^00:01:01 \| streams 2,000 \(\+2,000 -0\)\/s \|.*ticks avg 10\.0 p90 10\.0 max 10\.0 ms/,
  );
  assert.match(line, /per stream .* heap \+ .* native \+ .* kernel/);
  assert.match(line, /late workers: 2/);
});

test('with few streams no cost is shown: the memory of the server itself would hide it', () => {
  const few = sample({ workers: [workerSample(1, { streams: 3 })] });
  assert.doesNotMatch(lineOf(frameAfter(sample(), few)), /per stream/);
});

test('metrics have conventional names, base units, and worker and reason as labels', async () => {
  const text = await metricsText(frameAfter(STREAMING));
  assert.match(text, /^holdfast_streams\{worker="1"\} 1200$/m);
  assert.match(text, /^holdfast_streams_closed_total\{reason="slow",worker="2"\} 0$/m);
  assert.match(text, /^holdfast_requests_refused_total\{status="503",worker="1"\} 0$/m);
  assert.match(text, /^nodejs_eventloop_lag_p90_seconds\{worker="1"\} 0\.01$/m);
  assert.match(text, /^# TYPE holdfast_streams_closed_total counter$/m);
  assert.match(text, /^# HELP holdfast_streams_closed_total streams closed$/m);
  assert.match(text, /^holdfast_gc_seconds_total\{kind="major",worker="1"\} 0$/m);
});

test('durations are histograms of Prometheus too, which count from the start and never fall', async () => {
  const first = sample({
    workers: [workerSample(1, { lateness: encoded([500, 4000]), pingCpu: encoded([4500], 'ns') })],
  });
  const second = sample({
    elapsedMs: 1000,
    workers: [workerSample(2, { lateness: encoded([4000, 20_000_000]) })], // worker 1 has died
  });
  const text = await metricsText(frameAfter(first, second));
  const buckets = [...text.matchAll(/^holdfast_ping_lateness_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)];
  assert.deepEqual(
    buckets
      .map(([, le, count]) => [le, Number(count)])
      .filter(([le]) => ['0.001', '0.005', '10', '+Inf'].includes(String(le))),
    [
      ['0.001', 1],
      ['0.005', 3],
      ['10', 3],
      ['+Inf', 4],
    ],
  );
  assert.match(text, /^# TYPE holdfast_ping_lateness_seconds histogram$/m);
  assert.match(text, /^holdfast_ping_lateness_seconds_count 4$/m);
  assert.match(text, /^holdfast_ping_lateness_seconds_sum 20\.0085$/m);
  assert.match(text, /^holdfast_ping_cpu_seconds_bucket\{le="0\.000005"\} 1$/m);
  assert.match(text, /^holdfast_tick_seconds_bucket\{le="0\.0105"\} \d+$/m);
});

test('a line says how far the server is behind NATS', () => {
  const lineWith = (/** @type {import('../monitor/collect.js').NodeState} */ node) =>
    lineOf(frameAfter(sample(), sample({ node })));
  const state = { isConnected: true, behind: 0, lagMs: 0, problem: '' };
  assert.match(lineWith(state), / \| NATS up to date$/);
  assert.match(
    lineWith({ ...state, behind: 1, lagMs: 2345 }),
    / \| NATS 2\.3 s behind, 1 publication missing$/,
  );
  assert.match(
    lineWith({ ...state, isConnected: false, lagMs: 9000, problem: 'it is lost' }),
    / \| NATS not connected, 9\.0 s behind: it is lost$/,
  );
});
