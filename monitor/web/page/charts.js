/*
 * The charts, as a table.
 */
import { formatBytes, formatCount, formatMs, formatShort } from '../../../lib/format.js';
import { COLUMNS } from '../columns.js';
import { Chart } from './chart.js';
import { byId } from './dom.js';

/** @typedef {import('./plot.js').Panel} Panel */
/** @typedef {import('./plot.js').Line} Line */

/** @param {string} label @param {string} column @param {Line['color']} color @param {Line['dash']} [dash] @returns {Line} */
const line = (label, column, color, dash = '') => ({ label, column, color, dash });
const ms = (/** @type {number} */ value) => `${formatMs(value)} ms`;
const percent = (/** @type {number} */ value) => `${value.toFixed(0)}%`;
const perSecond = (/** @type {number} */ value) =>
  `${value < 9.95 && value > 0 ? value.toFixed(1) : formatCount(value)}/s`;
const bytesAxis = (/** @type {number} */ value) => (value === 0 ? '0' : `${formatShort(value)}B`);

/** @type {Panel[]} */
// biome-ignore format: a table reads best with one row per line
const PANELS = [
  { id: 'streams', title: 'Streams', kind: 'linear', least: 10, format: formatCount, axis: formatShort,
    lines: [line('open', 'streams', 'c1')] },
  { id: 'opens', title: 'Opens and closes', kind: 'linear', least: 10, format: perSecond, axis: formatShort,
    lines: [line('opened', 'openedPerSecond', 'c1'), line('closed', 'closedPerSecond', 'c2', 'dashed')] },
  { id: 'memory', title: 'Memory, stacked', kind: 'stack', least: 1e6, format: formatBytes, axis: bytesAxis,
    lines: [line('heap', 'heapPhysicalBytes', 'c3', 'dotted'), line('native', 'nativeBytes', 'c2', 'dashed'), line('kernel', 'kernelBytes', 'c1')] },
  { id: 'cpu', title: 'CPU, 100% is a core', kind: 'linear', least: 100, format: percent, axis: percent,
    lines: [line('machine', 'machinePercent', 'c1', 'dashed'), line('server', 'processCpuPercent', 'c2')] },
  { id: 'ticks', title: 'Ticks', kind: 'log', least: 1, format: ms, axis: (value) => `${value} ms`,
    lines: [line('avg', 'tickAvgMs', 'c3'), line('p90', 'tickP90Ms', 'c1', 'dashed'), line('max', 'tickMaxMs', 'c2', 'dotted')] },
  { id: 'lateness', title: 'Lateness of pings', kind: 'log', least: 0.1, format: ms, axis: (value) => `${value <= 0.1 ? '≤' : ''}${value} ms`,
    lines: [line('p50', 'pingLatenessP50Ms', 'c3'), line('p99', 'pingLatenessP99Ms', 'c1', 'dashed'), line('max', 'pingLatenessMaxMs', 'c2', 'dotted')] },
  { id: 'pings', title: 'Pings and deliveries', kind: 'linear', least: 10, format: perSecond, axis: formatShort,
    lines: [line('pings', 'pingsPerSecond', 'c1'), line('deliveries', 'deliveriesPerSecond', 'c2', 'dashed')] },
  { id: 'queues', title: 'Backlog and queues', kind: 'linear', least: 1000, format: formatBytes, axis: bytesAxis,
    lines: [line('backlog', 'backlogBytes', 'c1'), line('shards', 'queuedBytes', 'c2', 'dashed'), line('primary', 'queueBytes', 'c3', 'dotted')] },
];

/** @type {Map<string, number>} */
const PLACES = new Map(COLUMNS.map(({ name }, i) => [name, i]));

export class Charts {
  constructor() {
    /** @param {number | null} at */
    const pointAll = (at) => {
      for (const chart of this.all) chart.point(at);
    };
    this.all = PANELS.map((panel) => new Chart(panel, byId('charts'), pointAll));
    document.addEventListener('themechange', () => {
      for (const { plot } of this.all) plot.redraw(true, true);
    });
  }

  /** @param {import('./store.js').Store} store @param {number} rangeS */
  draw(store, rangeS) {
    const { times, columns } = store.recent(rangeS * 1000);
    for (const chart of this.all) {
      const values = chart.panel.lines.map(({ column }) => columns[PLACES.get(column) ?? 0]);
      chart.draw(times, values, rangeS);
    }
  }
}
