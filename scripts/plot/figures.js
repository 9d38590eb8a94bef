/*
 * The key figures of a run. "Held" is the time when the number of streams was within 5 % of its peak.
 */
import { formatBytes, formatCount, formatElapsed, formatMs } from '../../lib/format.js';
import { FIELDS } from '../../monitor/fields.js';
import { unitOf } from './wanted.js';

const HELD_SHARE = 0.95;
const REFUSED = FIELDS.map(({ name }) => name).filter((name) => /^refused\d+$|^cut$/.test(name));

/** @typedef {import('./read.js').Run} Run */
/** @typedef {{ label: string, unit: string, fields: string[], of: (run: Run) => number | null }} Figure */

/** @type {Figure[]} */
export const FIGURES = [
  { label: 'duration', unit: 's', fields: [], of: (run) => run.times.at(-1) ?? null },
  most('open streams, max', 'streams'),
  last('streams opened', ['opened']),
  last('streams lost with a worker', ['lost']),
  last('requests refused', REFUSED),
  most('opened per second, max', 'openedPerSecond'),
  most('closed per second, max', 'closedPerSecond'),
  held('pings per second, held', ['pingsPerSecond']),
  most('ping lateness p99, worst second', 'pingLatenessP99Ms'),
  most('ping lateness, max', 'pingLatenessMaxMs'),
  held('tick avg, held', ['tickAvgMs']),
  most('tick p90, worst second', 'tickP90Ms'),
  most('tick, max', 'tickMaxMs'),
  held('CPU of the machine, held', ['cpuUserPercent', 'cpuSysPercent']),
  held('CPU of the processes, held', ['processCpuPercent']),
  held('kernel memory of the machine, held', ['kernelBytes']),
  held('native memory of the workers, held', ['nativeBytes']),
  held('JS heap of the workers, held', ['heapPhysicalBytes']),
  most('memory in use, whole machine, max', 'memoryUsedBytes'),
  perStream('kernel memory per stream, held', 'Kernel'),
  perStream('native memory per stream, held', 'Native'),
  perStream('JS heap per stream, held', 'Heap'),
  mean('CPU to open a stream', 'openCpuUs'),
  mean('CPU per ping', 'pingCpuUs'),
  last('garbage collections', ['gcCount']),
  last('time in garbage collection', ['gcMs']),
];

/** @returns {string[]} the fields that the figures need */
export function figureFields() {
  return [...new Set(FIGURES.flatMap(({ fields }) => fields))];
}

/** @param {number | null} value @param {string} unit @returns {string} '-' if it is not known */
export function formatFigure(value, unit) {
  if (value === null) return '-';
  if (unit === 'bytes') return formatBytes(value);
  if (unit === 'ms') return `${formatMs(value)} ms`;
  if (unit === 'µs') return `${value.toFixed(1)} µs`;
  if (unit === 's') return formatElapsed(value * 1000);
  if (unit === '%') return `${value.toFixed(value < 10 ? 1 : 0)} % of one core`;
  return unit === '1/s' ? `${formatCount(value)}/s` : formatCount(value);
}

/** The largest value of all rows. @param {string} label @param {string} field @returns {Figure} */
function most(label, field) {
  return { ...base(label, [field]), of: ({ extents }) => extents[field]?.max ?? null };
}

/** The final values of counters, as far as the CSV has them, added up. @param {string} label @param {string[]} fields @returns {Figure} */
function last(label, fields) {
  return {
    ...base(label, fields),
    of: ({ extents }) => totalOf(fields.flatMap((field) => (field in extents ? [extents[field].last] : []))),
  };
}

/** The mean over the time in which the streams were held. @param {string} label @param {string[]} fields @returns {Figure} */
function held(label, fields) {
  return {
    ...base(label, fields),
    of: (run) => {
      const parts = fields.map((field) => meanOf(run, field, isHeld(run)));
      return parts.includes(null) ? null : totalOf(parts);
    },
  };
}

/**
 * Unknown if it is negative, as it was written before monitor/cost.js, or if at most rows only its upper bound was known.
 * @param {string} label @param {'Kernel' | 'Native' | 'Heap'} kind of memory @returns {Figure}
 */
function perStream(label, kind) {
  const field = `stream${kind}Bytes`;
  return {
    ...base(label, [field]),
    of: (run) => {
      const isHeldAt = isHeld(run);
      const rows = (run.values[field] ?? []).filter((_, at) => isHeldAt(at));
      const isUsual = rows.filter((value) => value !== null).length > rows.length / 2;
      const bytes = meanOf(run, field, isHeldAt);
      return isUsual && bytes !== null && bytes > 0 ? bytes : null;
    },
  };
}

/** The mean over the run. @param {string} label @param {string} field @returns {Figure} */
function mean(label, field) {
  return { ...base(label, [field]), of: (run) => meanOf(run, field, () => true) };
}

/** @param {string} label @param {string[]} fields */
function base(label, fields) {
  return { label, unit: unitOf(fields[0]), fields };
}

/** @param {Run} run @returns {(at: number) => boolean} */
function isHeld({ values }) {
  const streams = values.streams ?? [];
  const peak = streams.reduce((/** @type {number} */ most, one) => Math.max(most, one ?? 0), 0);
  return (at) => peak > 0 && (streams[at] ?? 0) >= peak * HELD_SHARE;
}

/** @param {Run} run @param {string} field @param {(at: number) => boolean} counts @returns {number | null} */
function meanOf({ values }, field, counts) {
  const known = (values[field] ?? []).filter((value, at) => value !== null && counts(at));
  const total = totalOf(known);
  return total === null ? null : total / known.length;
}

/** @param {(number | null)[]} numbers @returns {number | null} null if there are none */
function totalOf(numbers) {
  return numbers.length === 0
    ? null
    : numbers.reduce((/** @type {number} */ sum, one) => sum + (one ?? 0), 0);
}
