/*
 * The contents of the dashboard, as text and series made from frames. Pure; `{name-fg}` are colours of blessed.
 */
import { basename } from 'node:path';
import { formatBytes, formatCount, formatElapsed, formatMs, formatShort } from '../lib/format.js';
import { linearScale, logScale } from './chart.js';
import { COST_FROM_STREAMS } from './frame.js';
import { cpuText } from './lines.js';

/** @typedef {import('./frame.js').Frame} Frame */

/**
 * A chart: which values of a frame it shows, and how.
 * @typedef {object} Panel
 * @property {Line[]} lines
 * @property {(frame: Frame) => string} label its title, which is also its legend
 * @property {(values: number[], rows: number) => import('./chart.js').Scale} scale for all values shown
 * @property {(value: number) => string} format of the axis
 */

/** @typedef {{ color: string, read: (frame: Frame) => number | null }} Line */

const IDLE_TICK_MS = 10;

/** @param {Frame} frame @param {string} name @returns {number} 0 if it is unknown */
const n = (frame, name) => Number(frame.totals[name] ?? 0);

/** @param {Frame} frame @param {string} name */
const known = (frame, name) => (frame.totals[name] === null ? null : Number(frame.totals[name]));

/** @param {string} color @param {string} text */
const tint = (color, text) => `{${color}-fg}${text}{/${color}-fg}`;

/** @param {Frame} frame */
const kernelBytes = (frame) => n(frame, 'slabBytes') + n(frame, 'kernelSocketBytes');

/** @param {number} max @param {number} rows */
const scaleTo = (max, rows) => linearScale(max, Math.max(1, Math.floor(rows / 2)));

/** @type {Record<'streams' | 'memory' | 'cpu' | 'ticks', Panel>} */
export const PANELS = {
  streams: {
    lines: [{ color: 'cyan', read: (frame) => n(frame, 'streams') }],
    label: (frame) => {
      const [opened, closed] = ['openedPerSecond', 'closedPerSecond'].map((name) =>
        formatCount(n(frame, name)),
      );
      return `${tint('cyan', `streams ${formatCount(n(frame, 'streams'))}`)} +${opened} -${closed} /s`;
    },
    scale: (values, rows) => scaleTo(Math.max(10, ...values), rows),
    format: formatShort,
  },
  memory: {
    lines: [
      {
        color: 'green',
        read: (frame) => kernelBytes(frame) + n(frame, 'nativeBytes') + n(frame, 'heapPhysicalBytes'),
      },
      { color: 'yellow', read: (frame) => kernelBytes(frame) + n(frame, 'nativeBytes') },
      { color: 'red', read: kernelBytes },
    ],
    label: (frame) =>
      [
        tint('red', `kernel ${formatShort(kernelBytes(frame))}`),
        tint('yellow', `native ${formatShort(n(frame, 'nativeBytes'))}`),
        tint('green', `heap ${formatShort(n(frame, 'heapPhysicalBytes'))}`),
      ].join(' '),
    scale: (values, rows) => scaleTo(Math.max(1e6, ...values), rows),
    format: (value) => (value === 0 ? '0' : `${formatShort(value)}B`),
  },
  cpu: {
    lines: [
      {
        color: 'white',
        read: (frame) =>
          known(frame, 'cpuIdlePercent') === null
            ? null
            : n(frame, 'cpuUserPercent') + n(frame, 'cpuSysPercent'),
      },
      { color: 'magenta', read: (frame) => known(frame, 'processCpuPercent') },
    ],
    label: (frame) => {
      const machine = n(frame, 'cpuUserPercent') + n(frame, 'cpuSysPercent');
      const server = tint('magenta', `server ${n(frame, 'processCpuPercent').toFixed(0)}%`);
      return `CPU ${server} machine ${machine.toFixed(0)}%`;
    },
    scale: (values, rows) => scaleTo(Math.max(100, ...values), rows),
    format: (value) => `${formatShort(value)}%`,
  },
  ticks: {
    lines: [
      { color: 'red', read: (frame) => known(frame, 'tickMaxMs') },
      { color: 'yellow', read: (frame) => known(frame, 'tickP90Ms') },
      { color: 'green', read: (frame) => known(frame, 'tickAvgMs') },
    ],
    label: (frame) =>
      [
        'ticks ms',
        tint('green', `avg ${formatMs(known(frame, 'tickAvgMs'))}`),
        tint('yellow', `p90 ${formatMs(known(frame, 'tickP90Ms'))}`),
        tint('red', `max ${formatMs(known(frame, 'tickMaxMs'))}`),
      ].join(' '),
    scale: (values, rows) =>
      logScale(
        Math.min(IDLE_TICK_MS, ...values.filter((value) => value > 0)),
        Math.max(IDLE_TICK_MS * 10, ...values),
        rows,
      ),
    format: (value) => `${formatShort(value)}ms`,
  },
};

