import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { FIELDS } from '../monitor/fields.js';
import { Columns } from '../scripts/plot/columns.js';
import { readRun } from '../scripts/plot/read.js';
import { chartFields } from '../scripts/plot/wanted.js';
import { ROOT, temporaryFolder } from './helpers/server.js';

const FIXTURES = join(ROOT, 'test/fixtures/plot');
const HOLD = readFileSync(join(FIXTURES, 'hold.csv'), 'utf8');
const DAY_ROWS = 86_400;
/** The CSV of a day has 30 MB, and its cells as strings many times that. */
const MOST_GROWTH_BYTES = 60e6;

/**
 * @param {import('node:test').TestContext} t @param {string} text of a CSV @param {{ most?: number }} [options]
 */
function readText(t, text, options) {
  const path = join(temporaryFolder(t), 'run.csv');
  writeFileSync(path, text);
  return readRun(path, options);
}

/** @param {string} csv @param {string} name @returns {string} the CSV without that column */
function without(csv, name) {
  const lines = csv.split('\r\n');
  const at = lines[0].split(',').indexOf(name);
  return lines.map((line) => line.split(',').toSpliced(at, 1).join(',')).join('\r\n');
}

/** @param {string} name @param {number} row @returns {number} from the fixture */
function cell(name, row) {
  const [header, ...rows] = HOLD.split('\r\n').map((line) => line.split(','));
  return Number(rows[row][header.indexOf(name)]);
}

test('every field of the charts is in the table of fields, or derived from it', () => {
  const names = FIELDS.map(({ name }) => name);
  for (const field of chartFields()) assert.ok(field === 'kernelBytes' || names.includes(field), field);
});

test('a CSV of the server is read completely and in order, with the machine from its sidecar file', async () => {
  const run = await readRun(join(FIXTURES, 'hold.csv'));
  assert.deepEqual([run.rows, run.times.length, run.widthMs, run.notes], [60, 60, 0, []]);
  assert.equal(run.values.tickMaxMs[7], cell('tickMaxMs', 7));
  assert.equal(run.values.kernelBytes[9], cell('slabBytes', 9) + cell('kernelSocketBytes', 9));
  assert.equal(run.times[59], cell('elapsedMs', 59) / 1000);
  assert.equal(run.extents.streams.max, cell('streams', 59));
  assert.match(run.machine, /CPU of the fixture/);
});

test('an empty cell is not a zero', async () => {
  const run = await readRun(join(FIXTURES, 'hold.csv'));
  assert.equal(run.values.cpuUserPercent[0], null);
  assert.equal(run.values.pingLatenessP99Ms[0], null);
});

test('an incomplete last row is ignored, even if only the end of its last number may be missing', async (t) => {
  const inTheMiddle = await readText(t, HOLD.slice(0, -100));
  const atTheEnd = await readText(t, HOLD.slice(0, -3));
  for (const run of [inTheMiddle, atTheEnd]) {
    assert.equal(run.rows, 59);
    assert.deepEqual(run.notes, ['its last row is incomplete and was ignored']);
  }
});

test('zero bytes at the end, from a power failure, cost one row', async (t) => {
  const run = await readText(t, HOLD + '\0'.repeat(5000));
  assert.equal(run.rows, 60);
  assert.equal(run.notes.length, 1);
});

test('a missing column is reported, and the others are read', async (t) => {
  const run = await readText(t, without(without(HOLD, 'tickP90Ms'), 'slabBytes'));
  assert.deepEqual(run.notes, ['missing columns: slabBytes, tickP90Ms; the charts omit them']);
  assert.ok(!('tickP90Ms' in run.values) && !('kernelBytes' in run.values));
  assert.equal(run.values.tickMaxMs[7], cell('tickMaxMs', 7));
});

test('an unknown column is reported and ignored', async (t) => {
  const run = await readText(t, HOLD.replace('logRowsDropped', 'moonPhase'));
  assert.deepEqual(run.notes, ['unknown columns, ignored: moonPhase']);
});

test('without elapsedMs the column time is used, and without that each row counts as a second', async (t) => {
  const byClock = await readText(t, without(HOLD, 'elapsedMs'));
  assert.ok(Math.abs(byClock.times[59] - cell('elapsedMs', 59) / 1000) < 1);
  assert.match(byClock.notes[0], /elapsedMs: using time instead/);
  const byRow = await readText(t, without(without(HOLD, 'elapsedMs'), 'time'));
  assert.deepEqual([byRow.times[0], byRow.times[59]], [0, 59]);
  assert.match(byRow.notes[0], /assuming one row per second/);
});

test('rows with another number of columns, and rows that go back in time, are counted and ignored', async (t) => {
  const [header, ...rows] = HOLD.split('\r\n');
  const run = await readText(
    t,
    [header, ...rows.slice(0, 20), 'a,b', ...rows.slice(10, 15), ''].join('\r\n'),
  );
  assert.equal(run.rows, 20);
  assert.deepEqual(run.notes, [
    `rows without exactly ${header.split(',').length} columns, ignored: 1`,
    'rows that go back in time, ignored: 5',
  ]);
});

test('an empty file, or a header alone, is a run without rows', async (t) => {
  const empty = await readText(t, '');
  assert.deepEqual([empty.rows, empty.notes], [0, ['the file is empty']]);
  const header = await readText(t, `${HOLD.split('\r\n')[0]}\r\n`);
  assert.deepEqual([header.rows, header.notes], [0, ['it has a header but no rows']]);
});

