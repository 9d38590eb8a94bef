import assert from 'node:assert/strict';
import { existsSync, readFileSync, unlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CsvLog, csvHeader, openCsvLog } from '../monitor/csv.js';
import { frameAfter, sample } from './helpers/samples.js';
import { temporaryFolder } from './helpers/server.js';

const FRAME = frameAfter(sample());
const START = new Date('2026-01-02T03:04:05.678Z');

test('the file is named after its start time; a second one gets a number', async (t) => {
  const folder = join(temporaryFolder(t), 'made', 'for it');
  const logs = [await openCsvLog(folder, START), await openCsvLog(folder, START)];
  assert.deepEqual(
    logs.map(({ path }) => path),
    [join(folder, '2026-01-02T03-04-05.csv'), join(folder, '2026-01-02T03-04-05-2.csv')],
  );
  for (const log of logs) await log.close();
});

test('a row is in the file as soon as its write is done', async (t) => {
  const log = await openCsvLog(temporaryFolder(t), START);
  log.show(FRAME);
  await log.writing;
  const text = readFileSync(log.path, 'utf8');
  assert.ok(text.startsWith(csvHeader()));
  assert.equal(text.split('\r\n').length, 3);
  assert.equal(log.status().bytes, text.length);
  await log.close();
});

test('a folder that cannot be written to is refused in one line', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  await (await open(file, 'w')).close();
  await assert.rejects(openCsvLog(join(file, 'logs'), START), {
    code: 'BAD_LOG_DIR',
    message: /--log-dir .*ENOTDIR.*--no-log/,
  });
});

test('if the file was removed, that is reported and its rows are dropped', async (t) => {
  const log = await openCsvLog(temporaryFolder(t), START);
  unlinkSync(log.path);
  log.show(FRAME);
  await log.writing;
  assert.match(log.problem, /was removed/);
  assert.equal(log.rowsDropped, 1);
  await log.close();
});

test('a full disk drops rows, counts them and reports why; nothing is kept in memory', async (t) => {
  if (!existsSync('/dev/full')) return t.skip('no /dev/full here');
  const log = new CsvLog(await open('/dev/full', 'r+'), '/dev/full');
  for (let i = 0; i < 3; i++) {
    log.show(FRAME);
    await log.writing;
  }
  const { bytes, rowsDropped, problem } = log.status();
  assert.deepEqual({ bytes, rowsDropped }, { bytes: 0, rowsDropped: 3 });
  assert.match(problem, /ENOSPC/);
  await log.close();
});

test('while a disk hangs, only one row is kept in memory', async (t) => {
  const log = await openCsvLog(temporaryFolder(t), START);
  const { promise, resolve } = withResolvers();
  const write = log.file.write.bind(log.file);
  log.file.write = /** @type {any} */ (
    async (/** @type {any[]} */ ...args) => {
      await promise;
      return write(.../** @type {[Buffer]} */ (args));
    }
  );
  for (let i = 0; i < 10; i++) log.show(FRAME);
  assert.equal(log.rowsDropped, 9);
  resolve();
  await log.close();
  assert.equal(readFileSync(log.path, 'utf8').split('\r\n').length, 3);
});

/** @returns {{ promise: Promise<void>, resolve: () => void }} */
function withResolvers() {
  let resolve = () => {};
  const promise = new Promise((done) => {
    resolve = () => done(undefined);
  });
  return { promise, resolve };
}
