/*
 * The seam to autocannon, which sends the requests and reads the answers. What it measures itself is not used, and
 * when it sends is decided here, because of what was found in autocannon 8.0.0:
 * - Its rate goes out in a burst at the start of each second, and its correction for coordinated omission takes 1 ms for
 *   the interval at any rate (`Math.ceil(1 / rate)` of a rate in seconds). A server in a process of its own that stalled
 *   once for 500 ms, 100 requests a second for 6 s, three runs: some 600 answers became 5,665 to 6,577 samples with a median
 *   of 179 to 205 ms; uncorrected it was 0 to 2 ms. By the schedule here it was 600 samples and 1.2 to 1.3 ms.
 * - A request that was on its way when the server closed is neither answered nor failed, and leaves its start time to
 *   the next; an answer that breaks off leaves the parser in its midst; one without a length never ends; a HEAD is never
 *   answered; a server that answers `Connection: close` is sent the next request all the same.
 * So each client of it gets a `Line`, which stands in for the two methods by which it connects and sends.
 */
import autocannon from 'autocannon';
import { Line } from './line.js';
import { Pacer } from './pacer.js';
import { Tally } from './tally.js';

/** It looks this often whether it is to end. */
const LOOK_MS = 50;
/** autocannon wants a duration in any case: when to end is said by `stop`. */
const LONGEST_S = 2_000_000;

/**
 * @typedef {object} Plan
 * @property {string} url as it is dialled
 * @property {string} method
 * @property {Record<string, string>} headers
 * @property {string} body '' for none
 * @property {string} servername for TLS; '' for none
 * @property {number} connections
 * @property {number} requests Infinity for no limit
 * @property {number} durationMs Infinity for no limit
 * @property {number} rps 0 for as fast as it goes
 * @property {number} timeoutMs whole seconds
 */

/** @typedef {import('../drone/causes.js').Cause} Cause */
/** @typedef {import('./tally.js').End} End */
/** @typedef {import('./tally.js').Measured} Measured */

/** One run of requests. */
export class Load {
  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    this.tally = new Tally();
    this.pacer = new Pacer(plan.rps, plan.requests);
    /** As it was when it was stopped. @type {Measured | null} */
    this.result = null;
  }

  /** @returns {Promise<Measured>} once it has ended */
  async run() {
    const { durationMs } = this.plan;
    const isTimed = Number.isFinite(durationMs);
    const timer = isTimed ? setTimeout(() => this.stop('duration'), durationMs) : undefined;
    await new Promise((resolve, reject) => {
      const running = autocannon(this.options(), (error) => (error ? reject(error) : resolve(null)));
      this.halt = () => running.stop();
    });
    clearTimeout(timer);
    this.stop('count');
    return /** @type {Measured} */ (this.result);
  }

  /** @returns {autocannon.Options} */
  options() {
    const { url, method, headers, body, connections, timeoutMs, servername } = this.plan;
    return {
      url,
      method: /** @type {'GET'} */ (method),
      headers,
      ...(body ? { body } : {}),
      ...(servername ? { servername } : {}),
      connections,
      timeout: timeoutMs / 1000,
      duration: LONGEST_S,
      sampleInt: LOOK_MS,
      setupClient: (client) => void new Line(/** @type {any} */ (client), this),
    };
  }

  /** Ends it; the first reason counts. @param {End} end */
  stop(end) {
    if (this.result) return;
    const nowMs = performance.now();
    this.result = this.tally.measured({ end, unsent: this.pacer.overdue(nowMs), nowMs });
    this.pacer.stop();
    this.halt?.();
  }

  /** @param {Cause} cause @param {boolean} hasBegun */
  fail(cause, hasBegun) {
    const { tally, plan } = this;
    tally.addFailure(cause, hasBegun, performance.now());
    // Nobody there, or nobody who answers requests: more of them would say nothing new.
    if (tally.complete === 0 && tally.failures() >= plan.connections) this.stop('unanswered');
  }
}
