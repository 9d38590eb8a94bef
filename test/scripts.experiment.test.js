import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isAlive } from '../fleet/on/registry.js';
import { Clean } from '../scripts/lab/clean.js';
import { comparisonText } from '../scripts/lab/comparison.js';
import { docsText, newest, sectionsOf } from '../scripts/lab/docs.js';
import { experimentNames, findExperiment } from '../scripts/lab/experiment.js';
import { Findings } from '../scripts/lab/findings.js';
import { insertBetween } from '../scripts/lab/insert.js';
import { growth, last, max, median, minus, per, phasesOf, rowsOf, times } from '../scripts/lab/phases.js';
import { planOf, secondsOf } from '../scripts/lab/plan.js';
import { reportText } from '../scripts/lab/report.js';
import { compared, comparedToFirst } from '../scripts/lab/text.js';
import { readCsv, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const SCRIPT = 'scripts/experiment.js';
const LONG_MS = 60_000;

/** @typedef {import('../scripts/lab/report.js').Report} Report */

/** @type {import('../scripts/lab/experiment.js').Figure[]} */
const FIGURES = [
  { name: 'bytes', text: 'memory per stream', unit: 'bytes' },
  { name: 'openUs', text: 'CPU to open a stream', unit: 'µs' },
];

/** @param {Record<string, number[]>} bytes by run, one for each repeat */
function findingsOf(bytes) {
  const outcomes = Object.entries(bytes).flatMap(([name, values]) =>
    values.map((value, i) => ({ run: name, repeat: i + 1, values: { bytes: value, openUs: null } })),
  );
  return new Findings(FIGURES, Object.keys(bytes), outcomes);
}

/** @param {Partial<Report>} parts @returns {Report} */
function reportWith(parts) {
  return {
    name: 'twice',
    question: 'Is memory reused?',
    command: 'node scripts/experiment.js twice',
    startedAt: '2026-11-21T10:00:00.000Z',
    facts: {
      machine: '2 x CPU, Linux, Node v20, commit abc',
      cpu: 'CPU',
      cores: 2,
      memoryBytes: 8e9,
      kernel: 'Linux 6',
      node: 'v20',
      v8: '11',
      commit: 'abc',
      nofile: 1024,
      core: 'built',
    },
    plan: { streams: 15_000, holdS: 60, repeats: 2, ramp: 3000, isLong: false, idleS: 10 },
    how: [],
    steps: [{ name: 'up', text: 'open streams' }],
    runs: ['http', 'hold'].map((name) => ({
      name,
      text: '',
      args: ['--transport', name],
      nodeFlags: [],
      sysctls: {},
    })),
    order: ['http-1', 'hold-1', 'http-2', 'hold-2'],
    figures: FIGURES,
    outcomes: findingsOf({ http: [9000, 9400], hold: [90, 110] }).outcomes,
    sentences: ['Hold needs less.'],
    notes: [],
    charts: ['http-1.memory.svg'],
    end: 'whole',
    problem: '',
    ...parts,
  };
}

/** @param {string} folder @returns {string} the only folder in it */
function onlyFolder(folder) {
  const names = readdirSync(folder);
  assert.equal(names.length, 1);
  return join(folder, names[0]);
}

/** @param {number} leader @returns {number[]} it and all its descendants, in whatever process group */
function familyOf(leader) {
  const family = [leader];
  for (const pid of family) {
    const path = `/proc/${pid}/task/${pid}/children`;
    if (existsSync(path)) family.push(...readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number));
  }
  return family;
}

test('list shows every experiment with its question and how long it takes', async (t) => {
  const { exit, output } = run(t, process.execPath, [SCRIPT, 'list']);
  assert.equal((await exit).code, 0, output.stderr);
  const lines = output.stdout.trim().split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(' ')[0]),
    experimentNames(),
  );
  for (const line of lines) assert.match(line, /^\S+ +about \d+ (s|minutes) +\S.*\?$/);
  for (const name of ['plain', 'twice', 'nagle', 'technologies', 'ipc', 'ceiling'])
    assert.ok(experimentNames().includes(name));
});

