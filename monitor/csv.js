/*
 * The CSV view: one row per frame, from the field table (RFC 4180). There is one write at a time; a row that comes
 * before the last one is written, or that fails, is dropped and counted. Rows are written at the end of the last
 * complete row, so that the next one overwrites a row that a full disk cut off.
 */
import { open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'csv-stringify/sync';
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';
import { makeFolder } from '../lib/folder.js';
import { FIELDS } from './fields.js';

const MOST_TRIES = 100;

/**
 * @typedef {object} LogStatus
 * @property {string} path
 * @property {number} bytes
 * @property {number} rowsDropped
 * @property {string} problem why the last row was dropped; '' if it was written
 */

/** @param {import('./fields.js').Value[]} values @returns {string} */
function rowOf(values) {
  return stringify([values], { record_delimiter: 'windows' });
}

/** @param {import('./frame.js').Frame} frame @returns {string} */
export function csvRow({ totals }) {
  return rowOf(FIELDS.map(({ name }) => totals[name]));
}

/** @returns {string} */
export function csvHeader() {
  return rowOf(FIELDS.map(({ name }) => name));
}

/**
 * @param {string} folder created if missing
 * @param {Date} start the name of the file
 * @returns {Promise<CsvLog>} with its header written
 * @throws {HoldfastError} BAD_LOG_DIR
 */
export async function openCsvLog(folder, start) {
  try {
    makeFolder(folder);
    const { file, path } = await createFile(folder, start.toISOString().slice(0, 19).replaceAll(':', '-'));
    const log = new CsvLog(file, path);
    await log.append(csvHeader());
    if (log.problem) throw new Error(log.problem);
    return log;
  } catch (error) {
    const why = codeOf(error) === 'EEXIST' ? 'it is a file, not a folder' : messageOf(error);
    throw new HoldfastError(
      'BAD_LOG_DIR',
      `can't write to --log-dir ${folder}: ${why}; use another folder, or --no-log`,
    );
  }
}

/**
 * Goes on with the CSV of the server before this one.
 * @param {string} path
 * @returns {Promise<CsvLog | null>} null if its columns are others, or it can't be written to
 */
export async function continueCsvLog(path) {
  const file = await open(path, 'r+').catch(() => null);
  if (!file) return null;
  const header = Buffer.from(csvHeader());
  const { buffer, bytesRead } = await file.read(Buffer.alloc(header.length), 0, header.length, 0);
  const log = new CsvLog(file, path);
  log.bytes = (await file.stat()).size;
  if (bytesRead === header.length && header.equals(buffer)) return log;
  await file.close();
  return null;
}

/** @param {string} folder @param {string} name gets a number if it is taken */
async function createFile(folder, name) {
  for (let i = 1; ; i++) {
    const path = join(folder, i === 1 ? `${name}.csv` : `${name}-${i}.csv`);
    try {
      return { path, file: await open(path, 'wx') };
    } catch (error) {
      if (codeOf(error) !== 'EEXIST' || i === MOST_TRIES) throw error;
    }
  }
}

export class CsvLog {
  /** @param {import('node:fs/promises').FileHandle} file @param {string} path */
  constructor(file, path) {
    this.file = file;
    this.path = path;
    this.bytes = 0;
    this.rowsDropped = 0;
    this.problem = '';
    /** @type {Promise<void> | null} the write in progress */
    this.writing = null;
  }

  /** @returns {LogStatus} */
  status() {
    const { path, bytes, rowsDropped, problem } = this;
    return { path, bytes, rowsDropped, problem };
  }

  /** @param {import('./frame.js').Frame} frame */
  show(frame) {
    if (this.writing) return this.drop('the disk is slow');
    void this.append(csvRow(frame));
  }

  /** Lines for people don't belong in a CSV. */
  note() {}

  /** @param {string} text one row @returns {Promise<void>} when it is written or dropped */
  append(text) {
    this.writing = this.write(Buffer.from(text))
      .catch((error) => this.drop(messageOf(error)))
      .finally(() => {
        this.writing = null;
      });
    return this.writing;
  }

  /** @param {Buffer} row */
  async write(row) {
    const { nlink } = await this.file.stat();
    if (nlink === 0) throw new Error(`${this.path} was removed`);
    for (let done = 0; done < row.length; ) {
      const { bytesWritten } = await this.file.write(row, done, row.length - done, this.bytes + done);
      done += bytesWritten;
    }
    this.bytes += row.length;
    this.problem = '';
  }

  /** @param {string} why */
  drop(why) {
    this.rowsDropped++;
    this.problem = why;
  }

  /** Another server goes on with it, or this one does later. @returns {Promise<void>} */
  async suspend() {
    await this.close();
  }

  /** @returns {Promise<void>} rows are dropped if it can't be opened any more */
  async resume() {
    const log = await continueCsvLog(this.path);
    if (log) [this.file, this.bytes] = [log.file, log.bytes];
  }

  /** @returns {Promise<void>} when everything that can be is on disk */
  async close() {
    await this.writing;
    await this.file.truncate(this.bytes).catch(() => {});
    await this.file.datasync().catch(() => {});
    await this.file.close().catch(() => {});
  }

  /** Removes the file of a run that did not start. @returns {Promise<void>} */
  async discard() {
    await this.close();
    await unlink(this.path).catch(() => {});
  }
}