test('an unclosed quote costs the rows after it, and little before it', async (t) => {
  const run = await readText(t, `${HOLD}"${'x'.repeat(2e6)}\r\n`);
  assert.ok(run.rows > 30, `${run.rows}`);
  assert.match(run.notes[0], /not a CSV after row \d+/);
});

test('the CSV of the original is recognized by its 17 columns, and its units are converted', async () => {
  const run = await readRun(join(FIXTURES, 'ancestor.csv'));
  const mib = 2 ** 20;
  assert.equal(run.rows, 120);
  assert.equal(run.times[0], 1.003);
  assert.equal(run.values.memoryUsedBytes[0], 1240 * mib);
  assert.equal(run.values.heapPhysicalBytes[0], 126 * mib);
  assert.equal(run.values.nativeBytes[0], (212 - 126) * mib);
  assert.equal(run.values.kernelBytes[0], (1240 - 212) * mib);
  assert.equal(run.values.pingsPerSecond[1], 2400 - 800);
  assert.match(run.notes[0], /the original/);
  assert.match(run.notes[1], /missing columns: openedPerSecond/);
});

test('a missing file, a folder, a binary and a text each give one line', async (t) => {
  const folder = temporaryFolder(t);
  const cases = {
    'absent.csv': null,
    'binary.csv': '\x7fELF\0\0',
    'text.csv': '# A title\n\nText.\n',
    'numbers.csv': '1,2,3\n',
  };
  for (const [name, content] of Object.entries(cases)) {
    if (content !== null) writeFileSync(join(folder, name), content);
    await assert.rejects(readRun(join(folder, name)), (/** @type {any} */ error) => {
      assert.equal(error.code, content === null ? 'NO_FILE' : 'NOT_CSV');
      assert.ok(error.message.includes(name) && !error.message.includes('\n'), error.message);
      return true;
    });
  }
  await assert.rejects(readRun(folder), { code: 'NO_FILE' });
});

test('a sidecar file that is not JSON is reported and does not stop anything', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'run.csv'), HOLD);
  writeFileSync(join(folder, 'run.json'), '{');
  const run = await readRun(join(folder, 'run.csv'));
  assert.equal(run.machine, '');
  assert.match(run.notes[0], /run\.json can't be read/);
});

test('buckets keep the mean, the maximum where it counts, and every gap', () => {
  const columns = new Columns({ load: 'mean', worst: 'max', absent: 'mean' }, 8);
  for (let s = 0; s < 64; s++) columns.add(s * 1000, [s, s % 8 === 5 ? 100 : s, s < 32 ? Number.NaN : 1]);
  const { load, worst, absent } = columns.values();
  assert.ok(load.length > 4 && load.length <= 8);
  assert.equal(columns.widthMs, 8000);
  assert.deepEqual(load.slice(0, 2), [3.5, 11.5]);
  assert.deepEqual(
    worst,
    load.map(() => 100),
  );
  assert.deepEqual(absent, [null, null, null, null, 1, 1, 1, 1]);
  assert.deepEqual(columns.timesS().slice(0, 2), [3.5, 11.5]);
  assert.deepEqual(columns.extents().load, { first: 0, last: 63, min: 0, max: 63 });
  assert.equal(columns.values('mean').worst[0], (0 + 1 + 2 + 3 + 4 + 100 + 6 + 7) / 8);
});

/** Prints the memory that a process needed to read a CSV, in KB, and the number of points. */
const MEASURE = `
  const { readRun } = await import('./scripts/plot/read.js');
  const run = await readRun(process.argv[1]);
  console.log(JSON.stringify({ kb: process.resourceUsage().maxRSS, rows: run.rows, points: run.times.length, worst: Math.max(...run.values.tickMaxMs) }));
`;

/** @param {string} path @returns {{ kb: number, rows: number, points: number, worst: number }} */
function measure(path) {
  const args = ['--input-type=module', '-e', MEASURE, path];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' }));
}

/** @param {string} path @param {number} rows repeated from the fixture; one of them has the longest tick */
async function writeLong(path, rows) {
  const [header, ...lines] = HOLD.trim()
    .split('\r\n')
    .map((line) => line.split(','));
  const [elapsed, tickMax] = ['elapsedMs', 'tickMaxMs'].map((name) => header.indexOf(name));
  const file = createWriteStream(path);
  file.write(`${header}\r\n`);
  for (let i = 0; i < rows; i++) {
    const row = lines[i % lines.length].with(elapsed, String(i * 1000));
    if (i === Math.floor(rows / 3)) row[tickMax] = '4321';
    if (!file.write(`${row}\r\n`)) await new Promise((resolve) => file.once('drain', () => resolve(null)));
  }
  await finished(file.end());
}

test('a day with a row per second needs little more memory than a few minutes, and its longest tick is kept', async (t) => {
  const folder = temporaryFolder(t);
  await writeLong(join(folder, 'day.csv'), DAY_ROWS);
  await writeLong(join(folder, 'minutes.csv'), 300);
  const day = measure(join(folder, 'day.csv'));
  const minutes = measure(join(folder, 'minutes.csv'));
  assert.equal(day.rows, DAY_ROWS);
  assert.ok(day.points > 2000 && day.points <= 6000, `${day.points}`);
  assert.equal(day.worst, 4321);
  t.diagnostic(`${minutes.kb} KB for minutes, ${day.kb} KB for a day`);
  assert.ok((day.kb - minutes.kb) * 1024 < MOST_GROWTH_BYTES, `${day.kb} KB against ${minutes.kb}`);
});