/** Heap is used/total; ticks are avg/p90/max. Widths are in characters, including the gap to the next column. */
export const TABLE = {
  headers: ['worker', 'pid', 'CPU %', 'RSS MB', 'streams', 'heap MB', 'ticks ms'],
  widths: [9, 8, 6, 7, 8, 8, 14],
};

/** Short enough for the column. */
const STATES = {
  forked: 'fork',
  starting: 'start',
  ready: '',
  late: 'late',
  draining: 'drain',
  dead: 'dead',
  gone: 'gone',
};

/** @param {Frame} frame @returns {string[][]} one row for the primary and one per worker */
export function tableRows(frame) {
  const { primary, workers } = frame;
  return [
    rowOf('primary', primary.pid, primary.values),
    ...workers.map(({ id, pid, state, values }) => rowOf(`${id} ${STATES[state]}`.trimEnd(), pid, values)),
  ];
}

/** @param {string} name @param {number} pid @param {Record<string, number | null>} values @returns {string[]} */
function rowOf(name, pid, values) {
  const ms = (/** @type {string} */ field) => formatMs(values[field] ?? null);
  const mega = (/** @type {string} */ field) => (Number(values[field] ?? 0) / 1e6).toFixed(0);
  return [
    name,
    String(pid),
    Number(values.processCpuPercent ?? 0).toFixed(1),
    mega('rssBytes'),
    values.streams === undefined ? '' : formatCount(Number(values.streams)),
    `${mega('heapUsedBytes')}/${mega('heapTotalBytes')}`,
    values.tickAvgMs === undefined ? '' : `${ms('tickAvgMs')}/${ms('tickP90Ms')}/${ms('tickMaxMs')}`,
  ];
}

/** @param {Frame} frame @returns {string} memory per stream, and CPU to open, to ping and to deliver */
export function costContent(frame) {
  const cpu = cpuText(frame.totals);
  return [...memoryRows(frame), ...(cpu ? [` µs ${cpu}`] : [])].join('\n');
}

/** @param {Frame} frame @returns {string[]} */
function memoryRows(frame) {
  if (frame.totals.streamHeapBytes === null) {
    return [' measured from', ` ${formatCount(COST_FROM_STREAMS)} streams,`, ' at the peak'];
  }
  const [heap, native, kernel] = ['Heap', 'Native', 'Kernel'].map((kind) => n(frame, `stream${kind}Bytes`));
  return [
    tint('green', ` heap  ${formatBytes(heap).padStart(8)}`),
    tint('yellow', ` native${formatBytes(native).padStart(8)}`),
    tint('red', ` kernel${formatBytes(kernel).padStart(8)}`),
    ` total ${formatBytes(heap + native + kernel).padStart(8)}`,
  ];
}

/**
 * The line at the top: as much as fits. A path that is too long is shortened to its name.
 * @param {Frame} frame @param {number} columns
 * @returns {string}
 */
export function headerContent(frame, columns) {
  const { log } = frame;
  const left = [
    formatElapsed(n(frame, 'elapsedMs')),
    `pings ${formatCount(n(frame, 'pingsPerSecond'))}/s`,
    `late p99 ${formatMs(known(frame, 'pingLatenessP99Ms'))} ms`,
  ].join('  ');
  const size = log?.problem ? `ROWS DROPPED: ${log.problem}` : formatBytes(log?.bytes ?? 0);
  const right = log ? [log.path, basename(log.path), ''].map((path) => `${path} ${size}`) : ['no CSV'];
  const pairs = right.flatMap((text) => [` Holdfast ${left}`, ` ${left}`].map((one) => ({ one, text })));
  const fitting = pairs.find(({ one, text }) => one.length + text.length + 3 <= columns);
  if (!fitting) return ` ${left}`.slice(0, columns);
  return `${fitting.one}${fitting.text.padStart(columns - fitting.one.length - 1)}`;
}
