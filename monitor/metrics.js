/*
 * The Prometheus view: the rows of the field table that have a metric, as text. It is created from the last frame for
 * each scrape, so that no values of dead workers remain.
 */
import { Counter, Gauge, Registry } from 'prom-client';
import { DISTRIBUTIONS } from './distributions.js';
import { FIELDS, METRICS_ONLY } from './fields.js';

/** Factors to base units, which Prometheus expects. @type {Record<string, number>} */
const SCALE = { ms: 1e-3, µs: 1e-6 };

/** @typedef {import('./fields.js').Field & { metric: NonNullable<import('./fields.js').Field['metric']> }} MetricField */

const FIELDS_WITH_METRIC = /** @type {MetricField[]} */ (
  [...FIELDS, ...METRICS_ONLY].filter(({ metric }) => metric)
);

/**
 * @param {import('./frame.js').Frame} frame
 * @returns {Promise<string>} in the text format of Prometheus
 */
export function metricsText(frame) {
  const registry = new Registry();
  for (const [name, fields] of byMetric()) {
    const { help, kind, metric, worker } = fields[0];
    const labelNames = [...(worker ? ['worker'] : []), ...Object.keys(metric.labels)];
    const options = { name, help: helpOf(fields, help), labelNames, registers: [registry] };
    const made = kind === 'counter' ? new Counter(options) : new Gauge(options);
    made.remove({}); // what is unknown has no value; prom-client gives it 0
    for (const field of fields) fill(made, field, frame);
  }
  for (const row of DISTRIBUTIONS) registry.registerMetric(histogramOf(row, frame.distributions[row.metric]));
  return registry.metrics();
}

/**
 * A histogram of prom-client only counts what it observes itself, so this is an object with what its registry reads.
 * @param {(typeof DISTRIBUTIONS)[number]} row
 * @param {import('./distributions.js').Distribution} distribution
 * @returns {import('prom-client').Metric}
 */
function histogramOf({ metric: name, help, bounds }, { counts, count, sum }) {
  const buckets = [...bounds.map((le, i) => ({ le, value: counts[i] })), { le: '+Inf', value: count }];
  const values = [
    ...buckets.map(({ le, value }) => ({ metricName: `${name}_bucket`, labels: { le }, value })),
    { metricName: `${name}_sum`, labels: {}, value: sum },
    { metricName: `${name}_count`, labels: {}, value: count },
  ];
  const made = { name, get: () => ({ name, help, type: 'histogram', values, aggregator: 'sum' }) };
  return /** @type {import('prom-client').Metric} */ (/** @type {unknown} */ (made));
}

/** The content type of `metricsText`. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** @returns {Map<string, MetricField[]>} the rows of each metric: one, or one per label */
function byMetric() {
  /** @type {Map<string, MetricField[]>} */
  const found = new Map();
  for (const field of FIELDS_WITH_METRIC) {
    found.set(field.metric.name, [...(found.get(field.metric.name) ?? []), field]);
  }
  return found;
}

/** @param {MetricField[]} fields @param {string} help 'streams closed: slow' → 'streams closed' if rows share it */
function helpOf(fields, help) {
  return fields.length === 1 ? help : help.replace(/( with \d+|: [\w-]+)$/, '');
}

/**
 * @param {Counter | Gauge} metric
 * @param {MetricField} field
 * @param {import('./frame.js').Frame} frame
 */
function fill(metric, field, frame) {
  const scale = SCALE[field.unit] ?? 1;
  const { labels } = field.metric;
  const rows = field.worker
    ? frame.workers.map(({ id, values }) => ({
        labels: { ...labels, worker: String(id) },
        value: values[field.name],
      }))
    : [{ labels, value: frame.totals[field.name] }];
  for (const { labels: all, value } of rows) {
    if (typeof value === 'number') metric.inc(all, value * scale);
  }
}
