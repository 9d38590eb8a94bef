import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import memcached from '../scripts/experiments/memcached.js';
import { coreCount, coresIn, noTwoCores } from '../scripts/lab/cores.js';
import { Findings } from '../scripts/lab/findings.js';
import { Lab } from '../scripts/lab/lab.js';
import { CELLS, keyCell, nameOf } from '../scripts/lab/memcached/cells.js';
import { chartsOf } from '../scripts/lab/memcached/charts.js';
import { measureRound, prepareGenerator } from '../scripts/lab/memcached/measure.js';
import { pageText } from '../scripts/lab/memcached/page.js';
import { stepsIn } from '../scripts/lab/memcached/profile.js';
import { NAMES, subjects } from '../scripts/lab/memcached/subjects.js';
import { sentencesOf, targetTable } from '../scripts/lab/memcached/targets.js';
import { planOf, secondsOf } from '../scripts/lab/plan.js';
import { isListening } from '../scripts/lab/sockets.js';
import { noMemcached } from './helpers/memcached.js';
import { temporaryFolder } from './helpers/server.js';

const PLAN = planOf({ ...memcached, name: 'memcached' }, { streams: 0, hold: 0, repeats: 0, isLong: false });
const GET = keyCell('get');

/** @param {Record<string, Partial<Record<import('../scripts/lab/memcached/cells.js').Part, number>>>} values of get with 50 connections, by run */
function findingsOf(values) {
  const outcomes = Object.entries(values).map(([run, parts]) => ({
    run,
    repeat: 1,
    values: Object.fromEntries(
      Object.entries(parts).map(([part, value]) => [
        nameOf(GET, /** @type {import('../scripts/lab/memcached/cells.js').Part} */ (part)),
        value,
      ]),
    ),
  }));
  return new Findings(
    memcached.figures,
    subjects().map(({ name }) => name),
    outcomes,
  );
}

const { nodecached, memcached: one, nothing, nodecachedCores, memcachedFree } = NAMES;
const FOUND = {
  [nothing]: { rate: 80_000, us: 10, kernelUs: 6 },
  'step-1': { rate: 40_000 },
  [nodecached]: { rate: 60_000, us: 12, kernelUs: 7 },
  [one]: { rate: 100_000, us: 9, kernelUs: 8 },
  [nodecachedCores]: { rate: 90_000 },
  [memcachedFree]: { rate: 100_000 },
};

test('each target says whether it was reached', () => {
  const text = targetTable(findingsOf(FOUND));
  assert.match(
    text,
    /^\| nodecached \/ memcached -t 1, one core each .+ \| 60 % \| at least 60 %: reached \|$/m,
  );
  assert.match(text, /^\| nodecached on all cores .+ \| 90 % \| more than 100 %: \*\*missed\*\* \|$/m);
  assert.match(
    sentencesOf(findingsOf(FOUND))[0],
    /^Targets missed or not clear: nodecached on all cores .+: 90 %, target more than 100 %\.$/,
  );
});

test('a target is not reached if the client kept memcached from answering more', () => {
  const limited = { ...FOUND, [one]: { ...FOUND[one], client: 97, server: 60 } };
  assert.match(
    targetTable(findingsOf(limited)),
    /one core each .+ \| at most 60 % \| at least 60 %: not clear, the client was the limit \|$/m,
  );
  const own = { ...FOUND, [nodecached]: { ...FOUND[nodecached], client: 97, server: 60 } };
  assert.match(
    targetTable(findingsOf(own)),
    /one core each .+ \| at least 60 % \| at least 60 %: reached \|$/m,
  );
});

test('nothing is reached if nothing was measured', () => {
  const sentences = sentencesOf(findingsOf({ [nodecached]: FOUND[nodecached] }));
  assert.match(sentences[0], /^No target could be checked: nodecached or memcached was not measured\.$/);
  assert.doesNotMatch(sentences.join(), /never the limit/);
});

test('the sentences say where the time goes, computed from the figures', () => {
  const text = sentencesOf(findingsOf(FOUND)).join('\n');
  assert.match(
    text,
    /does nothing but read and answer reaches 80 % of memcached -t 1, and nodecached 60 %, which is 75 % of that bound/,
  );
  assert.match(
    text,
    /A get takes nodecached 12\.0 µs of CPU: 7\.0 µs in the kernel, 4\.0 µs in Node .+, and 1\.0 µs are the protocol and the store\. memcached needs 9\.0 µs, of which 8\.0 µs in the kernel/,
  );
  assert.match(text, /from 40,000\/s to 60,000\/s \(\+ 50 %\)/);
});

test('the report says where the client was the limit', () => {
  const busy = { client: 95, server: 70 };
  const limited = sentencesOf(findingsOf({ ...FOUND, [one]: { ...FOUND[one], ...busy } })).at(-1);
  assert.equal(
    limited,
    'The client was the limit, so the server could do more: memcached (get, 50 connections).',
  );
  const both = sentencesOf(findingsOf({ ...FOUND, [one]: { ...FOUND[one], client: 95, server: 99 } })).at(-1);
  assert.match(both ?? '', /^The client was never the limit/);
});

