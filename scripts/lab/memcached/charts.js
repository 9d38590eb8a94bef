/*
 * The charts of the experiment memcached.
 */
import { svgOf } from '../../plot/picture.js';
import { barSpec } from '../bars.js';
import { valueText } from '../text.js';
import { KEY_CONNECTIONS, keyCell, nameOf, OPS } from './cells.js';
import { isClientLimited } from './limits.js';
import { NAMES, subjects } from './subjects.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./cells.js').Cell} Cell */
/** @typedef {import('./subjects.js').Subject} Subject */

export const ONE_CORE = 'one core for the server, another for the client';
export const ALL_CORES = 'all cores, which the client shares';

/** @param {Findings} findings @returns {Subject[]} */
export function measured(findings) {
  return subjects().filter(({ name }) => findings.runs.includes(name));
}

/** @param {Findings} findings @returns {Promise<Record<string, string>>} SVGs by name */
export async function chartsOf(findings) {
  const charts = { 'requests.svg': rateSpec(findings), 'cpu.svg': cpuSpec(findings) };
  const drawn = Object.entries(charts).map(async ([name, spec]) => [name, await svgOf(spec)]);
  return Object.fromEntries(await Promise.all(drawn));
}

/** @param {Findings} findings */
function rateSpec(findings) {
  const panels = [true, false].flatMap((isPinned) =>
    OPS.map((op) => ({
      title: `${op}: ${isPinned ? ONE_CORE : ALL_CORES}`,
      bars: barsOf(findings, keyCell(op), 'rate', isPinned),
    })),
  );
  const isMarked = panels.some(({ bars }) => bars.some(({ label }) => label.endsWith('*')));
  const subtitle = [
    `${KEY_CONNECTIONS} connections, one request at a time`,
    `medians; gray lines: smallest to largest value${isMarked ? '; *: the client was the limit' : ''}`,
  ];
  return barSpec({
    title: 'Requests per second',
    subtitle,
    axis: 'requests per second',
    panels: full(panels),
  });
}

/** @param {Findings} findings */
function cpuSpec(findings) {
  const panels = OPS.map((op) => ({ title: op, bars: barsOf(findings, keyCell(op), 'us', true) }));
  const subtitle = [
    `${KEY_CONNECTIONS} connections, one request at a time, one core`,
    'medians; gray lines: smallest to largest value',
  ];
  return barSpec({
    title: 'CPU of the server per request',
    subtitle,
    axis: 'µs per request',
    panels: full(panels),
  });
}

/** @template {{ bars: unknown[] }} T @param {T[]} panels @returns {T[]} */
const full = (panels) => panels.filter(({ bars }) => bars.length > 0);

/** @param {Findings} findings @param {Cell} cell @param {'rate' | 'us'} part @param {boolean} isPinned @returns {import('../bars.js').Bar[]} */
function barsOf(findings, cell, part, isPinned) {
  const name = nameOf(cell, part);
  const { unit } = findings.figure(name);
  return measured(findings)
    .filter((subject) => subject.isPinned === isPinned)
    .flatMap(({ name: run, title }) => {
      const summary = findings.of(name, run);
      if (!summary) return [];
      const { median: value, least, most } = summary;
      const isLimited = part === 'rate' && isClientLimited(findings, run, cell);
      const label = `${valueText(value, unit)}${isLimited ? ' *' : ''}`;
      return [{ name: title, value, least, most, label, color: colorOf(run) }];
    });
}

/** @param {string} run @returns {number} other servers, Node without a store, nodecached */
function colorOf(run) {
  if (run.includes('memcached') || run === NAMES.redis) return 3;
  return run === NAMES.nothing ? 2 : run.includes('nodecached') ? 1 : 0;
}
