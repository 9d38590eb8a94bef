import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Histogram } from '../lib/histogram.js';
import { native } from '../native/index.js';
import { findCommand } from '../scripts/lab/install.js';
import { broadcastValues, eventBytesOf, faultValues, textLengthOf } from '../scripts/lab/million/times.js';
import { readCsv } from '../scripts/lab/phases.js';
import { run, temporaryFolder } from './helpers/server.js';

const STREAMS = 300;
/** With so short a hold. */
const BROADCASTS = 2;

/** @param {number[]} latencies ms of the streams that got it @param {number[]} lateness ms of pings */
function broadcastOf(
  latencies,
  lateness,
  { streams = latencies.length, tookMs = 1000, serverUs = 0, usualPings = 3 } = {},
) {
  const [delivery, late] = [new Histogram(), new Histogram()];
  for (const ms of latencies) delivery.record(ms * 1000);
  for (const ms of lateness) late.record(ms * 1000);
  const [delivered, bytes, pings] = [latencies.length, latencies.length * 130 + 30, 3];
  return {
    streams,
    delivered,
    delivery,
    lateness: late,
    serverUs,
    clientsUs: 0,
    tookMs,
    bytes,
    pings,
    usualPings,
  };
}

test('a small run publishes to everyone, and bare loops send as many bytes', {
  skip: !native && 'the native core is not built',
}, async (t) => {
  const out = temporaryFolder(t);
  const words = [
    '--broadcast',
    '--streams',
    `${STREAMS}`,
    '--ramp',
    '1000',
    '--hold',
    '3',
    '--own-network',
    'off',
  ];
  const places = ['--out', out, '--dashboard', 'off'];
  const { exit, output } = run(t, process.execPath, ['scripts/million.js', ...words, ...places]);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  const folder = join(out, readdirSync(out)[0]);
  const { outcomes, comparison, charts, notes } = JSON.parse(
    readFileSync(join(folder, 'report.json'), 'utf8'),
  );
  assert.deepEqual(
    outcomes.map((/** @type {any} */ one) => one.run),
    findCommand('cargo') ? ['hub', 'pings', 'floor'] : ['hub', 'pings'],
    `${notes}`,
  );
  for (const { run, values } of outcomes) {
    const { open, failed, lost, missing, firstMs, halfMs, mostMs, allMs, allMaxMs } = values;
    assert.deepEqual([open, lost, missing], [STREAMS, 0, 0], run);
    assert.ok(run === 'floor' || failed === 0);
    const times = [0, firstMs, halfMs, mostMs, allMs, allMaxMs];
    assert.deepEqual(
      times,
      [...times].sort((one, other) => one - other),
      run,
    );
    assert.ok(firstMs > 0 && allMaxMs < 10_000, `${times}`);
    // id: urn:uuid:…, data: {"p":…,"n":…,"t":…,"topic":"https://example.com/all"}
    assert.ok(values.eventBytes > 100 && values.eventBytes < 200, `${values.eventBytes}`);
  }
  const [{ values }, pings, floor] = outcomes;
  for (const { duplicated, outOfOrder, gaps } of [values, pings.values])
    assert.deepEqual([duplicated, outOfOrder, gaps], [0, 0, 0]);
  assert.ok(values.deliveryUs > 0 && values.tickMaxMs > 0);
  if (floor) assert.equal(floor.values.eventBytes, pings.values.eventBytes);
  const deliveries = readCsv(join(folder, 'hub-1.csv')).map((row) => Number(row.deliveries));
  assert.equal(Math.max(...deliveries), STREAMS * BROADCASTS, 'the server counts the same');
  assert.match(
    comparison,
    /^\| missing \/ duplicated \/ out of order \| 0 \/ 0 \/ 0 \| 0 \/ 0 \/ 0 \| yes \|/m,
  );
  assert.ok(charts.includes('times.svg'), `${charts}`);
});

test('times are medians of the publications, and the slowest and the latest ping are of all of them', () => {
  const values = broadcastValues(
    [broadcastOf([1, 5, 9], [0, 40]), broadcastOf([2, 6, 12], [7]), broadcastOf([3, 7, 20], [])],
    { serverPercent: 0, clientsPercent: 0 },
  );
  const near = (/** @type {number | null} */ value, /** @type {number} */ ms) =>
    assert.ok(Math.abs(Number(value) - ms) <= ms * 0.01, `${value} is not ${ms}`);
  near(values.firstMs, 2);
  near(values.halfMs, 6);
  near(values.allMs, 12);
  near(values.allMaxMs, 20);
  near(values.deliveriesPerSecond, 250);
  near(values.latenessP99Ms, 40);
  near(values.latenessMaxMs, 40);
});

test('if a publication does not reach everyone, nobody knows when everyone had it', () => {
  const values = broadcastValues([broadcastOf([1, 2], []), broadcastOf([1], [], { streams: 2 })], {
    serverPercent: 0,
    clientsPercent: 0,
  });
  assert.deepEqual(
    [values.mostMs, values.allMs, values.allMaxMs, values.deliveriesPerSecond],
    [null, null, null, null],
  );
  assert.deepEqual([values.latenessP99Ms, values.latenessMaxMs], [null, null], 'no ping was read');
});

test('the CPU of a delivery is without what is used while nothing is published', () => {
  const one = broadcastOf([1, 1], [], { tookMs: 500, serverUs: 60_000 });
  const { deliveryUs, leastMs } = broadcastValues([one], { serverPercent: 10, clientsPercent: 0 }, 2);
  assert.equal(deliveryUs, (60_000 - 50_000) / 2);
  assert.equal(leastMs, 60 / 2, 'pings included');
});

test('of pings that were not sent meanwhile, no CPU is subtracted', () => {
  const one = broadcastOf([1, 1], [], { tookMs: 500, serverUs: 60_000, usualPings: 6 });
  const { deliveryUs } = broadcastValues([one], { serverPercent: 10, clientsPercent: 0 }, 2);
  assert.equal(deliveryUs, (60_000 - 25_000) / 2);
});

test('a few streams without a publication do not keep the time of most of them from being known', () => {
  const most = Array.from({ length: 999 }, (_, i) => i + 1);
  const one = broadcastOf(most, [], { streams: 1000 });
  const { mostMs, allMs } = broadcastValues([one], { serverPercent: 0, clientsPercent: 0 });
  assert.ok(Number(mostMs) > 980 && Number(mostMs) < 1000, `${mostMs}`);
  assert.equal(allMs, null);
});

test('what did not arrive is missing, whatever the clients have noticed', () => {
  const counts = /** @type {any} */ ({ delivered: 597, missed: 0, duplicated: 2, outOfOrder: 1, gaps: 0 });
  assert.deepEqual(faultValues(counts, 600), { missing: 3, duplicated: 2, outOfOrder: 1, gaps: 0 });
});

test('the bytes of a publication are without those of pings, and the text of the loops has as many on the wire', () => {
  assert.equal(eventBytesOf([broadcastOf([1, 1, 1, 1], [])], 10), 130);
  for (const bytes of [6, 20, 21, 135, 136, 261, 262, 263, 5000]) {
    const length = textLengthOf(bytes);
    const chunk = `${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`;
    // 16 bytes of text need a digit more than 15, so one size in a while can't be had exactly.
    assert.ok(
      bytes - chunk.length === 0 ||
        (bytes - chunk.length === 1 && length === 16 ** length.toString(16).length - 1),
      `${bytes}`,
    );
  }
});
