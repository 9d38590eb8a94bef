/*
 * From the columns of runs to the lines of the charts. Pure.
 */
import { CHARTS, GRAY, keepOf, RUN_COLORS, RUN_DASHES, STREAMS_DASH } from './wanted.js';

/** @typedef {import('./read.js').Run} Run */
/** @typedef {(number | null)[]} Values */

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {number[]} times s, one for each value
 * @property {Values} values
 * @property {string} color
 * @property {number[]} dash
 * @property {number} width
 * @property {boolean} isArea stacked on the areas before it
 * @property {boolean} isFaint has no label
 * @property {import('./columns.js').Keep} keep what represents several points
 */

/**
 * @typedef {object} Panel
 * @property {string} title of the axis, without its unit
 * @property {string} unit
 * @property {boolean} isLog
 * @property {number} smoothS the longest moving average of its lines; 0 for none
 * @property {Line[]} lines
 * @property {Line[]} streams the number of streams, on its own axis
 */

/** @typedef {{ id: string, title: string, panels: Panel[] }} Chart */

/** @param {Run[]} runs @returns {Chart[]} all four; for several runs with a panel per measure and a line per run */
export function chartsOf(runs) {
  return CHARTS.map(({ id, title, panels }) => ({
    id,
    title,
    panels: panels.flatMap((panel) => (runs.length === 1 ? [single(runs[0], panel)] : compared(runs, panel))),
  }));
}

/** @param {Run} run @param {import('./wanted.js').WantedPanel} panel @returns {Panel} */
function single(run, panel) {
  const lines = panel.lines.map((wanted) => lineOf(run, wanted)).filter((line) => line !== null);
  return { ...headOf(panel), lines, streams: streamsOf([run]) };
}

/** @param {Run[]} runs @param {import('./wanted.js').WantedPanel} panel @returns {Panel[]} */
function compared(runs, panel) {
  const wanted = panel.lines.filter(({ isFaint }) => !isFaint);
  return wanted.map((one) => ({
    ...headOf(panel),
    title: `${panel.title}: ${one.label}`,
    lines: runs.map((run, i) => comparedLine(run, i, one)).filter((line) => line !== null),
    streams: streamsOf(runs),
  }));
}

/** @param {import('./wanted.js').WantedPanel} panel */
function headOf({ title, unit, isLog, lines }) {
  return { title, unit, isLog, smoothS: Math.max(...lines.map(({ smoothS }) => smoothS)) };
}

/** @param {Run} run @param {number} index @param {import('./wanted.js').WantedLine} wanted @returns {Line | null} */
function comparedLine(run, index, wanted) {
  const line = lineOf(run, wanted);
  const [color, dash] = [RUN_COLORS[index % RUN_COLORS.length], RUN_DASHES[index % RUN_DASHES.length]];
  return line && { ...line, label: runLabel(run, index), color, dash, width: 1.5, isArea: false };
}

/** @param {number} index @returns {string} */
const letterOf = (index) => String.fromCharCode(65 + (index % 26));

/** Letters distinguish runs with long names. @param {Run} run @param {number} index @returns {string} */
export function runLabel({ name }, index) {
  return `${letterOf(index)} ${name}`;
}

/** @param {Run} run @param {import('./wanted.js').WantedLine} wanted @returns {Line | null} null if one of its fields is missing */
function lineOf(run, { fields, smoothS, isSparse, ...look }) {
  const columns = fields.map((field) => (smoothS > 0 ? run.means : run.values)[field]);
  if (columns.some((column) => column === undefined)) return null;
  const values = movingAverage(run.times, sumOf(columns), smoothS);
  const keep = smoothS > 0 ? 'mean' : keepOf(fields[0]);
  return { ...look, keep, ...(isSparse ? bridged(run, values) : { times: run.times, values }) };
}

/** @param {Run[]} runs @returns {Line[]} */
function streamsOf(runs) {
  const isOne = runs.length === 1;
  return runs.flatMap(({ times, values: { streams: values } }, i) => {
    if (!values) return [];
    const color = isOne ? GRAY : RUN_COLORS[i % RUN_COLORS.length];
    const look = { color, dash: STREAMS_DASH, width: isOne ? 1.5 : 1, isArea: false, isFaint: false };
    const label = isOne ? 'streams' : `streams ${letterOf(i)}`;
    return [{ label, times, values, keep: /** @type {const} */ ('mean'), ...look }];
  });
}

/**
 * Drops points without a value, so that the line continues across them, except while there was no stream.
 * @param {Run} run @param {Values} values @returns {{ times: number[], values: Values }}
 */
function bridged({ times, values: { streams } }, values) {
  const isKept = values.map((value, i) => value !== null || streams?.[i] === 0);
  return { times: times.filter((_, i) => isKept[i]), values: values.filter((_, i) => isKept[i]) };
}

/** @param {Values[]} columns @returns {Values} null if any of them is null */
function sumOf(columns) {
  if (columns.length === 1) return columns[0];
  return columns[0].map((_, i) =>
    columns.reduce((sum, column) => add(sum, column[i]), /** @type {number | null} */ (0)),
  );
}

/** @param {number | null} a @param {number | null} b @returns {number | null} */
function add(a, b) {
  return a === null || b === null ? null : a + b;
}

/**
 * The mean of all values within half a window before and after each.
 * @param {number[]} times s, ascending @param {Values} values @param {number} windowS
 * @returns {Values} null if there is no value in the window
 */
export function movingAverage(times, values, windowS) {
  if (windowS === 0) return values;
  const half = windowS / 2;
  const window = { from: 0, to: 0, sum: 0, count: 0 };
  const count = (/** @type {number | null} */ value, /** @type {1 | -1} */ sign) => {
    if (value === null) return;
    window.sum = window.count + sign === 0 ? 0 : window.sum + sign * value;
    window.count += sign;
  };
  return times.map((time) => {
    while (window.to < times.length && times[window.to] <= time + half) count(values[window.to++], 1);
    while (times[window.from] < time - half) count(values[window.from++], -1);
    return window.count === 0 ? null : window.sum / window.count;
  });
}

/**
 * Reduces the number of points to what a picture can show.
 * @param {number[]} times @param {Values} values @param {import('./columns.js').Keep} keep @param {number} most
 * @returns {{ t: number, v: number | null }[]}
 */
export function thin(times, values, keep, most) {
  const size = Math.ceil(times.length / most) || 1;
  return Array.from({ length: Math.ceil(times.length / size) }, (_, i) => {
    const [from, to] = [i * size, Math.min(times.length, (i + 1) * size)];
    const known = values.slice(from, to).filter((value) => value !== null);
    return {
      t: meanOf(times.slice(from, to)),
      v: known.length === 0 ? null : keep === 'max' ? Math.max(...known) : meanOf(known),
    };
  });
}

/** @param {number[]} numbers at least one */
const meanOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/**
 * @param {Line[]} lines of a panel
 * @returns {{ line: Line, bottom: Values | null, top: Values }[]} bottom is null for a line; areas lie on top of those before them
 */
export function stacked(lines) {
  /** @type {Values | null} */
  let below = null;
  return lines.map((line) => {
    if (!line.isArea) return { line, bottom: null, top: line.values };
    const bottom = below ?? line.values.map(() => 0);
    const top = line.values.map((value, i) => add(value, bottom[i]));
    below = top;
    return { line, bottom, top };
  });
}