test("an experiment leaves the CSV, the clients' figures, and a report", async (t) => {
  const out = temporaryFolder(t);
  const args = [SCRIPT, 'plain', '--streams', '300', '--hold', '2', '--repeats', '1', '--out', out];
  const { exit, output } = run(t, process.execPath, args);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  assert.match(output.stderr, /300 streams, held for 2 s; plain: about \d+ s/);
  const folder = onlyFolder(out);
  const streams = readCsv(folder).map((row) => Number(row.streams));
  assert.equal(Math.max(...streams), 300);
  const { machine, phases } = JSON.parse(readFileSync(join(folder, 'plain-1.json'), 'utf8'));
  assert.match(machine, /Node v\d+/);
  assert.deepEqual(Object.keys(phases), ['idle', 'up', 'held']);
  const fleet = JSON.parse(readFileSync(join(folder, 'plain-1-fleet.json'), 'utf8'));
  assert.equal(fleet.counts.opened, 300);
  const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
  const [{ values }] = report.outcomes;
  for (const name of ['heapBytes', 'rssBytes', 'openUs', 'cpuPercent', 'tickP90Ms', 'tickMaxMs'])
    assert.ok(Number.isFinite(values[name]), `${name} is ${values[name]}`);
  const text = readFileSync(join(folder, 'report.md'), 'utf8');
  assert.match(text, /\| resident memory of the workers \| \d+(\.\d)? MB \|/);
  for (const head of ['Method', 'Results', 'Reliability', 'The machine'])
    assert.ok(text.includes(`## ${head}\n`));
});

test('Ctrl-C in the middle leaves no process and keeps what was measured', {
  skip: !existsSync('/proc/self/task'),
}, async (t) => {
  const out = temporaryFolder(t);
  const args = [SCRIPT, 'plain', '--streams', '200', '--hold', '3600', '--out', out];
  const { exit, output, pid } = run(t, process.execPath, args);
  await until(
    () => /held: 200 of 200 streams/.test(output.stderr),
    () => `streams are held: ${output.stderr}`,
    LONG_MS,
  );
  const family = familyOf(pid);
  assert.ok(family.length >= 5, 'the experiment, the server, its workers, the drones');
  process.kill(-pid, 'SIGINT');
  assert.deepEqual(await exit, { code: 130, signal: null }, output.stderr);
  await until(() => !family.some(isAlive), 'no process is left');
  const folder = onlyFolder(out);
  assert.ok(readCsv(folder).some(({ streams }) => streams === '200'));
  assert.match(readFileSync(join(folder, 'report.md'), 'utf8'), /Ended early: no trial had finished/);
});

test('Ctrl-C while the server starts leaves no process', {
  skip: !existsSync('/proc/self/task'),
}, async (t) => {
  const { exit, output, pid } = run(t, process.execPath, [
    SCRIPT,
    'plain',
    '--streams',
    '10',
    '--out',
    temporaryFolder(t),
  ]);
  const family = await until(() => familyOf(pid).length > 1 && familyOf(pid), 'the server begins', LONG_MS);
  process.kill(pid, 'SIGINT');
  assert.equal((await exit).code, 130, output.stderr);
  await until(() => !family.some(isAlive), 'no process is left');
});

test('nothing can be started after the end of an experiment', async () => {
  const clean = new Clean();
  await clean.run();
  assert.throws(() => clean.spawn(process.execPath, ['--version']), /the experiment is over/);
});

test('an unknown name gets one line, with the name that was probably meant', async (t) => {
  const { exit, output } = run(t, process.execPath, [SCRIPT, 'twize', '--out', temporaryFolder(t)]);
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^experiment: there is no experiment 'twize': did you mean twice\? [^\n]+\n$/);
});

test('an option out of range gets one line', async (t) => {
  const { exit, output } = run(t, process.execPath, [SCRIPT, 'plain', '--streams', '0']);
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^experiment: --streams got '0': expected a whole number from 1 [^\n]+\n$/);
});

test('a server that cannot start gets one line, and the report says so', async (t) => {
  const out = temporaryFolder(t);
  const args = [SCRIPT, 'plain', '--streams', '9000000', '--hold', '1', '--repeats', '1', '--out', out];
  const { exit, output } = run(t, 'bash', [
    '-c',
    'ulimit -n 200 && exec "$0" "$@"',
    process.execPath,
    ...args,
  ]);
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /\nexperiment: plain failed: the server ended \(1\): [^\n]+\n$/);
  assert.match(readFileSync(join(onlyFolder(out), 'report.md'), 'utf8'), /\*\*Failed: the server ended/);
});

test('the runs and steps of every experiment have different names, and every experiment says how long it takes', async () => {
  for (const name of experimentNames()) {
    const experiment = await findExperiment(name);
    const plan = planOf(experiment, { streams: 1000, hold: 0, repeats: 0, isLong: false });
    const steps = (experiment.steps?.(plan) ?? []).map((step) => step.name);
    const runs = experiment.runs(plan).map((one) => one.name);
    assert.equal(new Set(steps).size, steps.length, name);
    assert.equal(new Set(runs).size, runs.length, name);
    for (const one of runs) assert.match(one, /^[\w-]+$/);
    assert.ok(secondsOf(experiment, plan) > 0, name);
    const long = planOf(experiment, { streams: 1000, hold: 0, repeats: 0, isLong: true });
    assert.equal(long.holdS, 5 * plan.holdS);
  }
});

