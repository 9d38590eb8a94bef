/*
 * What the charts show, as a table: which fields a line is made of, how it is smoothed, what it looks like. Every colour has a
 * contrast of at least 3 with white and with black; lines that must be distinguishable without colour have their own dashes.
 */
import { FIELDS } from '../../monitor/fields.js';

/**
 * @typedef {object} WantedLine
 * @property {string} label short, because it is beside the line
 * @property {string[]} fields the line is their sum
 * @property {number} smoothS window of the moving average; 0 for none
 * @property {string} color
 * @property {number[]} dash [] for a solid line
 * @property {number} width
 * @property {boolean} isArea stacked on the areas before it
 * @property {boolean} isSparse a second without a value is not a gap while there are streams
 * @property {boolean} isFaint the raw values of a smoothed line: has no label and is not compared
 */

/**
 * @typedef {object} WantedPanel
 * @property {string} title of the axis, without its unit
 * @property {string} unit of its fields
 * @property {boolean} isLog
 * @property {WantedLine[]} lines
 */

/** @typedef {{ id: 'memory' | 'cpu' | 'ticks' | 'streams', title: string, panels: WantedPanel[] }} WantedChart */

const BLUE = '#1f6fc0';
const ORANGE = '#e0700b';
const GREEN = '#0f9d76';
const PURPLE = '#8e44ad';
const RED = '#d6336c';
const GOLD = '#a67c00';
/** 4.5 to 1 against white and against black. */
export const GRAY = '#767676';

/** For runs that are compared. */
export const RUN_COLORS = [BLUE, ORANGE, PURPLE, GREEN, RED, GOLD];
/** @type {number[][]} */
export const RUN_DASHES = [[], [12, 3], [12, 3, 3, 3], [6, 2], [16, 4, 4, 4], [20, 3]];
/** For the number of streams, in every chart. */
export const STREAMS_DASH = [3, 3];

/** @type {WantedChart[]} */
// biome-ignore format: a table reads best with a row a line
export const CHARTS = [
  { id: 'memory', title: 'Memory', panels: [
    panel('memory', false, [
      { ...line('kernel', ['kernelBytes'], BLUE, []), isArea: true },
      { ...line('native', ['nativeBytes'], ORANGE, []), isArea: true },
      { ...line('JS heap', ['heapPhysicalBytes'], GREEN, []), isArea: true },
      { ...line('whole machine', ['memoryUsedBytes'], PURPLE, [10, 3]), width: 2 },
    ]),
  ] },
  { id: 'cpu', title: 'CPU', panels: [
    panel('CPU', false, [
      { ...line('total', ['cpuUserPercent', 'cpuSysPercent'], PURPLE, []), smoothS: 10, width: 2.5 },
      { ...line('processes', ['processCpuPercent'], ORANGE, [10, 3]), smoothS: 10, width: 2 },
      { ...line('user', ['cpuUserPercent'], BLUE, []), smoothS: 10 },
      { ...line('sys', ['cpuSysPercent'], GREEN, [5, 2]), smoothS: 10 },
    ]),
  ] },
  { id: 'ticks', title: 'Ticks of the event loops', panels: [
    panel('tick', true, [
      { ...line('max, each second', ['tickMaxMs'], RED, []), width: 0.5, isFaint: true },
      { ...line('max', ['tickMaxMs'], RED, []), smoothS: 20, width: 2.5 },
      { ...line('p90', ['tickP90Ms'], BLUE, [10, 3]), smoothS: 20, width: 2 },
      { ...line('avg', ['tickAvgMs'], GREEN, []), smoothS: 20 },
    ]),
  ] },
  { id: 'streams', title: 'Streams and pings', panels: [
    panel('streams and pings', false, [
      line('pings', ['pingsPerSecond'], BLUE, []),
      { ...line('opened', ['openedPerSecond'], GREEN, [10, 3]), width: 2 },
      { ...line('closed', ['closedPerSecond'], RED, [5, 2]), width: 2 },
    ]),
    panel('ping lateness', false, [
      { ...line('max', ['pingLatenessMaxMs'], RED, []), width: 1, isSparse: true },
      { ...line('p99', ['pingLatenessP99Ms'], BLUE, []), isSparse: true },
      { ...line('p50', ['pingLatenessP50Ms'], GREEN, [10, 3]), width: 2, isSparse: true },
    ]),
  ] },
];

/** @returns {string[]} the fields that the charts need */
export function chartFields() {
  const lines = CHARTS.flatMap(({ panels }) => panels.flatMap(({ lines }) => lines));
  return [...new Set(['streams', ...lines.flatMap(({ fields }) => fields)])];
}

/** @param {string} field @returns {string} */
export function unitOf(field) {
  return field === 'kernelBytes' ? 'bytes' : (FIELDS.find(({ name }) => name === field)?.unit ?? '');
}

/** A mean of maxima would hide the worst value, and a mean of high percentiles means nothing. @param {string} field @returns {import('./columns.js').Keep} */
export function keepOf(field) {
  return /Max|P99/.test(field) ? 'max' : 'mean';
}

/** @param {string} title @param {boolean} isLog @param {WantedLine[]} lines @returns {WantedPanel} */
function panel(title, isLog, lines) {
  return { title, unit: unitOf(lines[0].fields[0]), isLog, lines };
}

/** @param {string} label @param {string[]} fields @param {string} color @param {number[]} dash @returns {WantedLine} */
function line(label, fields, color, dash) {
  return {
    label,
    fields,
    smoothS: 0,
    color,
    dash,
    width: 1.5,
    isArea: false,
    isSparse: false,
    isFaint: false,
  };
}
