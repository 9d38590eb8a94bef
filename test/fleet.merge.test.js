import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { emptyHistogram, percentilesOf } from '../fleet/drone/histograms.js';
import { merge } from '../fleet/merge.js';

/** @param {number} i @returns {import('../fleet/ask.js').Stats} the answer of a real drone */
const drone = (i) =>
  JSON.parse(readFileSync(new URL(`fixtures/fleet/drone-${i}.json`, import.meta.url), 'utf8'));

/** @param {number[]} values µs @returns {import('../fleet/ask.js').Stats} a drone whose pings were this late */
function lateBy(values) {
  const histogram = emptyHistogram();
  for (const us of values) histogram.record(us);
  const stats = drone(1);
  stats.histograms.lateness = histogram.encode();
  stats.percentiles.latenessMs = percentilesOf(histogram);
  return stats;
}

test('counts of several drones are added up, failures by cause', () => {
  const { drones, counts } = merge([drone(1), drone(2), drone(3)]);
  assert.equal(drones, 3);
  assert.deepEqual([counts.target, counts.open, counts.opened], [351, 301, 301]);
  assert.equal(counts.pings, drone(1).counts.pings + drone(2).counts.pings);
  assert.equal(counts.messages, 301 * 5);
  assert.equal(counts.failed.refused, drone(3).counts.failed.refused);
  assert.ok(counts.failed.refused > 0);
  assert.equal(counts.failed.timeout, 0);
});

test('percentiles come from merged histograms and are not averages', () => {
  const { latenessMs } = merge([lateBy(Array(99).fill(1000)), lateBy([500_000])]).percentiles;
  assert.equal(latenessMs.count, 100);
  assert.ok(Math.abs(latenessMs.p50 - 1) < 0.01, `${latenessMs.p50}`);
  assert.ok(Math.abs(latenessMs.p99 - 1) < 0.01, `${latenessMs.p99}`);
  assert.equal(latenessMs.max, 500);
});

test('the merged histograms contain everything that real drones recorded', () => {
  const all = [drone(1), drone(2), drone(3)];
  const { percentiles } = merge(all);
  for (const name of ['connectMs', 'handshakeMs', 'firstByteMs', 'latenessMs', 'deliveryMs']) {
    const ones = all.map((one) => one.percentiles[name]);
    assert.equal(
      percentiles[name].count,
      ones.reduce((sum, { count }) => sum + count, 0),
      name,
    );
    const max = Math.max(...ones.map((one) => one.max));
    assert.equal(percentiles[name].max, max, name);
  }
  assert.equal(percentiles.deliveryMs.count, 301 * 5);
});

test('what became of streams at each server is added up', () => {
  const one = { name: 'a:1', open: 1, opened: 2, failed: 3, lost: 4 };
  const two = { ...one, name: 'b:1' };
  const { servers } = merge([
    { ...drone(1), servers: [one, two] },
    { ...drone(2), servers: [one, two] },
    drone(3),
  ]);
  const twice = { open: 2, opened: 4, failed: 6, lost: 8 };
  assert.deepEqual(servers, [
    { name: 'a:1', ...twice },
    { name: 'b:1', ...twice },
  ]);
});

test('without drones everything is 0', () => {
  const { drones, counts, percentiles, samples } = merge([]);
  assert.deepEqual([drones, counts.open, counts.lost.reset, percentiles.connectMs.count], [0, 0, 0, 0]);
  assert.deepEqual(samples, []);
});

test('unknown causes from a drone elsewhere are ignored', () => {
  const stats = drone(1);
  stats.counts = JSON.parse(
    JSON.stringify(stats.counts).replace('"failed":{', '"failed":{"__proto__":7,"odd":3,'),
  );
  assert.ok(!('odd' in merge([stats]).counts.failed));
  assert.equal(/** @type {any} */ ({}).odd, undefined);
});
