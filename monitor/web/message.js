/*
 * A frame as dashboards get it: lists of values whose names are sent once, with the history. Pure.
 */
import { FIELDS } from '../fields.js';

/** The totals, and the values of a worker, in the order in which they are sent. */
export const NAMES = {
  totals: FIELDS.map(({ name }) => name).filter((name) => name !== 'time'),
  workers: [
    'streams',
    'processCpuPercent',
    'rssBytes',
    'tickAvgMs',
    'tickP90Ms',
    'tickMaxMs',
    'shardFailures',
  ],
};

/**
 * @param {import('../frame.js').Frame} frame
 * @param {{ timeMs: number, state: string, problem: string, broker: object | null }} status
 * @returns {object}
 */
export function frameMessage({ totals, primary, workers, node, log }, { timeMs, ...status }) {
  const valuesOf = (/** @type {Record<string, unknown>} */ values) =>
    NAMES.workers.map((name) => values[name] ?? null);
  return {
    t: timeMs,
    totals: NAMES.totals.map((name) => totals[name]),
    primary: { pid: primary.pid, values: valuesOf(primary.values) },
    workers: workers.map(({ id, pid, state, values }) => ({ id, pid, state, values: valuesOf(values) })),
    node,
    csvProblem: log?.problem ?? '',
    ...status,
  };
}

/**
 * @param {{ first: number, last: number, epoch: number }} broker
 * @param {{ nats: readonly string[], store: string }} config
 * @returns {object} what the dashboard says about it
 */
export function brokerSummary({ first, last, epoch }, { nats, store }) {
  const kind = nats.length > 0 ? 'nats' : store ? 'disk' : 'memory';
  return { kind, copy: kind === 'nats' && store ? 'disk' : '', stored: last - first + 1, last, epoch };
}
