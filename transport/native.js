/*
 * The native transport: `Hold`, as the workers of the server use it.
 */
import { CLOSE_REASONS, zeroes } from '../lib/reasons.js';
import { Hold } from './hold.js';
import { holdOptionsIn } from './settings.js';

/** @typedef {import('./wire.js').Head} Head */

/**
 * @param {import('./index.js').TransportOptions} options
 * @returns {import('./index.js').Transport}
 */
export function create(options) {
  const hold = new Hold({ ...holdOptionsIn(options), decide: remembered(options.decide) });
  return {
    listen: (port, host) => hold.listen(port, host),
    publish: (channel, message) => hold.publish(channel, message),
    take: () => countersOf(hold),
    drain: (periodMs) => hold.close(periodMs),
  };
}

/**
 * `decide` of the worker looks at nothing but the head, and `Hold` remembers heads: what it says of one it says always.
 * @param {import('./index.js').TransportOptions['decide']} decide
 */
function remembered(decide) {
  /** @type {WeakMap<Head, import('./hold.js').HoldDecision>} */
  const decisions = new WeakMap();
  return (/** @type {Head} */ head) => {
    const known = decisions.get(head);
    if (known) return known;
    const decided = decide(head);
    const decision = 'hold' in decided ? { ...decided, always: true } : decided;
    decisions.set(head, decision);
    return decision;
  };
}

/** @param {Hold} hold @returns {import('../primary/messages.js').TransportCounters} */
function countersOf(hold) {
  const { closed, latenessUs, openCpuNs, pingCpuNs, deliveryCpuNs, ...counts } = hold.take();
  return {
    ...counts,
    closed: Object.assign(
      zeroes(CLOSE_REASONS),
      Object.fromEntries(CLOSE_REASONS.map((r, i) => [r, closed[i]])),
    ),
    refused: { ...hold.heads.refused },
    cut: 0,
    lateness: encoded(latenessUs),
    openCpu: encoded(openCpuNs),
    pingCpu: encoded(pingCpuNs),
    deliveryCpu: encoded(deliveryCpuNs),
  };
}

/** @param {import('../native/types.js').Encoded} histogram @returns {import('../lib/histogram.js').EncodedHistogram} */
function encoded({ count, sum, min, max, buckets }) {
  return { count, sumUs: sum, minUs: min, maxUs: max, buckets };
}
