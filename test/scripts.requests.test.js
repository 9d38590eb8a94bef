/*
 * The experiment `requests`: its servers, their answers, what wrk prints, and what the figures mean.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { noTwoCores } from '../scripts/lab/cores.js';
import { execute, findingsOf } from '../scripts/lab/execute.js';
import { findExperiment } from '../scripts/lab/experiment.js';
import { Findings } from '../scripts/lab/findings.js';
import { findCommand } from '../scripts/lab/install.js';
import { Lab } from '../scripts/lab/lab.js';
import { differences, expectedAnswer, parseAnswer, questions } from '../scripts/lab/requests/answers.js';
import { checkAnswers } from '../scripts/lab/requests/ask.js';
import { checkFigures } from '../scripts/lab/requests/measure.js';
import { isClientLimited, sentencesOf } from '../scripts/lab/requests/sentences.js';
import { startSubject } from '../scripts/lab/requests/start.js';
import { subjects } from '../scripts/lab/requests/subjects.js';
import { FIGURES, modeTable, originalTable } from '../scripts/lab/requests/table.js';
import { errorsText, parseWrk } from '../scripts/lab/requests/wrk.js';
import { temporaryFolder } from './helpers/server.js';

const QUIET = /** @type {any} */ ({ write: () => true, isTTY: false });

/** Printed by wrk 4.1.0. */
const CLEAN = `Running 2s test @ http://127.0.0.1:8898/bench/testing?id=10
  1 threads and 256 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.54ms  838.23us  10.23ms   90.61%
    Req/Sec   142.97k    24.31k  181.96k    60.00%
  Latency Distribution
     50%    1.38ms
     75%    1.51ms
     90%    2.05ms
     99%    5.36ms
  284679 requests in 2.01s, 60.54MB read
Requests/sec: 141367.18
Transfer/sec:     30.06MB
`;
/** The same, of a server that fails in every way it can; times in s end with a space. */
const FAILING = `Running 3s test @ http://127.0.0.1:8899/bench/testing?id=10
  1 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms    4.18ms  57.63ms   97.13%
    Req/Sec    14.97k     9.84k   28.71k    66.67%
  Latency Distribution
     50%  161.00us
     75%  556.00us
     90%    1.86ms
     99%    1.08s 
  14101 requests in 1.50m, 512.00KB read
  Socket errors: connect 1, read 146, write 2, timeout 100
  Non-2xx or 3xx responses: 587
Requests/sec:   4682.41
Transfer/sec:    566.05KB
`;

/** @param {import('node:test').TestContext} t */
function labOf(t) {
  const lab = new Lab({ folder: temporaryFolder(t), signal: new AbortController().signal, output: QUIET });
  t.after(() => lab.close());
  return lab;
}

