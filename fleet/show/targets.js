/*
 * What became of streams and publications at each of several targets. Pure.
 */
import { formatCount } from '../../lib/format.js';

const FIGURE = 12;
const LEAST_NAME = 15;

/** @param {{ targets: import('../drone/dial.js').ServerCounts[], moved: number }} report @returns {string[]} lines; none for a single target */
export function targetLines({ targets, moved }) {
  if (targets.length < 2) return [];
  const rows = targets.map(({ name, open, opened, failed, lost }) => ({
    name,
    figures: [open, opened, failed, lost],
  }));
  return [
    '',
    ...tableOf('target', ['open', 'opened', 'failed', 'lost'], rows),
    `streams were opened ${formatCount(moved)} times at another target than before`,
  ];
}

/** @param {import('./publications.js').Published | null} publications @returns {string[]} lines; none for a single hub that accepted everything */
export function hubLines(publications) {
  const { hubs = [], retried = 0 } = publications ?? {};
  if (hubs.length < 2 && retried === 0) return [];
  const rows = hubs.map(({ hub, accepted, refused, unanswered }) => ({
    name: hub,
    figures: [accepted, refused, unanswered],
  }));
  return [
    '',
    ...tableOf('requests to', ['accepted', 'refused', 'unanswered'], rows),
    `requests to publish were sent again ${formatCount(retried)} times`,
  ];
}

/** @param {string} head @param {string[]} heads @param {{ name: string, figures: number[] }[]} rows */
function tableOf(head, heads, rows) {
  const width = Math.max(LEAST_NAME, ...rows.map(({ name }) => name.length));
  const line = (/** @type {string} */ name, /** @type {string[]} */ cells) =>
    `${name.padEnd(width)}${cells.map((cell) => cell.padStart(FIGURE)).join('')}`;
  return [line(head, heads), ...rows.map(({ name, figures }) => line(name, figures.map(formatCount)))];
}
