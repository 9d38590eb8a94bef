/*
 * docs/deploy/alerts.yml: promtool evaluates each rule for an instance where it must fire, and for one where it must not.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT, temporaryFolder } from './helpers/server.js';

const RULES = join(ROOT, 'docs/deploy/alerts.yml');
const skip = spawnSync('promtool', ['--version']).error ? 'promtool is not installed' : false;

/**
 * A value each minute, in the notation of promtool: '0+5x10' is 0, 5, 10… for eleven minutes.
 * @typedef {object} Case
 * @property {string} alert
 * @property {[series: string, bad: string, good: string][]} series two values of each: where the alert fires, and where it doesn't
 * @property {string} at when it has fired
 * @property {string} [before] when it has not yet, because it must last
 */

const LATE = 'holdfast_ping_lateness_seconds_bucket';
const TICK = 'holdfast_tick_seconds_bucket';

/** @type {Case[]} */
const CASES = [
  { alert: 'HoldfastDown', series: [['up', '1 1 0x20', '1 0 1x20']], at: '5m', before: '2m' },
  { alert: 'HoldfastWorkerMissing', series: [['holdfast_workers', '2 2 1x20', '2 1 2x20'], ['holdfast_workers_planned', '2x22', '2x22']], at: '6m', before: '3m' }, // biome-ignore format: a table
  { alert: 'HoldfastWorkerLate', series: [['holdfast_workers_late', '0 0 1x20', '0 1 0x20']], at: '6m', before: '2m' }, // biome-ignore format: a table
  { alert: 'HoldfastWorkerRestarted', series: [['process_cpu_seconds_total{worker="1"}', '100+5x3 1+5x20', '100+5x30']], at: '6m' }, // biome-ignore format: a table
  {
    alert: 'HoldfastStreamsLost',
    series: [['holdfast_streams_lost_total', '0x3 500x20', '500x30']],
    at: '6m',
  },
  { alert: 'HoldfastShardFailed', series: [['holdfast_shard_failures_total{worker="1"}', '0x3 1x20', '1x30']], at: '6m' }, // biome-ignore format: a table
  {
    alert: 'HoldfastPingsLate',
    series: [
      [`${LATE}{le="1"}`, '0+50x30', '0+100x30'],
      [`${LATE}{le="5"}`, '0+100x30', '0+100x30'],
      [`${LATE}{le="+Inf"}`, '0+100x30', '0+100x30'],
    ],
    at: '12m',
    before: '4m',
  },
  {
    alert: 'HoldfastTicksLate',
    series: [
      [`${TICK}{le="0.2"}`, '0+50x30', '0+100x30'],
      [`${TICK}{le="0.5"}`, '0+100x30', '0+100x30'],
      [`${TICK}{le="+Inf"}`, '0+100x30', '0+100x30'],
    ],
    at: '12m',
    before: '4m',
  },
  {
    alert: 'HoldfastFull',
    series: [
      ['holdfast_requests_refused_total{status="503",worker="1"}', '0+60x30', '0x30'],
      ['holdfast_requests_refused_total{status="404",worker="1"}', '0x30', '0+60x30'],
      ['holdfast_streams_closed_total{reason="over-capacity",worker="1"}', '0x30', '0x30'],
      ['holdfast_connections_cut_total{worker="1"}', '0x30', '0x30'],
    ],
    at: '8m',
    before: '2m',
  },
  { alert: 'HoldfastLimitReached', series: [['holdfast_hub_limited_total{limit="max-presence",worker="1"}', '0+120x40', '0+6x40']], at: '20m', before: '9m' }, // biome-ignore format: a table
  { alert: 'HoldfastTokensRefused', series: [['holdfast_hub_tokens_refused_total{worker="1"}', '0+120x40', '0+6x40']], at: '20m', before: '9m' }, // biome-ignore format: a table
  {
    alert: 'HoldfastSlowClients',
    series: [
      ['holdfast_streams_closed_total{reason="slow",worker="1"}', '0+60x40', '0+60x40'],
      ['holdfast_streams_opened_total{worker="1"}', '0+600x40', '0+60000x40'],
    ],
    at: '20m',
    before: '9m',
  },
  { alert: 'HoldfastBacklog', series: [['holdfast_backlog_bytes{worker="1"}', '300000000x40', '100000000x40']], at: '15m', before: '8m' }, // biome-ignore format: a table
  { alert: 'HoldfastPublicationsWait', series: [['holdfast_primary_queue_bytes', '12000000x40', '100x40']], at: '3m', before: '30s' }, // biome-ignore format: a table
  {
    alert: 'HoldfastHistoryTooShort',
    series: [
      ['holdfast_hub_recoveries_earliest_total{worker="1"}', '0+600x60', '0+60x60'],
      ['holdfast_hub_recoveries_total{worker="1"}', '0+1200x60', '0+1200x60'],
    ],
    at: '30m',
    before: '14m',
  },
  { alert: 'HoldfastNatsDisconnected', series: [['holdfast_nats_connected', '1 0x20', '1x20']], at: '4m', before: '1m30s' }, // biome-ignore format: a table
  { alert: 'HoldfastNatsLag', series: [['holdfast_nats_lag_seconds', '0 30x20', '0 3x20']], at: '4m', before: '1m30s' }, // biome-ignore format: a table
  {
    alert: 'HoldfastMemory',
    series: [
      ['holdfast_machine_memory_used_bytes', '95x20', '80x20'],
      ['holdfast_machine_memory_free_bytes', '2x20', '2x20'],
      ['holdfast_machine_memory_cached_bytes', '3x20', '18x20'],
    ],
    at: '8m',
    before: '4m',
  },
  { alert: 'HoldfastLogRowsDropped', series: [['holdfast_log_rows_dropped_total', '0x3 7x20', '7x30']], at: '6m' }, // biome-ignore format: a table
];

