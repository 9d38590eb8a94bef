/*
 * The stats of drones as a table, one row each, and their total. Pure.
 */
import { formatCount, formatMs, printable } from '../../lib/format.js';
import { merge } from '../merge.js';
import { faultsOf, outcomeOf } from './publications.js';

/** @typedef {import('../ask.js').Answer} Answer */
/** @typedef {import('../ask.js').Counts} Counts */
/** @typedef {'plain' | 'bold' | 'dim' | 'green' | 'yellow' | 'red'} Colour */
/** @typedef {{ text: string, colour: Colour }} Cell */

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {string} place
 * @property {string} state
 * @property {string} errors by cause; '' for none
 * @property {Counts | null} counts null if it did not answer
 * @property {number | null} openedPerSecond null if not known yet
 * @property {Record<string, import('../drone/histograms.js').Percentiles> | null} percentiles
 */

/** @type {Record<Colour, string>} */
const CODES = { plain: '', bold: '1', dim: '2', green: '32', yellow: '33', red: '31' };
/** @type {Record<string, Colour>} */
const COLOUR_OF = {
  holding: 'green',
  ramping: 'yellow',
  closing: 'yellow',
  'backing-off': 'red',
  'no-consent': 'red',
  late: 'red',
  gone: 'red',
};
const UNKNOWN = '-';

/** @type {{ name: string, head: [string, string], isLeft?: boolean, text: (row: Row) => string }[]} */
const COLUMNS = [
  { name: 'drone', head: ['', 'drone'], isLeft: true, text: ({ name }) => name },
  { name: 'place', head: ['', 'place'], isLeft: true, text: ({ place }) => place },
  { name: 'state', head: ['', 'state'], isLeft: true, text: ({ state }) => state },
  { name: 'open', head: ['', 'streams'], text: ({ counts }) => count(counts?.open) },
  { name: 'target', head: ['', 'of'], text: ({ counts }) => count(counts?.target) },
  { name: 'inFlight', head: ['in', 'flight'], text: ({ counts }) => count(counts?.inFlight) },
  { name: 'rate', head: ['opened', 'per second'], text: ({ openedPerSecond }) => count(openedPerSecond) },
  {
    name: 'firstByte',
    head: ['first byte', 'p50/p99 ms'],
    text: ({ percentiles }) => figures(percentiles?.firstByteMs, ['p50', 'p99']),
  },
  {
    name: 'lateness',
    head: ['ping late', 'p99 ms'],
    text: ({ percentiles }) => figures(percentiles?.latenessMs, ['p99']),
  },
];
/** Columns that are dropped first in a narrow terminal. */
const SPARE = ['place', 'target'];

/** @param {number | null | undefined} n */
function count(n) {
  return n === null || n === undefined ? UNKNOWN : formatCount(n);
}

/**
 * @param {import('../drone/histograms.js').Percentiles | undefined} percentiles
 * @param {('p50' | 'p99')[]} names
 */
function figures(percentiles, names) {
  if (!percentiles || percentiles.count === 0) return UNKNOWN;
  return names.map((name) => formatMs(percentiles[name])).join('/');
}

/** @param {Counts} counts @returns {string} 'failed: refused 12; lost: closed 3; 4 publications lost' */
export function errorsText(counts) {
  const parts = [
    ['failed', causesText(counts.failed)],
    ['lost', causesText(counts.lost)],
  ];
  const causes = parts.flatMap(([name, text]) => (text ? `${name}: ${text}` : []));
  return [...causes, ...faultsOf(outcomeOf(counts, null))].join('; ');
}

/** @param {Record<string, number>} causes @returns {string} 'refused 12, closed 3'; '' for none */
export function causesText(causes) {
  const some = Object.entries(causes).filter(([, n]) => n > 0);
  return some.map(([cause, n]) => `${cause} ${formatCount(n)}`).join(', ');
}

/**
 * @param {Answer} answer @param {Answer | undefined} before the previous answer of the same drone
 * @returns {Row}
 */
function rowOf({ member, stats, problem }, before) {
  const { name, place } = member;
  if (!stats) {
    const isKnown = problem === 'late' || problem === 'gone';
    const state = stateOf(member, problem);
    return {
      name,
      place,
      state,
      errors: isKnown ? '' : problem,
      counts: null,
      openedPerSecond: null,
      percentiles: null,
    };
  }
  const { drone, counts, percentiles } = stats;
  const openedPerSecond = rateOf(stats, before?.stats);
  return {
    name,
    place,
    state: drone.state,
    errors: errorsText(counts),
    counts,
    openedPerSecond,
    percentiles,
  };
}

/**
 * @param {import('../ask.js').Member} member that did not answer @param {string} problem
 * @returns {string}
 */
export function stateOf(member, problem) {
  if (member.state === 'pending') return 'pending';
  return problem === 'late' || problem === 'gone' ? problem : 'refused';
}

/** @param {import('../ask.js').Stats} now @param {import('../ask.js').Stats | null | undefined} before */
function rateOf(now, before) {
  if (!before || before.drone.startedAt !== now.drone.startedAt) return null;
  const elapsedMs = now.drone.elapsedMs - before.drone.elapsedMs;
  return elapsedMs > 0 ? ((now.counts.opened - before.counts.opened) * 1000) / elapsedMs : null;
}

/**
 * @param {Answer[]} answers @param {Answer[]} before
 * @returns {{ rows: Row[], total: Row }}
 */
