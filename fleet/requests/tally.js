/*
 * What `requests` counts and measures of its requests.
 */
import { noCauses, sumOf } from '../drone/causes.js';
import { emptyHistogram } from '../drone/histograms.js';

/** The percentiles of ab's table; 100 is the longest. */
export const PERCENTILES = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/** @typedef {import('../drone/causes.js').Cause} Cause */
/** @typedef {{ count: number, min: number, mean: number, max: number, percentiles: Record<string, number> }} Latency in ms */

/**
 * Why it ended: all were sent, the time was over, somebody stopped it, or nothing was ever answered.
 * @typedef {'count' | 'duration' | 'stopped' | 'unanswered'} End
 */

/**
 * @typedef {object} Measured
 * @property {string} startedAt ISO 8601
 * @property {number} elapsedMs from the first request to the last answer, or to the end of the time
 * @property {End} end
 * @property {number} sent
 * @property {number} complete answered, with any status
 * @property {number} inFlight neither answered nor failed when it ended
 * @property {number} unsent due by the rate when it ended, and not sent
 * @property {Record<string, number>} statuses
 * @property {Record<Cause, number>} failed without a whole answer
 * @property {number} endless timeouts of answers that had begun
 * @property {string} lastError of the system; '' for none
 * @property {number} bytes of all answers
 * @property {number} bodyBytes of all bodies
 * @property {number | null} documentBytes of the first body
 * @property {boolean} lengthsVary other bodies had other lengths
 * @property {string} server as the first answer names it
 * @property {Latency} latencyMs of what was answered: with a rate from when it was due, else from its sending
 * @property {Latency} serviceMs from its sending
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
  latency = emptyHistogram();
  service = emptyHistogram();

  /** @param {number} nowMs on performance's clock */
  addSent(nowMs) {
    if (this.sent === 0) {
      this.startedAt = new Date();
      this.startMs = nowMs;
    }
    this.sent++;
  }

  /** @param {{ status: number, bodyBytes: number, sentMs: number, dueMs: number, nowMs: number }} answer */
  addAnswer({ status, bodyBytes, sentMs, dueMs, nowMs }) {
    this.complete++;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.bodyBytes += bodyBytes;
    this.documentBytes ??= bodyBytes;
    this.lengthsVary ||= bodyBytes !== this.documentBytes;
    this.lastMs = nowMs;
    record(this.latency, nowMs - dueMs);
    record(this.service, nowMs - sentMs);
  }

  /** @param {Cause} cause @param {boolean} hasBegun whether the answer had @param {number} nowMs */
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
      ...structuredClone(counts), // answers that come later count no more
      inFlight: this.sent - this.complete - this.failures(),
      unsent,
      latencyMs: latencyOf(latency),
      serviceMs: latencyOf(service),
    };
  }
}

/** @param {import('../drone/histograms.js').Hdr} histogram @param {number} ms */
function record(histogram, ms) {
  histogram.recordValue(Math.min(Math.max(Math.round(ms * 1000), 0), histogram.highestTrackableValue));
}

/** @param {import('../drone/histograms.js').Hdr} histogram of µs @returns {Latency} zeroes where it is empty */
function latencyOf(histogram) {
  const isEmpty = histogram.totalCount === 0;
  const ms = (/** @type {number} */ us) => (isEmpty ? 0 : us / 1000);
  return {
    count: histogram.totalCount,
    min: ms(histogram.minNonZeroValue),
    mean: ms(histogram.mean),
    max: ms(histogram.maxValue),
    percentiles: Object.fromEntries(PERCENTILES.map((one) => [one, ms(valueAt(histogram, one))])),
  };
}

/**
 * A bucket's upper end may lie above all that was recorded.
 * @param {import('../drone/histograms.js').Hdr} histogram @param {number} percentile
 */
function valueAt(histogram, percentile) {
  return Math.min(histogram.getValueAtPercentile(percentile), histogram.maxValue);
}