test('a phase has the rows after its start up to the first one after its end', () => {
  const rows = rowsOf(
    'time,elapsedMs,streams,tickMaxMs\r\n,1000,0,\r\n1970-01-01T00:00:09.500Z,2000,50,12.5\r\n,3000,100,30\r\n,4000,100,11\r\n',
  );
  const span = /** @type {any} */ ({ tookMs: 900 });
  const phases = phasesOf(rows, {
    idle: { ...span, beginMs: 0, endMs: 1000 },
    up: { ...span, beginMs: 1000, endMs: 3000 },
  });
  assert.deepEqual(
    phases.up.rows.map(({ elapsedMs }) => elapsedMs),
    [2000, 3000],
  );
  assert.equal(phases.up.rows[0].time, 9500);
  assert.equal(max('up', 'tickMaxMs')(phases), 30);
  assert.equal(median('up', 'streams')(phases), 75);
  assert.equal(last('up', 'streams')(phases), 100);
  assert.equal(growth('idle', 'up', 'streams')(phases), 100);
  assert.equal(per(times(growth('idle', 'up', 'elapsedMs'), 1000), last('up', 'streams'))(phases), 20_000);
});

test('a figure without data is not known', () => {
  const rows = rowsOf('elapsedMs,streams\r\n1000,\r\n');
  const phases = phasesOf(rows, { idle: /** @type {any} */ ({ beginMs: 0, endMs: 1000 }) });
  assert.equal(max('idle', 'streams')(phases), null);
  assert.equal(max('idle', 'unheardOf')(phases), null);
  assert.equal(max('held', 'elapsedMs')(phases), null);
  assert.equal(minus(last('idle', 'elapsedMs'), last('idle', 'streams'))(phases), null);
  assert.equal(
    per(last('idle', 'elapsedMs'), minus(last('idle', 'elapsedMs'), last('idle', 'elapsedMs')))(phases),
    null,
  );
});

test('if the repeats of two runs overlap, their difference is within the spread', () => {
  const [apart] = compared(findingsOf({ http: [9000, 9400], hold: [3000, 3200] }), 'bytes', 'http', 'hold');
  assert.equal(
    apart,
    'Memory per stream: http 9.2 KB, hold 3.1 KB; 3.0 times as much in http, which is more than the spread of the trials.',
  );
  const [alike] = compared(findingsOf({ http: [9000, 9400], hold: [9300, 9900] }), 'bytes', 'http', 'hold');
  assert.match(alike, /within the spread of the trials/);
  const [single] = compared(findingsOf({ http: [9000], hold: [9900] }), 'bytes', 'http', 'hold');
  assert.match(single, /10\.0 % more in hold \(one trial of each\)/);
  assert.deepEqual(compared(findingsOf({ http: [9000], hold: [9900] }), 'openUs', 'http', 'hold'), []);
});

test('with many runs there is one sentence per figure', () => {
  const findings = findingsOf({ plain: [9000], small: [4000], large: [20_000] });
  assert.deepEqual(comparedToFirst(findings, ['bytes', 'openUs']), [
    'Memory per stream: plain 9.0 KB; small 4.0 KB (55.6 % less), large 20.0 KB (2.2 times as much).',
  ]);
});

test('a report has medians with the smallest and the largest value, and omits figures without values', () => {
  const text = reportText(reportWith({}));
  assert.match(
    text,
    /\| figure \| http \| hold \|\n\|---\|---\|---\|\n\| memory per stream \| 9\.2 KB \(9\.0 KB to 9\.4 KB\) \| 100 B \(90 B to 110 B\) \|\n\n/,
  );
  assert.doesNotMatch(text, /CPU to open a stream/);
  assert.match(text, /Order of the trials: http-1, hold-1, http-2, hold-2\./);
  assert.match(text, /!\[http-1\.memory\]\(http-1\.memory\.svg\)/);
});

test('the command of a run can be copied from its report', () => {
  const run = { name: 'hub', text: 'a hub', args: ['--jwt-secret', 'a secret'], nodeFlags: [], sysctls: {} };
  assert.match(reportText(reportWith({ runs: [run] })), /^- \*\*hub\*\*: a hub; `--jwt-secret 'a secret'`$/m);
});

test('a report says how many trials were planned, and whether all of them finished', () => {
  const reliability = (/** @type {object} */ changes) =>
    reportText(reportWith(changes)).split('## Reliability')[1];
  const { runs, outcomes } = reportWith({});
  assert.match(reliability({}), /^\n\n2 trials of each run were planned, in turn\. Figures are medians/);
  const some = outcomes.filter(({ run, repeat }) => run === runs[0].name || repeat === 1);
  assert.match(reliability({ outcomes: some }), /were planned, in turn; some finished only 1\. One trial/);
});