export function rowsOf(answers, before) {
  const rows = answers.map((answer) =>
    rowOf(
      answer,
      before.find(({ member }) => member.url === answer.member.url),
    ),
  );
  const all = answers.flatMap(({ stats }) => stats ?? []);
  const { counts, percentiles } = merge(all);
  const rates = rows.map(({ openedPerSecond }) => openedPerSecond).filter((rate) => rate !== null);
  const state = all.length < rows.length ? `${all.length} of ${rows.length} drones` : dronesText(all.length);
  const openedPerSecond = rates.length > 0 ? rates.reduce((sum, rate) => sum + rate, 0) : null;
  const errors = errorsText(counts);
  return { rows, total: { name: 'total', place: '', state, errors, counts, openedPerSecond, percentiles } };
}

/** @param {number} n */
export function dronesText(n) {
  return `${formatCount(n)} ${n === 1 ? 'drone' : 'drones'}`;
}

/**
 * @param {{ rows: Row[], total: Row }} frame
 * @param {object} [how]
 * @param {number} [how.width] columns of the terminal
 * @param {number} [how.height] lines of the terminal; rows that don't fit are counted
 * @param {boolean} [how.hasColours]
 * @returns {string[]} lines
 */
export function tableLines(
  { rows, total },
  { width = Infinity, height = Infinity, hasColours = false } = {},
) {
  const layout = layoutFor([...rows, total], width);
  const lineOf = (/** @type {Cell[]} */ cells) => paint(cells, width, hasColours);
  const head = [0, 1].map((i) => lineOf(headCells(layout, i)));
  const body = rows.map((row) => rowCells(layout, row).map(lineOf));
  const foot = rowCells(layout, { ...total, errors: rows.length > 1 ? total.errors : '' }).map(lineOf);
  return [...head, ...fitting(body, height - head.length - foot.length), ...foot];
}

/** @param {string[][]} body lines of each row @param {number} height @returns {string[]} */
function fitting(body, height) {
  const all = body.flat();
  if (all.length <= height) return all;
  let [shown, lines] = [0, 1];
  while (lines + body[shown].length <= height) lines += body[shown++].length;
  return [...body.slice(0, shown).flat(), `… and ${dronesText(body.length - shown)} more`];
}

/** @typedef {{ columns: typeof COLUMNS, widths: number[], gap: string, hasErrors: boolean }} Layout */

/** @param {Row[]} rows @param {number} width @returns {Layout} the widest that fits */
function layoutFor(rows, width) {
  const errors = Math.max('errors'.length, ...rows.map((row) => row.errors.length));
  for (const [hasErrors, gap, dropped] of layouts()) {
    const columns = COLUMNS.filter(({ name }) => !dropped.includes(name));
    const widths = columns.map(({ head, text }) =>
      Math.max(...head.map(({ length }) => length), ...rows.map((row) => text(row).length)),
    );
    const needed = widths.reduce((sum, one) => sum + one + gap.length, hasErrors ? errors : -gap.length);
    if (needed <= width || dropped.length === SPARE.length) return { columns, widths, gap, hasErrors };
  }
  throw new Error('unreachable: the narrowest layout is always used');
}

/** @returns {Generator<[boolean, string, string[]]>} from the widest to the narrowest */
function* layouts() {
  yield [true, '  ', []];
  yield [false, '  ', []];
  for (let dropped = 0; dropped <= SPARE.length; dropped++) yield [false, ' ', SPARE.slice(0, dropped)];
}

/** @param {Layout} layout @param {number} i @returns {Cell[]} */
function headCells({ columns, widths, gap, hasErrors }, i) {
  const cells = columns.map(({ head, isLeft }, column) => pad(head[i], widths[column], isLeft));
  const text = [...cells, ...(hasErrors ? [i === 1 ? 'errors' : ''] : [])].join(gap).trimEnd();
  return [{ text, colour: 'dim' }];
}

/** @param {Layout} layout @param {Row} row @returns {Cell[][]} one line, or two if the errors get one of their own */
function rowCells({ columns, widths, gap, hasErrors }, row) {
  const cells = columns.map(({ name, text, isLeft }, column) => ({
    text: pad(text(row), widths[column], isLeft) + gap,
    colour: name === 'state' ? (COLOUR_OF[row.state] ?? 'plain') : /** @type {Colour} */ ('plain'),
  }));
  /** @type {Cell} */
  const errors = { text: row.errors, colour: 'red' };
  if (hasErrors) return [[...cells, errors]];
  return row.errors ? [cells, [{ text: `  ${row.errors}`, colour: 'red' }]] : [cells];
}

/** @param {string} text @param {number} width @param {boolean} [isLeft] */
function pad(text, width, isLeft) {
  return isLeft ? text.padEnd(width) : text.padStart(width);
}

/** @param {Cell[]} cells @param {number} width @param {boolean} hasColours @returns {string} clipped, without trailing spaces */
function paint(cells, width, hasColours) {
  let left = Math.min(
    width,
    cells.reduce((sum, { text }) => sum + text.length, 0),
  );
  const line = cells.map(({ text, colour }) => {
    const shown = printable(text.slice(0, left));
    left -= shown.length;
    return hasColours && CODES[colour] && shown.trim() ? `\x1b[${CODES[colour]}m${shown}\x1b[0m` : shown;
  });
  return line.join('').trimEnd();
}