test('the report says if neither side used its core', () => {
  const calm = { ...FOUND[one], client: 60, server: 99 };
  const text = (/** @type {object} */ found) => sentencesOf(findingsOf({ ...FOUND, ...found })).join('\n');
  assert.doesNotMatch(text({ [one]: calm }), /Something else was the limit/);
  const disturbed = text({ [one]: calm, [nodecached]: { ...FOUND[nodecached], client: 30, server: 50 } });
  assert.match(
    disturbed,
    /In 1 of 2 comparisons with 50 connections neither .+ Something else was the limit/,
  );
});

test('the page has every table and both charts', async () => {
  const findings = findingsOf(FOUND);
  const charts = await chartsOf(findings);
  assert.deepEqual(Object.keys(charts), ['requests.svg', 'cpu.svg']);
  for (const svg of Object.values(charts)) assert.match(svg, /^<svg .*nodecached/s);
  const page = pageText(
    /** @type {any} */ ({
      plan: PLAN,
      facts: { machine: 'a machine' },
      command: 'node x',
      notes: ['a note'],
      sentences: sentencesOf(findings),
      charts: ['memcached/requests.svg'],
    }),
    findings,
  );
  assert.match(page, /^!\[requests\]\(memcached\/requests\.svg\)$/m);
  assert.match(page, /^\| nodecached \| .+ \| 60,000\/s \(\+ 50 %\) \| {2}\|$/m);
  assert.match(page, /^\| get \| 1 \| memcached \| {2}\| {2}\| 100,000 \| {2}\|$/m);
  assert.match(page, /^- a note\.$/m);
  assert.doesNotMatch(page, /undefined|NaN/);
});

test('the profile is what the steps cost per request, without the rows of the warm-up', () => {
  const csv = [
    'time,key,samples,calls,p50_ns',
    '2026-11-22T22:00:01.000Z,request,1,10,9000',
    '2026-11-22T22:00:02.000Z,chunk,1,5,8000',
    '2026-11-22T22:00:02.000Z,request,1,10,2000',
    '2026-11-22T22:00:03.000Z,request,1,10,1000',
    '2026-11-22T22:00:03.000Z,other,1,10,1000',
  ].join('\n');
  const steps = stepsIn(csv, Date.parse('2026-11-22T22:00:01.500Z'));
  assert.deepEqual(steps, { chunk: 2, request: 1.5 });
  assert.deepEqual(stepsIn('time,key,calls,p50_ns\n', 0), {});
});

test('the report says what all cores have room for beside the client', () => {
  const shared = { [nodecachedCores]: { rate: 90_000, us: 6, clientUs: 4 } };
  const text = sentencesOf(findingsOf({ ...FOUND, ...shared })).join('\n');
  assert.ok(
    text.includes(
      `${coreCount()} cores have room for ${(coreCount() * 100_000).toLocaleString('en-US')}/s at most`,
    ),
    text,
  );
});

test('it takes at most eight minutes unless asked for more', () => {
  assert.ok(secondsOf({ ...memcached, name: 'memcached' }, PLAN) <= 480);
});

test('a list of cores is read as the kernel writes it', () => {
  assert.deepEqual(coresIn('0'), [0]);
  assert.deepEqual(coresIn('0-2,5,8-9'), [0, 1, 2, 5, 8, 9]);
});

test('a process listens only on a port that it has opened itself', async (t) => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  t.after(() => server.close());
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  assert.equal(isListening([process.pid], port), true);
  assert.equal(isListening([process.ppid], port), false);
  assert.equal(isListening([], port), false);
});

const missing = noMemcached || noTwoCores() || false;

test('a round measures every cell of memcached and nodecached, and their memory', {
  skip: missing,
}, async (t) => {
  const lab = new Lab({
    folder: temporaryFolder(t),
    signal: new AbortController().signal,
    output: /** @type {any} */ ({ write: () => {}, isTTY: false }),
  });
  t.after(() => lab.close());
  assert.equal(await prepareGenerator(lab), '');
  /** @type {Record<string, Record<string, number | null>>} */
  const found = { [one]: {}, [nodecached]: {} };
  const plan = { ...PLAN, holdS: 0.1, repeats: 1 };
  const runs = Object.keys(found).map((name) => ({ name }));
  await measureRound({
    lab,
    plan,
    runs,
    name: '1',
    record: (run, values) => Object.assign(found[run], values),
  });
  assert.deepEqual(lab.notes, []);
  for (const [run, values] of Object.entries(found)) {
    for (const cell of CELLS) {
      const [rate, us, p99] = /** @type {const} */ (['rate', 'us', 'p99']).map(
        (part) => values[nameOf(cell, part)],
      );
      assert.ok(
        rate && rate > 0 && us && us > 0 && p99 && p99 > 0,
        `${run}: ${JSON.stringify({ cell, rate, us, p99 })}`,
      );
    }
    const { itemBytes, statsBytes } = values;
    assert.ok(
      itemBytes && itemBytes > 112 && statsBytes && statsBytes > 112,
      `${run}: ${itemBytes}, ${statsBytes}`,
    );
  }
});
