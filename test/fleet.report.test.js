import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { merge } from '../fleet/merge.js';
import { progressLine } from '../fleet/show/progress.js';
import { reportOf, reportText } from '../fleet/show/report.js';

/** @param {number} i @returns {import('../fleet/ask.js').Stats} the answer of a real drone */
const drone = (i) =>
  JSON.parse(readFileSync(new URL(`fixtures/fleet/drone-${i}.json`, import.meta.url), 'utf8'));

/** @param {number[]} drones @returns {import('../fleet/crew.js').Summary} */
const summaryOf = (...drones) => ({ ...merge(drones.map(drone)), late: 0, died: 0 });

/** @param {Partial<import('../fleet/show/report.js').Facts>} [facts] @returns {import('../fleet/show/report.js').Facts} */
const factsOf = (facts) => ({
  startedAt: new Date(0),
  asked: 301,
  target: '127.0.0.1:8888',
  place: 'local',
  dialer: 'native',
  summary: summaryOf(1, 2),
  ramp: { elapsedMs: 1500, opened: 301, isComplete: true },
  withinMs: 30_000,
  heldMs: 10_000,
  publications: { sent: 5, failed: 0, problem: '' },
  isInterrupted: false,
  machine: 'a machine',
  ...facts,
});

test('the report of a run without problems says so, with its figures', () => {
  const report = reportOf(factsOf());
  assert.deepEqual([report.isOk, report.problems, report.retried, report.openAllMs], [true, [], 0, 1500]);
  const text = reportText(report);
  assert.match(text, /^301 streams to 127\.0\.0\.1:8888, 2 drones \(local, native\)$/m);
  assert.match(text, /^asked +301$/m);
  assert.match(text, /^opened +301 {2}301 open at the end$/m);
  assert.match(text, /^all open after +1\.5 s {2}201 opened per second$/m);
  assert.match(text, /^messages +1,505 {2}5 publications x 301 streams = 1,505$/m);
  for (const name of ['connect', 'first byte', 'ping lateness', 'delivery'])
    assert.match(text, new RegExp(`^${name} +[\\d,]+ +[\\d.]+ +[\\d.]+ +[\\d.]+ +[\\d.]+$`, 'm'));
  assert.match(text, /^ok: no stream failed or was lost$/m);
});

test('streams that failed are listed by cause, counted as retried, and not ok', () => {
  const report = reportOf(
    factsOf({ asked: 50, summary: summaryOf(3), ramp: { elapsedMs: 3000, opened: 0, isComplete: false } }),
  );
  const { refused } = drone(3).counts.failed;
  assert.equal(report.isOk, false);
  assert.deepEqual(report.failed, { total: refused, byCause: { refused } });
  assert.equal(report.retried, refused - 50);
  assert.equal(report.openAllMs, null);
  assert.match(reportText(report), /^failed +\d+ {2}refused \d+$/m);
  assert.match(reportText(report), /^NOT OK: only 0 of 50 streams were open after 30 s \(--within\)/m);
});

test('lost streams are not ok, even if all were reopened', () => {
  const summary = summaryOf(1, 2);
  summary.counts.lost.closed = 7;
  summary.counts.opened += 7;
  const report = reportOf(factsOf({ summary }));
  assert.deepEqual([report.isOk, report.retried], [false, 7]);
  assert.deepEqual(report.problems, ['7 streams lost']);
});

test('the report of an interrupted run says so, and does not complain about --within', () => {
  const report = reportOf(
    factsOf({ isInterrupted: true, ramp: { elapsedMs: 100, opened: 9, isComplete: false } }),
  );
  assert.deepEqual([report.isOk, report.problems], [false, []]);
  assert.match(reportText(report), /^ended early: interrupted$/m);
});

test('if lateness is unknown, the report says what to do', () => {
  const summary = summaryOf(1, 2);
  summary.percentiles.latenessMs = { count: 0, p50: 0, p90: 0, p99: 0, max: 0 };
  const text = reportText(reportOf(factsOf({ summary })));
  assert.match(
    text,
    /^ping lateness is unknown: .* hold for more than two intervals, or give --interval MS$/m,
  );
});

