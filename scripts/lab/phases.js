/*
 * The named phases of a run, by the server's clock. The figures of a phase come from the rows of the CSV that fall into it.
 * The functions that read figures are pure.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { percentilesOf } from '../../fleet/drone/histograms.js';
import { cpuUs, pssBytes } from './processes.js';

/** @typedef {Record<string, number | null>} Row */
/** @typedef {import('../../lib/histogram.js').Histogram} Histogram */

/**
 * @typedef {object} Span
 * @property {number} beginMs elapsedMs of the last row before it
 * @property {number} endMs elapsedMs of the first row after it, so that its rows contain everything it did
 * @property {number} tookMs by our own clock, without waiting for that row
 * @property {number} serverPssBytes at its end
 * @property {number} dronesPssBytes
 * @property {number} dronesCpuPercent of one core
 * @property {number} serverCpuPercent
 * @property {Ticks | null} ticks the worst of all workers in each figure; null when no worker was there all the time
 * @property {import('../../fleet/drone/histograms.js').Percentiles} latenessMs of the pings that clients read in it
 * @property {import('../../fleet/drone/histograms.js').Percentiles} deliveryMs of the publications, from publishing to reading
 * @property {import('../../fleet/merge.js').Total} load at its end, counted since the run began
 *
 * @typedef {{ avgMs: number, p90Ms: number, p99Ms: number, maxMs: number }} Ticks
 *
 * @typedef {Span & { rows: Row[] }} Phase
 * @typedef {Record<string, Phase>} Phases by name
 */

export class Recorder {
  /** @param {import('./server.js').LabServer} server @param {import('./load.js').Load} load */
  constructor(server, load) {
    this.server = server;
    this.load = load;
    /** @type {Record<string, Span>} */
    this.spans = {};
    this.lastMs = 0;
  }

  /** @param {string} name @param {() => Promise<unknown>} act */
  async during(name, act) {
    const beginMs = this.lastMs || (await this.server.nextRow());
    const before = this.measured();
    const ticksBefore = await this.server.ticks();
    const cpuBefore = this.cpu();
    const begunMs = performance.now();
    await act();
    const tookMs = performance.now() - begunMs;
    const cpuAfter = this.cpu();
    const load = await this.load.pollAll();
    this.lastMs = await this.server.nextRow();
    // The server updates its ticks together with its rows.
    const ticks = worstTicks(ticksBefore, await this.server.ticks());
    this.spans[name] = {
      beginMs,
      endMs: this.lastMs,
      tookMs,
      serverPssBytes: pssBytes(this.server.pids()),
      dronesPssBytes: pssBytes(this.load.pids()),
      dronesCpuPercent: (cpuAfter.dronesUs - cpuBefore.dronesUs) / tookMs / 10,
      serverCpuPercent: (cpuAfter.serverUs - cpuBefore.serverUs) / tookMs / 10,
      ticks,
      ...this.since(before),
      load,
    };
  }

  measured() {
    return { lateness: this.load.lateness(), delivery: this.load.measured('delivery') };
  }

  /** @param {ReturnType<Recorder['measured']>} before */
  since(before) {
    const { lateness, delivery } = this.measured();
    return {
      latenessMs: percentilesOf(lateness.less(before.lateness)),
      deliveryMs: percentilesOf(delivery.less(before.delivery)),
    };
  }

  cpu() {
    return { dronesUs: cpuUs(this.load.pids()), serverUs: this.server.cpuUs() };
  }

  /** @returns {Phases} those that are over */
  phases() {
    return phasesOf(readCsv(this.server.csvPath), this.spans);
  }
}

/**
 * @param {Map<number, Histogram>} before by pid @param {Map<number, Histogram>} now
 * @returns {Ticks | null}
 */
