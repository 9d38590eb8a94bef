/*
 * The key figures of a run, as a table: what a person asks for first. Held is the time when the number of
 * streams was within a twentieth of its peak.
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
  most('open streams, most', 'streams'),
  last('streams opened', ['opened']),
  last('streams lost with a worker', ['lost']),
  last('requests refused', REFUSED),
  most('opened a second, most', 'openedPerSecond'),
  most('closed a second, most', 'closedPerSecond'),
  held('pings a second, held', ['pingsPerSecond']),
  most('ping lateness p99, worst second', 'pingLatenessP99Ms'),
  most('ping lateness, worst', 'pingLatenessMaxMs'),
  held('tick avg, held', ['tickAvgMs']),
  most('tick p90, worst second', 'tickP90Ms'),
  most('tick, worst', 'tickMaxMs'),
  held('CPU of the machine, held', ['cpuUserPercent', 'cpuSysPercent']),
  held('CPU of the processes, held', ['processCpuPercent']),
  held('kernel memory of the machine, held', ['kernelBytes']),
  held('native memory of the workers, held', ['nativeBytes']),
  held('JS heap of the workers, held', ['heapPhysicalBytes']),
  most('memory used, whole machine, most', 'memoryUsedBytes'),
  held('kernel memory a stream, held', ['streamKernelBytes']),
  held('native memory a stream, held', ['streamNativeBytes']),
  held('JS heap a stream, held', ['streamHeapBytes']),
  mean('CPU to open a stream', 'openCpuUs'),
  mean('CPU of a ping', 'pingCpuUs'),
  last('garbage collections', ['gcCount']),
  last('time in garbage collections', ['gcMs']),
];

/** @returns {string[]} the fields that they are made of */
export function figureFields() {
  return [...new Set(FIGURES.flatMap(({ fields }) => fields))];
}

/** @param {number | null} value @param {string} unit @returns {string} '-' where it is not known */
export function formatFigure(value, unit) {
  if (value === null) return '-';
  if (unit === 'bytes') return formatBytes(value);
  if (unit === 'ms') return `${formatMs(value)} ms`;
  if (unit === 'µs') return `${value.toFixed(1)} µs`;
  if (unit === 's') return formatElapsed(value * 1000);
  if (unit === '%') return `${value.toFixed(value < 10 ? 1 : 0)} % of one core`;
  return unit === '1/s' ? `${formatCount(value)}/s` : formatCount(value);
}

/** The biggest of all rows. @param {string} label @param {string} field @returns {Figure} */
function most(label, field) {
  return { ...base(label, [field]), of: ({ extents }) => extents[field]?.max ?? null };
}

/** Where counters ended; those that are there. @param {string} label @param {string[]} fields @returns {Figure} */
function last(label, fields) {
  return {
    ...base(label, fields),
    of: ({ extents }) => totalOf(fields.flatMap((field) => (field in extents ? [extents[field].last] : []))),
  };
}

/** The mean over the time when the streams were held. @param {string} label @param {string[]} fields @returns {Figure} */
function held(label, fields) {
  return {
    ...base(label, fields),
    of: (run) => {
      const parts = fields.map((field) => meanOf(run, field, isHeld(run)));
      return parts.includes(null) ? null : totalOf(parts);
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

/** @param {(number | null)[]} numbers @returns {number | null} null for none */
function totalOf(numbers) {
  return numbers.length === 0
    ? null
    : numbers.reduce((/** @type {number} */ sum, one) => sum + (one ?? 0), 0);
}