test('unexpected bytes are shown without the control characters a terminal would interpret', () => {
  const summary = summaryOf(1);
  summary.samples = [{ cause: 'unexpected', text: 'SSH-2.0\r\n\x1b[2J\x9b2J' }];
  const text = reportText(reportOf(factsOf({ summary })));
  assert.match(text, /unexpected: "SSH-2\.0\\r\\n\\u001b\[2J 2J"/);
});

test('failed publications are a problem', () => {
  const publications = { sent: 5, failed: 2, problem: 'ECONNREFUSED' };
  assert.deepEqual(reportOf(factsOf({ publications })).problems, ['2 publications failed: ECONNREFUSED']);
});

/** @param {Record<string, number>} counts @param {Partial<import('../fleet/show/publications.js').Published>} [published] */
function withTopics(counts, published = {}) {
  const summary = summaryOf(1, 2);
  Object.assign(summary.counts, counts);
  const publications = {
    sent: 100,
    failed: 0,
    problem: '',
    topics: 10,
    batch: 1,
    clock: /** @type {const} */ ('wall'),
  };
  return reportOf(factsOf({ summary, hasTopics: true, publications: { ...publications, ...published } }));
}

test('if each publication arrived once and in order, the report says so', () => {
  const counts = { delivered: 2000, recovered: 30, churned: 50, resumed: 50, opened: 351 };
  const report = withTopics(counts, { expected: 2000 });
  assert.deepEqual([report.isOk, report.retried], [true, 0]);
  const text = reportText(report);
  assert.match(text, /^churned +50 {2}50 streams came back with a cursor$/m);
  assert.match(text, /^published +100 {2}to 10 topics; delivery is measured with the wall clocks/m);
  assert.match(text, /^delivered +2,000 {2}of 2,000$/m);
  assert.match(text, /^recovered +30 /m);
  assert.match(text, /^ok: no stream failed or was lost, and each publication arrived once and in order$/m);
});

/** What was counted, and the problem. @type {[Record<string, number>, string][]} */
const FAULTS = [
  [{ delivered: 1998, missed: 2 }, '2 publications lost'],
  [{ delivered: 2000, duplicated: 1 }, '1 publication duplicated'],
  [{ delivered: 2000, outOfOrder: 3 }, '3 publications out of order'],
  [{ delivered: 2000, strayed: 3 }, '3 publications to a stream that does not subscribe'],
  [{ delivered: 1990, gaps: 2, discarded: 10 }, 'the server reported 2 gaps (10 publications missing)'],
  [{ delivered: 1999 }, '1 publication missing at the beginning or the end of streams'],
  [
    { delivered: 1999, restarted: 4 },
    '1 publication missing at the beginning or the end of streams; 4 streams came back without a cursor',
  ],
];

for (const [counts, problem] of FAULTS) {
  test(`a run with ${problem} is not ok`, () => {
    const report = withTopics(counts, { expected: 2000 });
    assert.deepEqual([report.isOk, report.problems], [false, [problem]]);
  });
}

test('the progress of a ramp shows how far it is, and the most frequent failure', () => {
  const ramping = /** @type {const} */ ({
    phase: 'ramping',
    asked: 602,
    elapsedMs: 1,
    holdMs: 1,
    openedPerSecond: 100,
  });
  const line = progressLine({ ...ramping, summary: summaryOf(1, 2, 3) });
  assert.match(
    line,
    /^ramping \[#{12}-{12}\] 301 of 602 open, 100\/s, 0 in flight, 4 s to go, failed \d+ \(refused\)/,
  );
});

test('the progress of a hold shows the time and how late pings are', () => {
  const holding = /** @type {const} */ ({
    phase: 'holding',
    asked: 301,
    elapsedMs: 5000,
    holdMs: 10_000,
    openedPerSecond: 0,
  });
  const line = progressLine({ ...holding, summary: summaryOf(1, 2) });
  assert.match(line, /^holding \[#{12}-{12}\] 5 of 10 s, 301 open, [\d,]+ pings, lateness p99 [\d.]+ ms$/);
});
