import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeHistograms } from '../lib/histogram.js';
import { Sampler } from '../lib/sampler.js';
import { until } from './helpers/until.js';

test('an event loop that was blocked shows as one long tick', () => {
  const sampler = new Sampler(0);
  const untilMs = performance.now() + 50;
  while (performance.now() < untilMs);
  sampler.tick();
  const ticks = mergeHistograms([sampler.take().ticks]);
  assert.equal(ticks.count, 1);
  assert.ok(ticks.maximum('ms') >= 50);
  assert.equal(sampler.take().ticks.count, 0);
  sampler.stop();
});

test('ticks are sampled automatically, unless the interval is 0', async () => {
  const [ticking, silent] = [new Sampler(10), new Sampler(0)];
  await until(() => ticking.ticks.count > 3, 'ticks');
  assert.equal(silent.take().ticks.count, 0);
  for (const sampler of [ticking, silent]) sampler.stop();
});

test('garbage collections are counted by kind, with their time', async () => {
  const sampler = new Sampler(10);
  const before = sampler.take().gcCount.minor;
  await until(() => {
    Array.from({ length: 100_000 }, (_, i) => ({ i }));
    return sampler.take().gcCount.minor > before;
  }, 'a minor collection');
  assert.ok(sampler.take().gcMs.minor > 0);
  assert.ok(sampler.take().heapUsedBytes > 0);
  sampler.stop();
});
