/*
 * One self-contained page: it includes uPlot, its style, the figures and the points. Our part of its script is
 * page.client.js.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { byteUnit, logAxis, timeAxis } from './axes.js';
import { figureTable } from './compare.js';
import { unitWords } from './encodings.js';
import { runLabel, stacked } from './series.js';

/** @typedef {import('./read.js').Run} Run */
/** @typedef {import('./series.js').Panel} Panel */

/**
 * The data of the page for its script.
 * @typedef {object} PageLine
 * @property {string} label
 * @property {number} times index into PageData.times
 * @property {(number | null)[]} tops where it is drawn: an area lies on top of those before it
 * @property {(number | null)[] | null} values for the legend; null if they equal tops
 * @property {string} color
 * @property {number[]} dash
 * @property {number} width
 * @property {boolean} isArea
 *
 * @typedef {object} PagePanel
 * @property {string} chart the id of its chart
 * @property {string} title with the unit
 * @property {string} unit
 * @property {number} factor of the unit
 * @property {{ domain: [number, number], marks: number[] } | null} log null for a linear axis
 * @property {PageLine[]} lines
 * @property {PageLine[]} streams
 *
 * @typedef {{ times: number[][], endS: number, panels: PagePanel[] }} PageData
 */

const { resolve } = createRequire(import.meta.url);

/** @param {Run[]} runs @param {import('./series.js').Chart[]} charts @returns {string} HTML */
export function pageOf(runs, charts) {
  const title = runs.map(({ name }) => name).join(' · ');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>${escaped(title)} · Holdfast</title>
<style>${readPackage('uplot/dist/uPlot.min.css')}</style>
<style>${readOurs('page.css')}</style>
<h1>${escaped(title)}</h1>
${runs.map((run, i) => headLine(run, runs.length > 1 ? runLabel(run, i) : run.name)).join('\n')}
<p class="help">Drag across a chart to zoom all of them, double-click or <button id="whole" type="button">whole run</button> to zoom out. ${unitHelp(runs)}</p>
${charts.map(({ id, title }) => `<section id="${id}"><h2>${escaped(title)}</h2></section>`).join('\n')}
<h2>${runs.length > 1 ? 'Key figures, with the difference from A' : 'Key figures'}</h2>
${tableOf(runs)}
<p class="help">Held: the time in which the number of streams was within 5 % of its peak. CPU is in percent of one core. 1 KB is 1,000 bytes.</p>
${notesOf(runs)}
<script type="application/json" id="data">${JSON.stringify(dataOf(runs, charts)).replaceAll('<', '\\u003c')}</script>
<script>${readPackage('uplot/dist/uPlot.iife.min.js')}</script>
<script type="module">${readOurs('page.client.js')}</script>
</html>
`;
}

/** @param {string} path in a package @returns {string} */
function readPackage(path) {
  return readFileSync(resolve(path), 'utf8');
}

/** @param {string} name @returns {string} a file in this folder */
function readOurs(name) {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

/** @param {Run} run @param {string} label @returns {string} */
function headLine({ startedAt, machine }, label) {
  const start = startedAt ? `from ${startedAt.slice(0, 19).replace('T', ' ')} UTC; ` : '';
  return `<p class="run">${escaped(`${label}: ${start}machine: ${machine || 'not recorded'}`)}</p>`;
}

/** @param {Run[]} runs @returns {string} */
function unitHelp(runs) {
  const widthS = Math.max(...runs.map(({ widthMs }) => widthMs)) / 1000;
  const point = widthS > 0 ? `Each point covers ${widthS} s. ` : '';
  return `${point}CPU is smoothed over ${Math.max(10, widthS)} s, ticks over ${Math.max(20, widthS)} s.`;
}

/** @param {Run[]} runs @returns {string} */
function tableOf(runs) {
  const { head, rows } = figureTable(runs);
  const cell = (/** @type {string} */ text) => `<td>${escaped(text)}</td>`;
  const lines = rows.map(
    ({ label, cells }) => `<tr><th scope="row">${escaped(label)}</th>${cells.map(cell).join('')}</tr>`,
  );
  const names = head.map((name) => `<th scope="col">${escaped(name)}</th>`).join('');
  return `<table class="figures"><thead><tr><td></td>${names}</tr></thead>\n<tbody>${lines.join('\n')}</tbody></table>`;
}

/** @param {Run[]} runs @returns {string} */
function notesOf(runs) {
  const notes = runs.flatMap(({ name, notes }) =>
    notes.map((note) => `<li>${escaped(`${name}: ${note}`)}</li>`),
  );
  return notes.length === 0 ? '' : `<h2>Missing data</h2>\n<ul>${notes.join('\n')}</ul>`;
}

/** @param {Run[]} runs @param {import('./series.js').Chart[]} charts @returns {PageData} */
export function dataOf(runs, charts) {
  /** @type {Map<number[], number>} */
  const indexOf = new Map();
  const panels = charts.flatMap(({ id, panels }) => panels.map((panel) => panelOf(id, panel, indexOf)));
  return {
    times: [...indexOf.keys()].map((times) => times.map(rounded)),
    endS: timeAxis(Math.max(...runs.map(({ times }) => times.at(-1) ?? 0))).end,
    panels,
  };
}

/** @param {string} chart @param {Panel} panel @param {Map<number[], number>} indexOf @returns {PagePanel} */
function panelOf(chart, { title, unit, isLog, lines, streams }, indexOf) {
  const drawn = linesOf(lines, indexOf);
  const known = drawn.flatMap(({ tops }) => tops.filter((value) => value !== null && (value > 0 || !isLog)));
  const most = known.reduce((/** @type {number} */ a, b) => Math.max(a, b ?? 0), 0);
  const least = known.reduce((/** @type {number} */ a, b) => Math.min(a, b ?? a), most);
  const scale = unit === 'bytes' ? byteUnit(most) : { unit: unitWords(unit), factor: 1 };
  const log = isLog && most > 0 ? logAxis(least * 0.9, most) : null;
  return {
    chart,
    title: `${title} (${scale.unit}${log ? ', log scale' : ''})`,
    ...scale,
    log,
    lines: drawn,
    streams: linesOf(streams, indexOf),
  };
}

/** @param {import('./series.js').Line[]} lines @param {Map<number[], number>} indexOf times, which lines share @returns {PageLine[]} */
function linesOf(lines, indexOf) {
  return stacked(lines).map(({ line, bottom, top }) => {
    const { label, times, values, color, dash, width, isArea } = line;
    if (!indexOf.has(times)) indexOf.set(times, indexOf.size);
    const own = bottom ? values.map(roundedOrNull) : null;
    const look = { color, dash, width, isArea };
    return { label, times: indexOf.get(times) ?? 0, tops: top.map(roundedOrNull), values: own, ...look };
  });
}

/** @param {number} n */
const rounded = (n) => Number(n.toPrecision(6));

/** @param {number | null} value */
const roundedOrNull = (value) => (value === null ? null : rounded(value));

/** @param {string} text @returns {string} */
function escaped(text) {
  return text.replace(/[&<>"]/g, (special) => `&#${special.charCodeAt(0)};`);
}
