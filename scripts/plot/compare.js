/*
 * The key figures of runs side by side, with their differences from the first run. Pure.
 */
import { FIGURES, formatFigure } from './figures.js';
import { runLabel } from './series.js';

/** @typedef {import('./read.js').Run} Run */
/** @typedef {{ label: string, cells: string[] }} Row a cell per run */

/** @param {Run[]} runs @returns {{ head: string[], rows: Row[] }} without figures that no run has */
export function figureTable(runs) {
  const rows = FIGURES.map(({ label, unit, of }) => ({ label, unit, values: runs.map(of) }));
  return {
    head: runs.map((run, i) => (runs.length === 1 ? run.name : runLabel(run, i))),
    rows: rows
      .filter(({ values }) => values.some((value) => value !== null))
      .map(({ label, unit, values }) => ({ label, cells: cellsOf(values, unit) })),
  };
}

/** @param {(number | null)[]} values @param {string} unit @returns {string[]} */
function cellsOf([first, ...others], unit) {
  const compared = others.map((value) => {
    const difference = differenceOf(first, value);
    return formatFigure(value, unit) + (difference && ` (${difference})`);
  });
  return [formatFigure(first, unit), ...compared];
}

/** @param {number | null} first @param {number | null} value @returns {string} '+12 %', or '×25.0' from a factor of ten; '' if there is nothing to compare */
export function differenceOf(first, value) {
  if (first === null || value === null || first === 0) return '';
  const percent = ((value - first) / Math.abs(first)) * 100;
  if (Math.abs(percent) < 0.05) return '±0 %';
  if (first > 0 && value / first >= 10) return `×${(value / first).toPrecision(3)}`;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  return `${percent > 0 ? '+' : '−'}${Math.abs(percent).toFixed(digits)} %`;
}

/** @param {{ head: string[], rows: Row[] }} table @returns {string} for a terminal */
export function tableText({ head, rows }) {
  const lines = [['', ...head], ...rows.map(({ label, cells }) => [label, ...cells])];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const pad = (/** @type {string} */ cell, /** @type {number} */ i) =>
    i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]);
  return `${lines.map((line) => line.map(pad).join('  ')).join('\n')}\n`;
}
