/*
 * A CSV with a row for each key and second, so that a run can be drawn or compared later.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { UsageError } from './options.js';

/** @typedef {import('./frame.js').Row} Row */

// biome-ignore format: a table reads best with a row a line
/** @type {{ name: string, of: (row: Row) => string | number }[]} */
const COLUMNS = [
  { name: 'key', of: ({ key }) => quoted(key) },
  { name: 'samples', of: ({ samples }) => samples },
  { name: 'calls', of: ({ calls }) => calls },
  { name: 'calls_per_s', of: ({ perSecond }) => perSecond.toFixed(1) },
  { name: 'mean_ns', of: ({ meanNs }) => meanNs.toFixed(1) },
  { name: 'p50_ns', of: ({ p50Ns }) => Math.round(p50Ns) },
  { name: 'p90_ns', of: ({ p90Ns }) => Math.round(p90Ns) },
  { name: 'p99_ns', of: ({ p99Ns }) => Math.round(p99Ns) },
  { name: 'max_ns', of: ({ maxNs }) => Math.round(maxNs) },
  { name: 'total_ns', of: ({ totalNs }) => Math.round(totalNs) },
  { name: 'share', of: ({ share }) => share.toFixed(6) },
  { name: 'budget_ns', of: ({ budgetNs }) => budgetNs ?? '' },
  { name: 'over_share', of: ({ budgetNs, overShare }) => (budgetNs === null ? '' : overShare.toFixed(6)) },
];

export const CSV_HEAD = `${['time', ...COLUMNS.map(({ name }) => name)].join(',')}\n`;

/** @param {Date} time the end of the second @param {readonly Row[]} rows @returns {string} without keys that were not measured */
export function csvLines(time, rows) {
  const lines = rows
    .filter(({ samples }) => samples > 0)
    .map((row) => [time.toISOString(), ...COLUMNS.map(({ of }) => of(row))].join(','));
  return lines.map((line) => `${line}\n`).join('');
}

/** @param {string} text */
function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export class CsvFile {
  /** @param {string} path replaced if it exists @throws {UsageError} */
  constructor(path) {
    try {
      this.fd = openSync(path, 'w');
    } catch (error) {
      throw new UsageError(`can't write --csv ${path}: ${/** @type {Error} */ (error).message}`);
    }
    writeSync(this.fd, CSV_HEAD);
  }

  /** @param {readonly Row[]} rows */
  write(rows) {
    writeSync(this.fd, csvLines(new Date(), rows));
  }

  close() {
    closeSync(this.fd);
  }
}
