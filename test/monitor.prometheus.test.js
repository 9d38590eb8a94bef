/*
 * Debian's Prometheus, with docs/deploy/prometheus.yml, scrapes a real server on NATS that has something to show. What it has must be
 * what the server says, and every expression of the dashboard (docs/grafana.json) must find something in it.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../lib/port.js';
import { native } from '../native/index.js';
import { dashboardOf } from '../scripts/grafana/dashboard.js';
import { ROWS } from '../scripts/grafana/panels.js';
import { get, rawClient } from './helpers/client.js';
import { configurationOf } from './helpers/deploy.js';
import { PATH } from './helpers/hub.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

const noPrometheus = spawnSync('prometheus', ['--version']).error ? 'prometheus is not installed' : false;
const [{ path: natsPath, problem: noNats }] = await natsBinaries();
const DASHBOARD = JSON.parse(readFileSync(join(ROOT, 'docs/grafana.json'), 'utf8'));
const RULES = join(ROOT, 'docs/deploy/alerts.yml');

/** What a server with few streams does not know yet: the memory of one. */
const UNKNOWN_YET = /^sum by \(instance\) \(holdfast_stream_\w+_bytes\{/;

/** @returns {string[]} every expression of the dashboard */
function shownExpressions() {
  const targets = DASHBOARD.panels.flatMap((/** @type {any} */ { targets = [] }) => targets);
  return targets.map((/** @type {any} */ { expr }) => expr);
}

/** @returns {string[]} every expression of the alert rules */
function alertExpressions() {
  const text = readFileSync(RULES, 'utf8');
  return [...text.matchAll(/expr: (?:>-\n)?([\s\S]*?)\n +(?:for|labels):/g)].map(([, expr]) => expr);
}

/** @param {string} expression @returns {string[]} the metrics in it */
const metricsIn = (expression) => expression.match(/\b(?:holdfast|process|nodejs)_\w+/g) ?? [];

/** @param {Awaited<ReturnType<typeof startServer>>} server @returns {Promise<string[]>} the names of all its series */
async function exportedNames(server) {
  const text = await (await server.admin('/metrics')).text();
  return [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) =>
    type === 'histogram' ? ['bucket', 'sum', 'count'].map((suffix) => `${name}_${suffix}`) : [name],
  );
}

const AUTHORIZATION = '    authorization:\n      credentials_file: /run/secrets/admin-token\n';

/**
 * @param {TestContext} t @param {number} adminPort @param {string} [token] of the admin port
 * @returns {Promise<(path: string, query: Record<string, string>) => Promise<any>>} asks its API
 */
async function startPrometheus(t, adminPort, token = '') {
  const folder = temporaryFolder(t);
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, token);
  const config = join(folder, 'prometheus.yml');
  copyFileSync(RULES, join(folder, 'alerts.yml'));
  writeFileSync(
    config,
    configurationOf('prometheus.yml', [
      ['interval: 15s', 'interval: 500ms'],
      ["'holdfast:8890'", `'127.0.0.1:${adminPort}'`],
      [AUTHORIZATION, token ? AUTHORIZATION.replace('/run/secrets/admin-token', tokenFile) : ''],
    ]),
  );
  const port = await freePort(0, '127.0.0.1');
  const { output } = run(t, 'prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  await until(
    () => fetch(`http://127.0.0.1:${port}/-/ready`).then(({ ok }) => ok, () => false), // biome-ignore format: one line
    () => `it is ready: ${output.stderr}`,
  );
  return async (path, query) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(query)}`);
    const { status, data, error } = /** @type {any} */ (await answer.json());
    assert.equal(status, 'success', `${path} ${JSON.stringify(query)}: ${error}`);
    return data;
  };
}

/** Does a bit of everything that there are metrics of. @param {TestContext} t @param {Awaited<ReturnType<typeof startServer>>} server */
async function use(t, server) {
  const request = (/** @type {string} */ target) => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const clients = [get(), request(`${PATH}?topic=news`), request('/?channel=news')].map((head) =>
    rawClient(server.port, head),
  );
  t.after(() => {
    for (const client of clients) client.close();
  });
  for (const client of clients) await client.untilRead(/\r\n\r\n/);
  const body = new URLSearchParams({ topic: 'news', data: 'hello' });
  const publish = () => fetch(`http://127.0.0.1:${server.adminPort}${PATH}`, { method: 'POST', body });
  await publish();
  await clients[1].untilRead(/hello/);
  const timer = setInterval(() => void publish().catch(() => {}), 100);
  t.after(() => clearInterval(timer));
}

test('docs/grafana.json is what its table says: node scripts/grafana.js', () => {
  assert.deepEqual(DASHBOARD, JSON.parse(JSON.stringify(dashboardOf(ROWS))));
});