function worstTicks(before, now) {
  const between = [...now].flatMap(([pid, all]) => {
    const first = before.get(pid);
    return first ? [all.less(first)] : [];
  });
  if (between.length === 0) return null;
  const worst = (/** @type {(ticks: Histogram) => number} */ read) => Math.max(...between.map(read));
  return {
    avgMs: worst((ticks) => ticks.mean('ms')),
    p90Ms: worst((ticks) => ticks.percentile(0.9, 'ms')),
    p99Ms: worst((ticks) => ticks.percentile(0.99, 'ms')),
    maxMs: worst((ticks) => ticks.maximum('ms')),
  };
}

/** @param {string} path @returns {Row[]} */
export function readCsv(path) {
  return rowsOf(readFileSync(path, 'utf8'));
}

/** @param {string} text @returns {Row[]} numbers, null for an empty cell; `time` in ms since the epoch */
export function rowsOf(text) {
  /** @type {Record<string, string>[]} */
  const rows = parse(text, { columns: true, relax_column_count: true, skip_empty_lines: true });
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(readCell)));
}

/** @param {[string, string]} cell @returns {[string, number | null]} */
function readCell([name, text]) {
  const value = name === 'time' ? Date.parse(text) : Number(text);
  return [name, text === '' || Number.isNaN(value) ? null : value];
}

/** @param {Row[]} rows @param {Record<string, Span>} spans @returns {Phases} */
export function phasesOf(rows, spans) {
  const within = (/** @type {Span} */ { beginMs, endMs }) =>
    rows.filter(({ elapsedMs }) => Number(elapsedMs) > beginMs && Number(elapsedMs) <= endMs);
  return Object.fromEntries(
    Object.entries(spans).map(([name, span]) => [name, { ...span, rows: within(span) }]),
  );
}

/** @typedef {(phases: Phases) => number | null} Reader null when it is not known */

/** @param {string} phase @param {string} field @returns {Reader} */
export const median = (phase, field) => over(phase, field, medianOf);

/** @param {string} phase @param {string} field @returns {Reader} */
export const max = (phase, field) => over(phase, field, (values) => Math.max(...values));

/** @param {string} phase @param {string} field @returns {Reader} */
export const last = (phase, field) => over(phase, field, (values) => values[values.length - 1]);

/** Growth of a field from the end of one phase to the end of another. @param {string} from @param {string} to @param {string} field @returns {Reader} */
export const growth = (from, to, field) => minus(last(to, field), last(from, field));

/** Growth of a field from the first row of a phase to its last. @param {string} phase @param {string} field @returns {Reader} */
export const rise = (phase, field) => over(phase, field, (values) => values[values.length - 1] - values[0]);

/** The same per second. @param {string} phase @param {string} field @returns {Reader} */
export const rate = (phase, field) => times(per(rise(phase, field), rise(phase, 'elapsedMs')), 1000);

/** @param {string} phase @param {(phase: Phase) => number | null} read @returns {Reader} */
export const of = (phase, read) => (phases) => (phases[phase] ? read(phases[phase]) : null);

/** @param {Reader} one @param {Reader} other @returns {Reader} */
export const minus = (one, other) => both(one, other, (a, b) => a - b);

/** @param {Reader} one @param {Reader} other @returns {Reader} not known for a division by zero */
export const per = (one, other) => both(one, other, (a, b) => (b === 0 ? null : a / b));

/** @param {Reader} one @param {Reader} other @returns {Reader} */
export const multiplied = (one, other) => both(one, other, (a, b) => a * b);

/** @param {Reader} one @param {number} factor @returns {Reader} */
export const times = (one, factor) => multiplied(one, () => factor);

/** @param {Reader} one @param {Reader} other @param {(a: number, b: number) => number | null} how @returns {Reader} */
function both(one, other, how) {
  return (phases) => {
    const [a, b] = [one(phases), other(phases)];
    return a === null || b === null ? null : how(a, b);
  };
}

/** @param {string} phase @param {string} field @param {(values: number[]) => number} how @returns {Reader} */
function over(phase, field, how) {
  return (phases) => {
    const rows = phases[phase]?.rows ?? [];
    const values = rows.map((row) => row[field] ?? null).filter((value) => value !== null);
    return values.length > 0 ? how(values) : null;
  };
}

/** @param {number[]} values at least one @returns {number} */
export function medianOf(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
