/*
 * The results of a run beside its targets and what others have published. Pure.
 */
import { markdownTable, valueText } from '../text.js';

/**
 * @typedef {object} Target
 * @property {string} text
 * @property {string[]} figures of the experiment, shown side by side
 * @property {string} target for 1,000,000 streams (or what the experiment says), in words; '-' for none
 * @property {number[]} [most] the largest allowed value of each figure
 * @property {number[]} [least] or the smallest
 * @property {string} [over] a run: then the figures are divided by those of that run
 * @property {string[]} [others] what others have published, in the order of the columns
 * @property {string} [headline] how the README's table says it, with {} for the values
 *
 * @typedef {{ values: string, isReached: boolean | null }} Verdict isReached: null if there is no target, or a figure is not known
 */

/**
 * @param {Target[]} targets @param {import('../findings.js').Findings} findings
 * @param {{ run: string, others?: string[] }} how `run`: whose figures; `others`: the titles of the columns beside them
 * @returns {string} a table in Markdown
 */
export function targetsText(targets, findings, { run, others = [] }) {
  const rows = targets.map((target) => {
    const { values, isReached } = verdictOf(target, findings, run);
    const reached = isReached === null ? '-' : isReached ? 'yes' : '**no**';
    return [target.text, target.target, values, reached, ...others.map((_, i) => target.others?.[i] ?? '-')];
  });
  return markdownTable(['figure', 'to reach', 'here', 'reached', ...others], rows);
}

/** @param {Target} target @param {import('../findings.js').Findings} findings @param {string} run @returns {Verdict} */
export function verdictOf({ figures, most, least, over }, findings, run) {
  const found = figures.map((figure) => medianIn(findings, figure, run, over));
  const texts = found.map((value, i) => {
    if (value === null) return '-';
    return over ? value.toFixed(2) : valueText(value, findings.figure(figures[i]).unit);
  });
  const isKnown = (most ?? least) !== undefined && found.every((value) => value !== null);
  const isWithin = found.every(
    (value, i) =>
      value !== null &&
      value <= (most?.[i] ?? Number.POSITIVE_INFINITY) &&
      value >= (least?.[i] ?? Number.NEGATIVE_INFINITY),
  );
  return { values: texts.join(' / '), isReached: isKnown ? isWithin : null };
}

/** @param {import('../findings.js').Findings} findings @param {string} figure @param {string} run @param {string} [over] @returns {number | null} */
function medianIn(findings, figure, run, over) {
  const value = findings.of(figure, run)?.median ?? null;
  if (!over || value === null) return value;
  const other = findings.of(figure, over)?.median ?? null;
  return other ? value / other : null;
}
