/*
 * Rows as a table for a terminal. Pure.
 */

const YELLOW = '\x1b[33m';
const RED = '\x1b[31m';
const PLAIN = '\x1b[0m';
/** A row with more overruns than this is red. */
const MANY = 0.01;

/** @typedef {import('./frame.js').Row} Row */

// biome-ignore format: a table reads best with a row a line
/** @type {{ title: string, text: (row: Row) => string }[]} */
const COLUMNS = [
  { title: '  ', text: markOf },
  { title: 'key', text: ({ key }) => key },
  { title: 'budget', text: ({ budgetNs }) => (budgetNs === null ? '' : durationText(budgetNs)) },
  { title: 'calls/s', text: ({ perSecond }) => rateText(perSecond) },
  { title: 'mean', text: (row) => measured(row, row.meanNs) },
  { title: 'p50', text: (row) => measured(row, row.p50Ns) },
  { title: 'p90', text: (row) => measured(row, row.p90Ns) },
  { title: 'p99', text: (row) => measured(row, row.p99Ns) },
  { title: 'max', text: (row) => measured(row, row.maxNs) },
  { title: '% of time', text: ({ share }) => percentText(share) },
  { title: 'over', text: ({ budgetNs, overShare }) => (budgetNs === null ? '' : percentText(overShare)) },
];
/** The columns from here on are numbers. */
const FIRST_NUMBER = 2;

/**
 * @param {readonly Row[]} rows
 * @param {{ colour?: boolean, width?: number }} [options] `width`: of the terminal, in characters
 * @returns {string} lines, each with its newline. Rows with calls over their budget are marked with !, and with !! if more than 1 % were
 */
export function tableText(rows, { colour = false, width = Number.POSITIVE_INFINITY } = {}) {
  const lines = [
    COLUMNS.map(({ title }) => title),
    ...rows.map((row) => COLUMNS.map(({ text }) => text(row))),
  ];
  const widths = COLUMNS.map((_, i) => Math.max(...lines.map((cells) => cells[i].length)));
  const texts = lines.map((cells) =>
    cells
      .map((cell, i) => (i < FIRST_NUMBER ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .slice(0, width),
  );
  return texts.map((text, i) => `${i > 0 && colour ? coloured(text, rows[i - 1]) : text}\n`).join('');
}

/** @param {string} text @param {Row} row */
function coloured(text, row) {
  const mark = markOf(row);
  return mark === '' ? text : `${mark === '!!' ? RED : YELLOW}${text}${PLAIN}`;
}

/** @param {Row} row */
function markOf({ overShare }) {
  if (overShare === 0) return '';
  return overShare > MANY ? '!!' : '!';
}

/** @param {Row} row @param {number} ns */
function measured({ samples }, ns) {
  return samples === 0 ? '-' : durationText(ns);
}

/** @param {number} ns @returns {string} '850 ns', '4.25 µs', '12.3 ms', '2.50 s' */
export function durationText(ns) {
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 999_500) return `${digits(ns / 1e3)} µs`;
  if (ns < 999_500_000) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** @param {number} value @returns {string} with three digits, or all before the point */
function digits(value) {
  if (value >= 99.95) return value.toFixed(0);
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/** @param {number} rate */
function rateText(rate) {
  return rate > 0 && rate < 9.95 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en-US');
}

/** @param {number} share */
function percentText(share) {
  if (share === 0) return '0 %';
  return `${share < 0.0995 ? (share * 100).toFixed(share < 0.001 ? 3 : 1) : Math.round(share * 100)} %`;
}
