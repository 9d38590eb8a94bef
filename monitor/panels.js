/*
 * The contents of the dashboard, as text and series made from frames. Pure; `{name-fg}` are colours of blessed.
 */
import { basename } from 'node:path';
import { formatBytes, formatCount, formatElapsed, formatMs, formatShort } from '../lib/format.js';
import { linearScale, logScale } from './chart.js';
import { COST_FROM_STREAMS } from './cost.js';
import { CPU_KINDS, costOf, formatCost, formatMicros, MEMORY_KINDS, nodeText, totalCost } from './lines.js';

/** @typedef {import('./frame.js').Frame} Frame */

/**
 * A chart: which values of a frame it shows, and how.
 * @typedef {object} Panel
 * @property {Line[]} lines
 * @property {(frame: Frame, columns: number) => string} label its title, which is also its legend
 * @property {(values: number[], rows: number) => import('./chart.js').Scale} scale for all values shown
 * @property {(value: number) => string} format of the axis
 */

/** @typedef {{ color: string, read: (frame: Frame) => number | null }} Line */

const IDLE_TICK_MS = 10;

/** What the keys and the words mean: no line may be longer than the smallest terminal's box. */
export const HELP = [
  'q, Ctrl-C  drain and exit; press again to quit now',
  'g          collect garbage in every worker now',
  'up, down   scroll the workers',
  '?, Esc     show or hide this help',
  '',
  'late p99   99 % of pings were less late than this',
  'CPU        100% is one core',
  'memory     stacked: kernel + native + heap',
  'kernel     slab and socket buffers of the machine',
  'native     memory of the workers minus their JS heap',
  'heap       JS heap of the workers',
  'ticks      time between two runs of a 10 ms interval',
  'cost       memory per stream; < is an upper bound,',
  '           because the value is lost in noise',
  'open, ping, deliver',
  '           CPU for each (hold transport only)',
];

/** @param {Frame} frame @param {string} name @returns {number} 0 if it is unknown */
const n = (frame, name) => Number(frame.totals[name] ?? 0);

/** @param {Frame} frame @param {string} name */
const known = (frame, name) => (frame.totals[name] === null ? null : Number(frame.totals[name]));

/** @param {string} color @param {string} text */
const tint = (color, text) => `{${color}-fg}${text}{/${color}-fg}`;

/** @param {Frame} frame */
const kernelBytes = (frame) => n(frame, 'slabBytes') + n(frame, 'kernelSocketBytes');

/** It says that the values are stacked, in as many words as fit. @param {Frame} frame @param {number} columns */
function memoryLabel(frame, columns) {
  const parts = /** @type {const} */ ([
    ['red', 'kernel', kernelBytes(frame)],
    ['yellow', 'native', n(frame, 'nativeBytes')],
    ['green', 'heap', n(frame, 'heapPhysicalBytes')],
  ]);
  const long = parts.map(([, name, bytes]) => `${name} ${formatShort(bytes)}`);
  const isLong = `stacked memory: ${long.join(' + ')}`.length <= columns;
  const shown = parts.map(([color, name], i) => tint(color, isLong ? long[i] : name));
  return `stacked memory: ${shown.join(isLong ? ' + ' : '+')}`;
}

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
    scale: (values, rows) => linearScale(Math.max(10, ...values), rows),
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
    label: memoryLabel,
    scale: (values, rows) => linearScale(Math.max(1e6, ...values), rows),
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
    scale: (values, rows) => linearScale(Math.max(100, ...values), rows),
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

/** The figures of one kind, heaviest line first: colour and field. */
const COST_COLORS = { Heap: 'green', Native: 'yellow', Kernel: 'red' };
/** Rows of the cost box that stay if there is little room: the memory, and the CPU of a ping. */
const FEW_COST_ROWS = 5;

/**
 * @param {Frame} frame @param {number} rows of the box
 * @returns {string} memory per stream, and CPU to open, to ping and to deliver
 */
export function costContent({ totals }, rows) {
  const kinds = CPU_KINDS.filter(({ name }) => rows > FEW_COST_ROWS || name === 'ping');
  const isKnown = CPU_KINDS.some(({ field }) => totals[field] !== null);
  const cpu = isKnown ? kinds.map(({ name, field }) => costRow(name, formatMicros(totals[field]))) : [];
  return [...memoryRows(totals), ...cpu].join('\n');
}

/** @param {string} name @param {string} value */
const costRow = (name, value) => ` ${name.padEnd(7)}${value.padStart(8)}`;

/** @param {Frame['totals']} totals @returns {string[]} */
function memoryRows(totals) {
  const costs = MEMORY_KINDS.map((kind) => ({ kind, cost: costOf(totals, kind) }));
  if (costs.every(({ cost }) => cost === null))
    return [' memory: from', ` ${formatCount(COST_FROM_STREAMS)} streams`, ' on, at the peak'];
  const total = totalCost(costs.map(({ cost }) => cost));
  const rows = costs.map(({ kind, cost }) =>
    tint(COST_COLORS[kind], costRow(kind.toLowerCase(), formatCost(cost))),
  );
  return [...rows, costRow('total', formatCost(total))];
}

/**
 * The line at the top: as much as fits. A path that is too long is shortened to its name.
 * @param {Frame} frame @param {number} columns
 * @returns {string}
 */
export function headerContent(frame, columns) {
  const { log, node } = frame;
  const left = [
    formatElapsed(n(frame, 'elapsedMs')),
    `pings ${formatCount(n(frame, 'pingsPerSecond'))}/s`,
    `late p99 ${formatMs(known(frame, 'pingLatenessP99Ms'))} ms`,
    ...(node ? [nodeText(node)] : []),
  ].join('  ');
  const size = log?.problem ? `ROWS DROPPED: ${log.problem}` : formatBytes(log?.bytes ?? 0);
  const right = log ? [log.path, basename(log.path), ''].map((path) => `${path} ${size}`) : ['no CSV'];
  const pairs = right.flatMap((text) => [` Holdfast ${left}`, ` ${left}`].map((one) => ({ one, text })));
  const fitting = pairs.find(({ one, text }) => one.length + text.length + 3 <= columns);
  if (!fitting) return ` ${left}`.slice(0, columns);
  return `${fitting.one}${fitting.text.padStart(columns - fitting.one.length - 1)}`;
}
