/*
 * What `requests` counts and measures.
 */
import { Histogram } from '../../lib/histogram.js';
import { noCauses, sumOf } from '../drone/causes.js';

/** The percentiles of ab's table; 100 is the longest. */
export const PERCENTILES = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/** @typedef {import('../drone/causes.js').Cause} Cause */
/** @typedef {{ count: number, min: number, mean: number, max: number, percentiles: Record<string, number> }} Latency in ms */

/**
 * Why the run ended: all requests were sent, the time was up, somebody stopped it, or nothing was ever answered.
 * @typedef {'count' | 'duration' | 'stopped' | 'unanswered'} End
 */

/**
 * @typedef {object} Measured
 * @property {string} startedAt ISO 8601
 * @property {number} elapsedMs from the first request to the last answer, or to the end of the run
 * @property {End} end
 * @property {number} sent
 * @property {number} complete answered, with any status
 * @property {number} inFlight neither answered nor failed when the run ended
 * @property {number} unsent due by the rate when the run ended, but not sent for lack of a free connection
 * @property {Record<string, number>} statuses
 * @property {Record<Cause, number>} failed without a complete answer
 * @property {number} endless timeouts of answers that had begun
 * @property {string} lastError the last error of a connection; '' for none
 * @property {number} bytes of all answers
 * @property {number} bodyBytes of all bodies
 * @property {number | null} documentBytes of the first body
 * @property {boolean} lengthsVary whether other bodies had other lengths
 * @property {string} server the Server header of the first answer that had one
 * @property {Latency} latencyMs of answers: with a rate from when the request was due, else from when it was sent
 * @property {Latency} serviceMs of answers, from when the request was sent
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} [server] the Server header; '' for none
 * @property {number} bodyBytes
 * @property {number} sentMs
 * @property {number} dueMs
 * @property {number} nowMs
 */

export class Tally {
  startedAt = new Date();
  startMs = 0;
  lastMs = 0;
  sent = 0;
  complete = 0;
  /** @type {Record<string, number>} */
  statuses = {};
  failed = noCauses();
  endless = 0;
  lastError = '';
  bytes = 0;
  bodyBytes = 0;
  /** @type {number | null} */
  documentBytes = null;
  lengthsVary = false;
  server = '';
  latency = new Histogram('µs');
  service = new Histogram('µs');

  /** @param {number} nowMs on performance's clock */
  addSent(nowMs) {
    if (this.sent === 0) {
      this.startedAt = new Date();
      this.startMs = nowMs;
    }
    this.sent++;
  }

  /** @param {Answer} answer */
  addAnswer({ status, server = '', bodyBytes, sentMs, dueMs, nowMs }) {
    this.complete++;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.server ||= server;
    this.bodyBytes += bodyBytes;
    this.documentBytes ??= bodyBytes;
    this.lengthsVary ||= bodyBytes !== this.documentBytes;
    this.lastMs = nowMs;
    this.latency.record((nowMs - dueMs) * 1000);
    this.service.record((nowMs - sentMs) * 1000);
  }

  /** @param {Cause} cause @param {boolean} hasBegun whether its answer had begun @param {number} nowMs */
  addFailure(cause, hasBegun, nowMs) {
    this.failed[cause]++;
    if (cause === 'timeout' && hasBegun) this.endless++;
    this.lastMs = nowMs;
  }

  /** @returns {number} */
  failures() {
    return sumOf(this.failed);
  }

  /** @param {{ end: End, unsent: number, nowMs: number }} how it ended @returns {Measured} */
  measured({ end, unsent, nowMs }) {
    const { startedAt, startMs, lastMs, latency, service, ...counts } = this;
    const endMs = end === 'count' || end === 'unanswered' ? lastMs : nowMs;
    return {
      startedAt: startedAt.toISOString(),
      elapsedMs: this.sent === 0 ? 0 : endMs - startMs,
      end,
      ...structuredClone(counts), // answers that arrive later don't count
      inFlight: this.sent - this.complete - this.failures(),
      unsent,
      latencyMs: latencyOf(latency),
      serviceMs: latencyOf(service),
    };
  }
}

/** @param {Histogram} histogram @returns {Latency} zeroes when it is empty */
function latencyOf(histogram) {
  const max = histogram.maximum('ms');
  const percentileOf = (/** @type {number} */ percent) =>
    percent === 100 ? max : histogram.percentile(percent / 100, 'ms');
  return {
    count: histogram.count,
    min: histogram.count === 0 ? 0 : histogram.min / 1000,
    mean: histogram.mean('ms'),
    max,
    percentiles: Object.fromEntries(PERCENTILES.map((percent) => [percent, percentileOf(percent)])),
  };
}
