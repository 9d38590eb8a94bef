/*
 * Figures as text, and sentences that compare them. Pure.
 */
import { formatBytes, formatCount, formatMs } from '../../lib/format.js';

/** @typedef {import('./findings.js').Findings} Findings */
/** @typedef {import('./findings.js').Summary} Summary */
/** @typedef {import('./experiment.js').Figure['unit']} Unit */

/** Longer times are written in seconds. */
const MOST_MS = 2000;

/** @param {number} value @param {Unit} unit @returns {string} */
export function valueText(value, unit) {
  if (unit === 'bytes') return formatBytes(value);
  if (unit === 'ms') return value < MOST_MS ? `${formatMs(value)} ms` : `${short(value / 1000)} s`;
  if (unit === 'µs') return `${short(value)} µs`;
  if (unit === 's') return `${short(value)} s`;
  if (unit === '%') return `${short(value)} %`;
  if (unit === '1/s') return `${formatCount(value)}/s`;
  return Number.isInteger(value) ? formatCount(value) : short(value);
}

/** @param {number} value */
function short(value) {
  return Math.abs(value) < 99.95 ? value.toFixed(1) : formatCount(value);
}

/** @param {Summary | null} summary @param {Unit} unit @returns {string} '8.1 KB (7.9 KB to 8.4 KB)' */
export function summaryText(summary, unit) {
  if (!summary) return '-';
  const { median, least, most, count } = summary;
  const text = valueText(median, unit);
  return count > 1 ? `${text} (${valueText(least, unit)} to ${valueText(most, unit)})` : text;
}

/** @param {string[]} head @param {string[][]} rows @returns {string} */
export function markdownTable(head, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** The same, with columns of one width, as the formatter of this project wants them. @param {string[]} head @param {string[][]} rows @returns {string} */
export function alignedTable(head, rows) {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map((cells) => cells[i].length)));
  const line = (/** @type {string[]} */ cells) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/**
 * Compares a figure of two runs in a sentence.
 * @param {Findings} findings @param {string} figure @param {string} one the run to compare with @param {string} other
 * @returns {string[]} empty when either is not known
 */
export function compared(findings, figure, one, other) {
  const [a, b] = [findings.of(figure, one), findings.of(figure, other)];
  if (!a || !b) return [];
  const { text, unit } = findings.figure(figure);
  const values = `${one} ${valueText(a.median, unit)}, ${other} ${valueText(b.median, unit)}`;
  return [`${capital(text)}: ${values}; ${distance(a, b, other, one)}.`];
}

/**
 * Compares every other run with the first, one sentence per figure.
 * @param {Findings} findings @param {string[]} figures @param {string} [one]
 * @returns {string[]}
 */
export function comparedToFirst(findings, figures, one = findings.runs[0]) {
  const others = findings.runs.filter((name) => name !== one);
  if (others.length < 2)
    return figures.flatMap((figure) => others.flatMap((other) => compared(findings, figure, one, other)));
  return figures.flatMap((figure) => listed(findings, figure, one, others));
}

/** @param {Findings} findings @param {string} figure @param {string} one @param {string[]} others @returns {string[]} */
function listed(findings, figure, one, others) {
  const a = findings.of(figure, one);
  if (!a) return [];
  const { text, unit } = findings.figure(figure);
  const parts = others.flatMap((other) => {
    const b = findings.of(figure, other);
    if (!b) return [];
    const far = isWithinSpread(a, b) ? 'within the spread' : difference(a.median, b.median);
    return [`${other} ${valueText(b.median, unit)} (${far})`];
  });
  return parts.length > 0
    ? [`${capital(text)}: ${one} ${valueText(a.median, unit)}; ${parts.join(', ')}.`]
    : [];
}

/** @param {Summary} a @param {Summary} b @param {string} name of b @param {string} than the name of a */
function distance(a, b, name, than) {
  if (isWithinSpread(a, b)) return 'within the spread of the trials, so no difference was found';
  const far =
    a.median === b.median
      ? 'no difference'
      : a.median > 2 * b.median && b.median > 0
        ? `${difference(b.median, a.median)} in ${than}`
        : `${difference(a.median, b.median)} in ${name}`;
  return hasSpread(a, b)
    ? `${far}, which is more than the spread of the trials`
    : `${far} (one trial of each)`;
}

/** @param {Summary} a @param {Summary} b */
function hasSpread(a, b) {
  return a.count > 1 && b.count > 1;
}

/** @param {Summary} a @param {Summary} b @returns {boolean} whether their ranges overlap */
function isWithinSpread(a, b) {
  return hasSpread(a, b) && a.least <= b.most && b.least <= a.most;
}

/** @param {number} a to compare with @param {number} b @returns {string} */
function difference(a, b) {
  if (a === b) return 'the same';
  if (a <= 0 || b <= 0) return b > a ? 'more' : 'less';
  if (b / a >= 2) return `${short(b / a)} times as much`;
  return `${short(Math.abs(b / a - 1) * 100)} % ${b > a ? 'more' : 'less'}`;
}

/** @param {string} text @returns {string} */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {Findings} findings @param {string} figure @param {string} run @returns {string} */
export function known(findings, figure, run) {
  const summary = findings.of(figure, run);
  return summary ? valueText(summary.median, findings.figure(figure).unit) : '(not known)';
}

/** @param {Record<string, Record<string, number>>} counts causes by outcome @returns {string} 'lost: closed 3' */
export function causesText(counts) {
  const parts = Object.entries(counts).map(([name, causes]) => {
    const some = Object.entries(causes).filter(([, n]) => n > 0);
    return some.length > 0
      ? `${name}: ${some.map(([cause, n]) => `${cause} ${formatCount(n)}`).join(', ')}`
      : '';
  });
  return parts.filter(Boolean).join('; ');
}
