/*
 * Reads the CSV of a run as a stream. Reports and skips what can't be read, and puts rows into buckets if there are too many.
 */
import { createReadStream } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parse } from 'csv-parse';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { Columns } from './columns.js';
import { figureFields } from './figures.js';
import { formatOf } from './formats.js';
import { chartFields, keepOf } from './wanted.js';

/** Points per column: with one row per second, an hour and a half is kept exactly. */
const MOST_POINTS = 6000;
const MOST_RECORD_BYTES = 1e6;
/** A zero byte this early means that the file is not text. After a power failure, a CSV may end in zero bytes. */
const HEAD_BYTES = 64;

/**
 * @typedef {object} Run
 * @property {string} name of the file, without .csv
 * @property {string} path
 * @property {number} rows
 * @property {number} widthMs of the buckets; 0 if each row is a point
 * @property {number[]} times s since the start, per point
 * @property {Record<string, (number | null)[]>} values by field, without fields that have no values at all
 * @property {Record<string, (number | null)[]>} means the same, but always the mean of a bucket, while `values` may have its maximum
 * @property {Record<string, import('./columns.js').Extent>} extents by field, over all rows
 * @property {string} startedAt ISO 8601; '' if it is not known
 * @property {string} machine '' if it is not recorded
 * @property {string[]} notes a line for each thing that is missing
 */

/**
 * @param {string} path @param {{ most?: number }} [options]
 * @returns {Promise<Run>}
 * @throws {HoldfastError} NO_FILE, NOT_CSV
 */
export async function readRun(path, { most = MOST_POINTS } = {}) {
  const isWhole = await endsWhole(path);
  const reader = new Reader(path, most);
  await readRows(path, isWhole, reader);
  const { machine, note } = await readMachine(path);
  const run = reader.run(machine);
  if (note) run.notes.push(note);
  return run;
}

/**
 * @param {string} path
 * @returns {Promise<boolean>} whether its last row is complete
 * @throws {HoldfastError} NO_FILE, NOT_CSV
 */
async function endsWhole(path) {
  const file = await open(path).catch((error) => {
    throw new HoldfastError('NO_FILE', `can't read ${path}: ${reasonOf(error)}`);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new HoldfastError('NO_FILE', `${path} is not a file: give the CSVs themselves`);
    const head = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    if (head.buffer.subarray(0, head.bytesRead).includes(0)) throw notCsv(path, 'it is binary');
    const tail = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, stat.size - 1));
    return stat.size > 0 && tail.buffer[0] === 0x0a;
  } finally {
    await file.close();
  }
}

/** @param {unknown} error @returns {string} */
function reasonOf(error) {
  return codeOf(error) === 'ENOENT' ? 'there is no such file' : messageOf(error);
}

/** @param {string} path @param {string} why */
function notCsv(path, why) {
  return new HoldfastError('NOT_CSV', `${path} is not the CSV of a run: ${why}; give a file from logs/`);
}

/**
 * A last row without a line break is skipped: the end of its last number may be missing.
 * @param {string} path @param {boolean} isWhole @param {Reader} reader
 */
async function readRows(path, isWhole, reader) {
  const rows = createReadStream(path).pipe(
    parse({
      bom: true,
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      max_record_size: MOST_RECORD_BYTES,
    }),
  );
  /** @type {string[] | null} */
  let pending = null;
  try {
    for await (const row of rows) {
      if (pending) reader.take(pending);
      pending = row;
    }
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    return reader.note(`not a CSV after row ${formatCount(reader.rows)}: the rest is ignored`);
  }
  if (pending && isWhole) reader.take(pending);
  if (pending && !isWhole) reader.note('its last row is incomplete and was ignored');
}

/** @param {string} path of the CSV @returns {Promise<{ machine: string, note: string }>} from the sidecar, `{ "machine": "…" }` */
async function readMachine(path) {
  const sidecar = `${path.replace(/\.csv$/i, '')}.json`;
  try {
    const { machine } = JSON.parse(await readFile(sidecar, 'utf8'));
    if (typeof machine === 'string') return { machine, note: '' };
    return { machine: '', note: `"machine" in ${sidecar} is not a text` };
  } catch (error) {
    const isAbsent = codeOf(error) === 'ENOENT';
    return { machine: '', note: isAbsent ? '' : `${sidecar} can't be read: ${messageOf(error)}` };
  }
}