test('an experiment that cannot run here says so, in its report and in the docs', () => {
  const report = reportWith({
    runs: [],
    order: [],
    outcomes: [],
    sentences: [],
    notes: ['http is skipped: it is not built'],
  });
  assert.match(
    reportText(report),
    /\nHttp is skipped: it is not built\.\n\n## Results\n\nNone: no part of it can run here/,
  );
  assert.match(
    docsText([report]),
    /## twice\n\nIs memory reused\?\n\nIt could not run here\.\n\n[^\n]+ Http is skipped: it is not built\.\n/,
  );
});

test('docs contain the newest report of each experiment', () => {
  const older = reportWith({ startedAt: '2026-11-20T10:00:00.000Z', sentences: ['Old.'] });
  const newer = reportWith({ startedAt: '2026-11-22T10:00:00.000Z', sentences: ['New.'] });
  const other = reportWith({ name: 'nagle', sentences: ['Other.'] });
  const text = docsText(newest([newer, older, other]));
  assert.ok(text.indexOf('## nagle') > 0 && text.indexOf('## nagle') < text.indexOf('## twice'));
  assert.match(text, /New\./);
  assert.doesNotMatch(text, /Old\./);
});

test('docs without any report gets one line', async (t) => {
  const { exit, output } = run(t, process.execPath, [
    SCRIPT,
    'docs',
    '--out',
    temporaryFolder(t),
    '--to',
    join(temporaryFolder(t), 'x.md'),
  ]);
  assert.equal((await exit).code, 1);
  assert.match(output.stderr, /^experiment: there is no complete report in [^\n]+\n$/);
});

test('docs keeps the reports, so that one experiment can be repeated without the others', async (t) => {
  const [out, docs] = [temporaryFolder(t), temporaryFolder(t)];
  const file = join(docs, 'experiments.md');
  const write = async (/** @type {Report} */ report) => {
    mkdirSync(join(out, report.name));
    writeFileSync(join(out, report.name, 'report.json'), JSON.stringify(report));
    const { exit, output } = run(t, process.execPath, [SCRIPT, 'docs', '--out', out, '--to', file]);
    assert.equal((await exit).code, 0, output.stderr);
    rmSync(join(out, report.name), { recursive: true });
  };
  await write(reportWith({ name: 'old-one' }));
  await write(reportWith({ name: 'new-one' }));
  assert.match(readFileSync(file, 'utf8'), /## new-one\n[\s\S]*## old-one\n/);
});

test('a section of docs whose report is gone stays as it is', () => {
  const old = docsText([reportWith({ name: 'nagle' }), reportWith({ name: 'twice' })]);
  const text = docsText([reportWith({ name: 'twice', sentences: ['New.'] })], sectionsOf(old));
  assert.deepEqual([...sectionsOf(text).keys()], ['nagle', 'twice']);
  assert.equal(sectionsOf(text).get('nagle'), sectionsOf(old).get('nagle'));
  assert.match(sectionsOf(text).get('twice') ?? '', /New\./);
});

const PEERS = reportWith({
  name: 'technologies',
  figures: [...FIGURES, { name: 'pingUs', text: 'CPU per ping', unit: 'µs' }],
  runs: ['node-http', 'hold', 'go'].map((name) => ({ name, text: '', args: [], nodeFlags: [], sysctls: {} })),
  outcomes: [
    { run: 'hold', repeat: 1, values: { bytes: 50, openUs: 20, pingUs: 5 } },
    { run: 'node-http', repeat: 1, values: { bytes: 8000, openUs: 90, pingUs: 15 } },
    { run: 'go', repeat: 1, values: { bytes: 25_000, openUs: null, pingUs: -1 } },
  ],
});

test('the comparison has our row first, and factors for the others', () => {
  const text = comparisonText(PEERS);
  const rows = text
    .split('\n')
    .slice(2, 5)
    .map((row) => row.replace(/ +/g, ' '));
  assert.deepEqual(rows, [
    '| **Holdfast** | 50 B | 20.0 µs | 5.0 µs |',
    '| node:http | 8.0 KB (160 x) | 90.0 µs (4.5 x) | 15.0 µs (3.0 x) |',
    '| Go net/http | 25.0 KB (500 x) | - | too little to measure |',
  ]);
  assert.match(text, /15,000 streams[\s\S]*2026-11-21[\s\S]*commit abc/);
});

test('the comparison goes between its markers, and nowhere if there are none', () => {
  const page = 'a\n<!-- comparison:start -->\nold\n<!-- comparison:end -->\nb\n';
  const changed = 'a\n<!-- comparison:start -->\nnew\n<!-- comparison:end -->\nb\n';
  assert.equal(insertBetween(page, 'comparison', 'new'), changed);
  assert.equal(insertBetween(changed, 'comparison', 'new'), changed);
  assert.equal(insertBetween('a\nb\n', 'comparison', 'new'), null);
});
