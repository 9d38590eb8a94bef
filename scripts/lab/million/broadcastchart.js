/*
 * The chart of the run with one publication to everyone.
 */
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { valueText } from '../text.js';
import { TIME_FIGURES } from './times.js';

const CHART = 'times.svg';
const TITLES = /** @type {Record<string, string>} */ ({
  hub: 'our server',
  pings: 'our server, without --idle-pings',
  floor: 'bare loops',
});

/** @param {import('../findings.js').Findings} findings @returns {Promise<Record<string, string>>} SVGs by name; none without figures */
export async function timesChart(findings) {
  const panels = findings.runs.map((run, color) => ({
    title: TITLES[run] ?? run,
    bars: TIME_FIGURES.flatMap(({ name, text, unit }) => {
      const found = findings.of(name, run);
      if (!found) return [];
      const { median: value, least, most } = found;
      return [{ name: text, value, least, most, label: valueText(value, unit), color }];
    }),
  }));
  const drawn = panels.filter(({ bars }) => bars.length > 0);
  if (drawn.length === 0) return {};
  const title = 'One publication to everyone';
  const subtitle = ['from publishing it to reading it, the median of several publications'];
  return { [CHART]: await svgOf(barSpec({ title, subtitle, axis: 'ms', panels: drawn })) };
}