/** Takes the rows of one file. */
class Reader {
  /** @param {string} path @param {number} most points */
  constructor(path, most) {
    this.path = path;
    this.fields = [...new Set([...chartFields(), ...figureFields()])];
    this.columns = new Columns(Object.fromEntries(this.fields.map((name) => [name, keepOf(name)])), most);
    /** @type {import('./formats.js').Format | null} */
    this.format = null;
    this.rows = 0;
    this.misshapen = 0;
    this.backward = 0;
    this.startedAtMs = Number.NaN;
    this.lastMs = Number.NEGATIVE_INFINITY;
    /** @type {string[]} */
    this.notes = [];
  }

  /** @param {string} line */
  note(line) {
    this.notes.push(line);
  }

  /** @param {string[]} texts */
  take(texts) {
    if (this.format) return this.takeRow(this.format, texts);
    this.format = formatOf(texts, this.fields);
    if (!this.format) throw notCsv(this.path, 'its first row is neither our header nor 17 numbers');
    this.notes.push(...this.format.notes);
    if (this.format.name === 'original') this.takeRow(this.format, texts);
  }

  /** @param {import('./formats.js').Format} format @param {string[]} texts */
  takeRow(format, texts) {
    if (texts.length !== format.header.length) return void this.misshapen++;
    const row = format.read(texts);
    const timeMs = this.timeOf(row);
    if (timeMs < this.lastMs) return void this.backward++;
    this.lastMs = timeMs;
    this.rows++;
    this.columns.add(
      timeMs,
      this.fields.map((name) => row.get(name) ?? Number.NaN),
    );
  }

  /** @param {import('./formats.js').Row} row @returns {number} ms since the start; without a column for it, a second per row */
  timeOf(row) {
    const elapsedMs = row.get('elapsedMs');
    const clockMs = row.get('time');
    if (Number.isNaN(this.startedAtMs) && clockMs !== undefined)
      this.startedAtMs = clockMs - (elapsedMs ?? 0);
    if (elapsedMs !== undefined) return elapsedMs;
    return clockMs === undefined ? Math.max(0, this.lastMs + 1000) : clockMs - this.startedAtMs;
  }

  /** @param {string} machine @returns {Run} */
  run(machine) {
    this.noteProblems();
    const { path, rows, columns, startedAtMs, notes } = this;
    return {
      name: basename(path).replace(/\.csv$/i, ''),
      path,
      rows,
      widthMs: columns.widthMs,
      times: columns.timesS(),
      values: columns.values(),
      means: columns.values('mean'),
      extents: columns.extents(),
      startedAt: Number.isNaN(startedAtMs) ? '' : new Date(startedAtMs).toISOString(),
      machine,
      notes,
    };
  }

  noteProblems() {
    const { format, rows, misshapen, backward } = this;
    if (!format) return this.note('the file is empty');
    if (rows === 0) this.note('it has a header but no rows');
    if (format.unknown.length > 0) this.note(`unknown columns, ignored: ${format.unknown.join(', ')}`);
    const { header } = format;
    if (!header.includes('elapsedMs')) {
      const instead = header.includes('time') ? 'using time instead' : 'assuming one row per second';
      this.note(`no column elapsedMs: ${instead}`);
    }
    if (misshapen > 0)
      this.note(`rows without exactly ${header.length} columns, ignored: ${formatCount(misshapen)}`);
    if (backward > 0) this.note(`rows that go back in time, ignored: ${formatCount(backward)}`);
    this.noteMissing(header);
  }

  /** @param {string[]} header */
  noteMissing(header) {
    const isDerived = this.format?.name === 'original';
    const missing = chartFields()
      .flatMap((name) => (name === 'kernelBytes' ? ['slabBytes', 'kernelSocketBytes'] : [name]))
      .filter((name) => !header.includes(name));
    const filled = this.columns.extents();
    const lacks = isDerived ? chartFields().filter((name) => !(name in filled)) : missing;
    if (lacks.length > 0) this.note(`missing columns: ${lacks.join(', ')}; the charts omit them`);
  }
}