test('panels of the dashboard do not overlap, and fit into its width', () => {
  /** @type {Set<string>} */
  const taken = new Set();
  for (const { gridPos, title } of DASHBOARD.panels)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !taken.has(`${x} ${y}`), title);
        taken.add(`${x} ${y}`);
      }
});

test('the dashboard and the alerts only name metrics that there are, and the dashboard shows nearly all', async (t) => {
  const server = await startServer(t);
  const names = await exportedNames(server);
  const [shown, alerting] = [shownExpressions(), alertExpressions()];
  assert.ok(shown.length > 40 && alerting.length === 20);
  for (const expression of [...shown, ...alerting])
    for (const name of metricsIn(expression)) assert.ok(names.includes(name), `${name} in ${expression}`);
  const unseen = names.filter((name) => !shown.some((expression) => metricsIn(expression).includes(name)));
  // What the frame has about one second only, next to the histograms, and upper bounds.
  const expected =
    /_p\d\d_seconds$|_mean_seconds$|_lateness_max_seconds$|_most_bytes$|_seconds_(sum|count)$|_cpu_seconds_bucket$|^holdfast_(connections|gc_runs_total|hub_streams_opened_total|log_rows_dropped_total)$/;
  assert.deepEqual(
    unseen.filter((name) => !expected.test(name)),
    [],
  );
});

test('what is unknown has no value: a server without NATS is not one that has lost it', async (t) => {
  const server = await startServer(t);
  const text = await (await server.admin('/metrics')).text();
  assert.doesNotMatch(text, /^holdfast_(nats|stream_heap)\w+ /m);
  assert.match(text, /^holdfast_workers \d+$/m);
});

test('Prometheus scrapes the server, and the dashboard and the alerts find what they need', {
  skip: noPrometheus || noNats || (!native && 'the native core is not built'),
}, async (t) => {
  const nats = await startNats(t, { path: natsPath });
  const options = ['--nats', nats.url, '--subscriptions', '--ping-interval', '100', '--workers', '2'];
  const server = await startServer(t, options);
  await use(t, server);
  const ask = await startPrometheus(t, server.adminPort);
  const numberOf = async (/** @type {string} */ query) => {
    const { result } = await ask('query', { query });
    return result.length === 0 ? null : Number(result[0].value[1]);
  };
  const target = `{job="holdfast",instance="127.0.0.1:${server.adminPort}"}`;
  await until(async () => (await numberOf(`up${target}`)) === 1, 'the target is up');

  await until(async () => (await numberOf(`sum(holdfast_streams${target})`)) === 3, 'all streams');
  const { totals } = await server.frame();
  assert.equal(totals.streams, 3);
  assert.equal(await numberOf(`holdfast_workers${target}`), totals.workers);
  assert.equal(await numberOf(`sum(holdfast_streams_opened_total${target})`), totals.opened);
  assert.equal(await numberOf(`holdfast_nats_connected${target}`), 1);
  assert.equal(await numberOf(`holdfast_hub_subscriptions${target}`), totals.hubSubscriptions);

  const { groups } = await ask('rules', {});
  assert.equal(groups[0].rules.length, 20);
  await until(async () => {
    const { groups: now } = await ask('rules', {});
    return now[0].rules.every((/** @type {any} */ { health }) => health === 'ok');
  }, 'all rules are evaluated');

  for (const expression of shownExpressions()) {
    const query = expression
      .replaceAll('$job', 'holdfast')
      .replaceAll('$instance', '.+')
      .replaceAll('$__rate_interval', '10s')
      .replaceAll('$__range', '1m');
    if (UNKNOWN_YET.test(query)) await ask('query', { query });
    else await until(async () => (await ask('query', { query })).result.length > 0, query);
  }
  const { alerts } = await ask('alerts', {});
  const firing = alerts.filter((/** @type {any} */ { state }) => state === 'firing');
  assert.deepEqual(firing, []);
});

test('with --admin-token, a Prometheus that has the token gets the metrics, and others do not', {
  skip: noPrometheus,
}, async (t) => {
  const token = 'a-token-for-the-admin-port';
  const server = await startServer(t, ['--workers', '1', '--admin-token', token]);
  const [right, wrong] = await Promise.all([
    startPrometheus(t, server.adminPort, token),
    startPrometheus(t, server.adminPort, 'another-token-for-the-port'),
  ]);
  const targetOf = async (/** @type {typeof right} */ ask) => (await ask('targets', {})).activeTargets[0];
  await until(async () => (await targetOf(right))?.health === 'up', 'the target is up');
  await until(async () => (await targetOf(wrong))?.health === 'down', 'the target is down');
});