/** @param {import('node:test').TestContext} t @param {import('node:http').RequestListener} listener @returns {Promise<number>} */
async function serve(t, listener) {
  const server = createServer({ keepAliveTimeout: 5000 }, listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

/** @param {Record<string, Record<string, number>>} values by run and figure */
function findingsWith(values) {
  const outcomes = Object.entries(values).map(([run, figures]) => ({ run, repeat: 1, values: figures }));
  return new Findings(FIGURES, Object.keys(values), outcomes);
}

test("wrk's figures are read in ms and bytes", () => {
  assert.deepEqual(parseWrk(CLEAN), {
    requests: 284_679,
    seconds: 2.01,
    perSecond: 141_367.18,
    bytes: 60.54 * 1024 ** 2,
    ms: { avg: 1.54, max: 10.23, p50: 1.38, p75: 1.51, p90: 2.05, p99: 5.36 },
    errors: { connect: 0, read: 0, write: 0, timeout: 0, status: 0 },
  });
  const { ms, seconds, bytes } = parseWrk(FAILING);
  assert.deepEqual([ms.p50, ms.p75, ms.p99, seconds, bytes], [0.161, 0.556, 1080, 90, 512 * 1024]);
});

test('errors that wrk reports are read, and said', () => {
  const { errors } = parseWrk(FAILING);
  assert.deepEqual(errors, { connect: 1, read: 146, write: 2, timeout: 100, status: 587 });
  assert.equal(errorsText(errors), 'connect 1, read 146, write 2, timeout 100, status 587');
  assert.equal(errorsText(parseWrk(CLEAN).errors), '');
});

test('what is not the output of a measurement is an error with its last line', () => {
  const text = 'unable to connect to 127.0.0.1:1 Connection refused\n';
  assert.throws(
    () => parseWrk(text),
    /its last line: unable to connect to 127\.0\.0\.1:1 Connection refused/,
  );
});

test('a measurement with a wrong status, or with incomplete answers, has no figures', () => {
  const subject = /** @type {any} */ ({ closes: false });
  const { bytes } = expectedAnswer(questions()[0], false);
  const figures = { ...parseWrk(CLEAN), requests: 1000, bytes: 1000 * bytes };
  checkFigures(subject, figures);
  assert.throws(() => checkFigures(subject, parseWrk(FAILING)), /587 answers were neither 2xx nor 3xx/);
  assert.throws(() => checkFigures(subject, { ...figures, bytes: 900 * bytes }), /bytes on average, not \d+/);
});

test('an answer that differs in a header, a value or the body is described', () => {
  const [question] = questions();
  const expected = expectedAnswer(question, false);
  const text = `HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nX-Powered-By: benchmark\r\nDate: Sun, 22 Nov 2026 22:13:31 GMT\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 28\r\nConnection: keep-alive\r\n\r\n{"name":"testing","id":"10"}`;
  const answer = (/** @type {string} */ from) => parseAnswer(Buffer.from(from));
  const found = (/** @type {string} */ from) => differences(/** @type {any} */ (answer(from)), expected);
  assert.deepEqual(found(text), []);
  assert.equal(answer(text.slice(0, -1)), null, 'it is incomplete');
  assert.deepEqual(found(text.replace('; charset=utf-8', '')), [
    'unexpected: content-type: application/json',
    'missing: content-type: application/json; charset=utf-8',
    `${expected.bytes - 15} bytes, not ${expected.bytes}`,
  ]);
  assert.deepEqual(found(text.replace('"10"', '"11"')), [
    'unexpected: {"name":"testing","id":"11"}',
    'missing: {"name":"testing","id":"10"}',
  ]);
  assert.match(found(text.replace('Sun, 22 Nov', 'yesterday'))[0], /^unexpected: date: yesterday/);
});

test('a server whose answers are always the same fails, whatever it answers', async (t) => {
  const body = '{"name":"testing","id":"10"}';
  const port = await serve(t, (_, response) => {
    response.setHeader('x-powered-by', 'benchmark');
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', body.length);
    response.end(body);
  });
  const failure = checkAnswers('constant', port, false);
  await assert.rejects(failure, (/** @type {Error} */ { message }) => {
    assert.match(message, /^constant answers wrongly: \/bench\/testing: unexpected/);
    assert.doesNotMatch(message, /\/bench\/testing\?id=10:/);
    assert.match(message, /\/other: HTTP\/1\.1 200 OK, not 404/);
    return true;
  });
});

test('a server that ends its connections early fails', async (t) => {
  const closing = await serve(
    t,
    (_, response) => void response.writeHead(404, { connection: 'close' }).end(),
  );
  await assert.rejects(checkAnswers('closing', closing, false), /the connection ended too early/);
});

for (const name of ['express', 'fastify', 'http', 'http-close', 'hold', 'hold-pass']) {
  const subject = subjects().find((one) => one.name === name);
  test(`${name} gives the expected answers`, { skip: subject?.skip || noTwoCores() || false }, async (t) => {
    assert.ok(subject);
    const server = await startSubject(labOf(t), subject, 'one');
    await checkAnswers(name, server.port, subject.closes, subject.isSilent);
    await server.stop();
  });
}

test('one instance per core is as many processes and a primary, and gives the same answers', async (t) => {
  const subject = subjects().find(({ name }) => name === 'fastify');
  assert.ok(subject);
  const lab = labOf(t);
  const three = { ...subject, command: (/** @type {number} */ port) => subject.command(port, 3) };
  const server = await startSubject(lab, three, 'cores');
  assert.equal(server.pids().length, 4);
  await checkAnswers('fastify', server.port, false);
  await server.stop();
});

test('the client is the limit when it has no time left and the server has', () => {
  const findings = findingsWith({
    'hyper-one': { clientPercent: 97, serverPercent: 70 },
    'axum-one': { clientPercent: 97, serverPercent: 99 },
    'http-one': { clientPercent: 40, serverPercent: 99 },
    'hyper-cores': { clientPercent: 93, serverPercent: 104 },
  });
  const limited = findings.runs.filter((run) => isClientLimited(findings, run));
  assert.deepEqual(limited, ['hyper-one', 'hyper-cores']);
  const said = sentencesOf(findings).find((sentence) => sentence.startsWith('The client was the limit'));
  assert.match(said ?? '', /hyper-one \(wrk 97\.0 % of a core\), hyper-cores/);
});

test('connections that waited to be accepted explain a high latency', () => {
  const findings = findingsWith({ 'express-one': { waiting: 149 }, 'hyper-one': { waiting: 0 } });
  const said = sentencesOf(findings).join('\n');
  assert.match(
    said,
    /^Connections that were not accepted after a fifth of the time: express-one 149\. Their first/,
  );
  assert.match(modeTable(findings, 'one'), /connections not accepted/);
  assert.doesNotMatch(
    modeTable(findingsWith({ 'hyper-one': { waiting: 0 } }), 'one'),
    /connections not accepted/,
  );
});

test('a share is marked if wrk was the limit, there or in what it is compared with', () => {
  const busy = { perSecond: 100_000, clientPercent: 97, serverPercent: 60 };
  const calm = { perSecond: 10_000, clientPercent: 30, serverPercent: 99 };
  const limited = findingsWith({ 'axum-one': busy, 'express-one': calm });
  assert.match(originalTable(limited), /\| express-one \| 10 % \* \|/);
  assert.match(
    originalTable(findingsWith({ 'axum-one': { ...busy, serverPercent: 99 }, 'express-one': calm })),
    /\| express-one \| 10 % \|/,
  );
  const cores = findingsWith({ 'axum-one': busy, 'axum-cores': calm });
  assert.match(
    sentencesOf(cores).join('\n'),
    /axum 0\.10 times \* \(\*: wrk was the limit in one of them\)\./,
  );
});

test('the latency of one connection is explained only if a Hold is slower', () => {
  const said = (/** @type {number} */ hold) =>
    sentencesOf(findingsWith({ 'hold-one': { aloneUs: hold }, 'http-one': { aloneUs: 200 } })).join('\n');
  assert.match(
    said(3000),
    /takes 3,000 µs with a policy that answers and 200 µs with node:http: a Hold collects/,
  );
  assert.match(said(150), /takes 150 µs with a policy that answers and 200 µs with node:http\.$/);
});

test('sentences compare CPU per request, and errors are never left out', () => {
  const findings = findingsWith({
    'express-one': { cpuUs: 60, errors: 0, perSecond: 10_000 },
    'http-one': { cpuUs: 20, errors: 3, perSecond: 50_000 },
    'http-close-one': { cpuUs: 50 },
    'hold-one': { cpuUs: 25 },
    'axum-one': { perSecond: 100_000 },
    'express-cores': { perSecond: 15_000 },
  });
  const text = sentencesOf(findings).join('\n');
  assert.match(
    text,
    /node:http with a router needs 20\.0 µs of CPU for a request; express 60\.0 µs \(3\.0 times\)\./,
  );
  assert.match(text, /costs node:http 30\.0 µs more than keep-alive/);
  assert.match(text, /a policy that answers needs 25\.0 µs .*, 1\.25 times as much as node:http/);
  assert.match(text, /express 1\.50 times/);
  assert.match(text, /Errors that wrk reported \(connections and timeouts\): http-one 3\./);
  assert.match(modeTable(findings, 'one'), /errors that wrk reported/);
  assert.match(originalTable(findings), /\| express-one \| 10 % \| 14 % \| 28,924\/s \|/);
});

test('the experiment measures two servers, and leaves a report with charts', {
  skip: findCommand('wrk') ? noTwoCores() || false : 'wrk is not installed (Debian: wrk)',
}, async (t) => {
  const lab = labOf(t);
  const whole = await findExperiment('requests');
  const runs = (/** @type {import('../scripts/lab/plan.js').Plan} */ plan) =>
    whole.runs(plan).filter(({ name }) => ['http-one', 'http-close-one'].includes(name));
  const plan = { streams: 8, holdS: 1, idleS: 1, repeats: 1, ramp: 1, isLong: false };
  const experiment = { ...whole, runs };
  const report = await execute(experiment, plan, lab, 'a test');
  assert.equal(report.problem, '');
  assert.deepEqual(
    report.outcomes.map(({ run }) => run),
    ['http-one', 'http-close-one'],
    report.notes.join('; '),
  );
  for (const { values } of report.outcomes) {
    for (const name of ['perSecond', 'cpuUs', 'p99Ms', 'memoryBytes', 'clientPercent', 'aloneUs'])
      assert.ok(Number(values[name]) > 0, `${name} is ${values[name]}`);
    assert.equal(values.errors, 0);
  }
  assert.ok(Number(report.outcomes[0].values.waiting) <= 8);
  assert.equal(report.outcomes[1].values.waiting, null);
  assert.deepEqual(report.charts, ['requests.svg', 'cpu.svg', 'p99.svg']);
  for (const name of report.charts)
    assert.match(readFileSync(join(lab.folder, name), 'utf8'), /<svg.*>http-close</s);
  assert.ok(existsSync(join(lab.folder, 'report.md')));
  const page = experiment.page?.(report, findingsOf(experiment, report)) ?? '';
  assert.match(page, /\| http-close \| [\d,]+\/s/);
  assert.match(page, /A connection for each request costs node:http/);
});
