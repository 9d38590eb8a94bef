import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeHistograms } from '../lib/histogram.js';
import { Sampler } from '../lib/sampler.js';
import { until } from './helpers/until.js';

test('a loop that is blocked shows as its longest tick, once', async () => {
  const sampler = new Sampler(10);
  await until(() => sampler.ticks.count > 3, 'ticks');
  sampler.take();
  const untilMs = performance.now() + 200;
  while (performance.now() < untilMs);
  await until(() => sampler.ticks.count > 0, 'a tick after the block');
  assert.ok(mergeHistograms([sampler.take().ticks]).maximum('ms') >= 200);
  await until(() => sampler.ticks.count > 3, 'ticks');
  assert.ok(mergeHistograms([sampler.take().ticks]).maximum('ms') < 200);
  sampler.stop();
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
