import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { reportOf, reportText } from '../fleet/requests/ab.js';

/** Two runs against a server that closed one in a hundred connections and answered as many requests with 503. */
const SAVED = JSON.parse(readFileSync(new URL('fixtures/requests.json', import.meta.url), 'utf8'));

/** @param {'count' | 'rate'} name @param {object} [measured] @param {object} [asked] what differs from the saved run */
const saved = (name, measured = {}, asked = {}) =>
  reportOf({ ...SAVED[name].asked, ...asked }, { ...SAVED[name].measured, ...measured }, SAVED.machine);

const NONE = { ...SAVED.count.measured.failed, closed: 0 };
const NOTHING = {
  complete: 0,
  statuses: {},
  documentBytes: null,
  latencyMs: { ...SAVED.count.measured.latencyMs, count: 0 },
};

test('the report has the lines of ab, in the same order', () => {
  assert.equal(
    reportText(saved('count')),
    `Server Software:        example
Server Hostname:        127.0.0.1
Server Port:            45899

Document Path:          /news?page=1
Document Length:        101 bytes (the first; others differ)

Concurrency Level:      10
Time taken for tests:   0.340 seconds
Complete requests:      1980
Failed requests:        20
   (closed: 20)
Non-2xx responses:      20
   (503: 20)
Total transferred:      478520 bytes
HTML transferred:       199000 bytes
Requests per second:    5825.43 [#/sec] (mean)
Time per request:       1.717 [ms] (mean)
Time per request:       0.172 [ms] (mean, across all concurrent requests)
Transfer rate:          1374.87 [Kbytes/sec] received

Percentage of the requests served within a certain time (ms)
  50%       0.630
  66%       1.050
  75%       1.559
  80%       2.147
  90%       4.475
  95%       6.451
  98%      10.007
  99%      12.991
 100%      22.198 (longest request)

Latency counts from when a request was sent; each connection sends its next request after the answer to the last.
Machine: ${SAVED.machine}
`,
  );
});

test('with a rate, latency counts from when a request was due, and the report gives it from sending too', () => {
  const text = reportText(saved('rate'));
  assert.match(text, /^Requested rate: {9}250 \[#\/sec\]$/m);
  assert.match(text, /^Time per request: {7}0\.924 \[ms\] \(mean, from when it was due\)$/m);
  assert.match(text, /^ {2}99% {7}2\.483$/m);
  assert.match(
    text,
    /from when a request was due .*corrected for coordinated omission.* 50% 0\.106 ms, 99% 1\.550 ms/,
  );
  assert.equal(saved('rate').latencyFrom, 'due');
  assert.equal(saved('count').latencyFrom, 'sent');
});

test('a request without an answer and a status other than 2xx and 3xx fail the run, a redirect does not', () => {
  assert.equal(saved('count').isOk, false);
  assert.equal(saved('count', { failed: NONE }).isOk, false);
  assert.equal(saved('count', { statuses: { 200: 1980 } }).isOk, false);
  assert.equal(saved('count', { failed: NONE, statuses: { 200: 1900, 302: 80 } }).isOk, true);
  assert.equal(saved('count', { failed: NONE, statuses: { 101: 1980 } }).isOk, false);
  assert.equal(saved('count', { failed: NONE, ...NOTHING }).isOk, false);
});

test('failures and statuses are listed only if there are some', () => {
  const text = reportText(
    saved('count', { failed: { ...NONE, timeout: 3, reset: 4 }, statuses: { 200: 1980 } }),
  );
  assert.match(text, /^Failed requests: {8}7\n {3}\(timeout: 3, reset: 4\)\nTotal/m);
  assert.doesNotMatch(text, /Non-2xx/);
});

test('a redirect is listed among the non-2xx responses, as in ab', () => {
  const text = reportText(saved('count', { statuses: { 200: 1900, 302: 79, 404: 1 } }));
  assert.match(text, /^Non-2xx responses: {6}80\n {3}\(302: 79, 404: 1\)$/m);
});

test('without answers no figure is made up', () => {
  const report = saved('count', { ...NOTHING, end: 'unanswered', failed: { ...NONE, refused: 10 } });
  const text = reportText(report);
  assert.equal(report.result.requestsPerSecond, 0);
  assert.match(text, /^Document Length: {8}unknown$/m);
  assert.match(text, /none of the first 10 requests was answered/);
  assert.doesNotMatch(text, /Percentage|NaN|Infinity/);
});

test('answers that never end are recognised as streams', () => {
  const failed = { ...NONE, timeout: 10 };
  const late = saved('count', { ...NOTHING, end: 'unanswered', failed, endless: 10 });
  assert.match(
    late.notes.join('\n'),
    /10 answers began but did not end within 10 s\. .*`node fleet\/cli\.js run`/,
  );
  const cut = saved('count', { ...NOTHING, end: 'duration', failed: NONE, inFlight: 10 });
  assert.match(cut.notes.join('\n'), /No answer was completed\. .*`node fleet\/cli\.js run`/);
  assert.doesNotMatch(saved('count').notes.join('\n'), /cli\.js run/);
});

test('the report says if the rate was not reached, and what the percentiles leave out', () => {
  const notes = saved('rate', { unsent: 1234, inFlight: 10 }).notes.join('\n');
  assert.match(notes, /The rate was not reached: 1,234 requests were due .*the percentiles leave them out/);
  assert.match(notes, /10 requests were in flight at the end/);
});

test('the report has the port and path of a URL without them', () => {
  const plain = reportText(saved('count', {}, { url: 'http://127.0.0.1/' }));
  assert.match(plain, /^Server Port: {12}80$/m);
  assert.match(plain, /^Document Path: {10}\/$/m);
  assert.match(reportText(saved('count', {}, { url: 'https://localhost/' })), /^Server Port: {12}443$/m);
});

test('the report survives JSON', () => {
  for (const name of /** @type {const} */ (['count', 'rate'])) {
    const report = saved(name);
    assert.deepEqual(JSON.parse(JSON.stringify(report)), report);
  }
});

test('what a server says about itself reaches the terminal without control characters', () => {
  const text = reportText(saved('count', { server: 'evil\x9b2J\x1b[31m', lastError: 'a\x07b' }));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for control characters
  assert.doesNotMatch(text, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
});