/** @param {string} series @param {'bad' | 'good'} instance @returns {string} with the labels of a target */
function labelled(series, instance) {
  const [name, labels = ''] = series.replace(/}$/, '').split('{');
  const all = [`job="holdfast"`, `instance="${instance}"`, ...(labels ? [labels] : [])];
  return `${name}{${all.join(',')}}`;
}

/** @param {Case} one @returns a test of promtool: the instances for which the alert fires */
function promtoolTest({ alert, series, at, before }) {
  const firing = (/** @type {string} */ time, /** @type {number} */ count) => ({
    expr: `sum by (instance) (clamp_max(sum by (instance) (ALERTS{alertname="${alert}",alertstate="firing"}), 1))`,
    eval_time: time,
    exp_samples: count === 0 ? [] : [{ labels: '{instance="bad"}', value: 1 }],
  });
  return {
    name: alert,
    interval: '1m',
    input_series: series.flatMap(([name, bad, good]) => [
      { series: labelled(name, 'bad'), values: bad },
      { series: labelled(name, 'good'), values: good },
    ]),
    promql_expr_test: [...(before ? [firing(before, 0)] : []), firing(at, 1)],
  };
}

/** HoldfastAbsent: there is no instance. */
const ABSENT = [
  { present: false, count: 1 },
  { present: true, count: 0 },
].map(({ present, count }) => ({
  interval: '1m',
  input_series: present ? [{ series: 'up{job="holdfast",instance="any"}', values: '0x20' }] : [],
  promql_expr_test: [
    {
      expr: 'count(ALERTS{alertname="HoldfastAbsent",alertstate="firing"})',
      eval_time: '8m',
      exp_samples: count === 0 ? [] : [{ labels: '{}', value: count }],
    },
  ],
}));

test('promtool accepts the rules', { skip }, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /SUCCESS/);
});

test('each alert has a case here, and says what to do', () => {
  const text = readFileSync(RULES, 'utf8');
  const alerts = [...text.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  assert.deepEqual(alerts.toSorted(), [...CASES.map(({ alert }) => alert), 'HoldfastAbsent'].toSorted());
  for (const word of ['severity: (page|ticket)', 'summary: ', 'description: '])
    assert.equal(text.match(new RegExp(`^ +(?:labels: \\{ )?${word}`, 'gm'))?.length, alerts.length, word);
});

test('each alert fires where it must, only there, and not before it has lasted', { skip }, (t) => {
  const file = join(temporaryFolder(t), 'test.yml'); // JSON is YAML
  const tests = [...CASES.map(promtoolTest), ...ABSENT];
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '30s', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});
