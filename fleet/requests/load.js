/*
 * One run of `requests`: the connections, the schedule they share, and what they measure.
 */
import { Connection } from './connection.js';
import { Pacer } from './pacer.js';
import { Tally } from './tally.js';

/** How often requests that take too long are looked for. */
const SWEEP_MS = 50;

/**
 * @typedef {object} Plan
 * @property {string} origin as undici dials it
 * @property {string} path with the query
 * @property {string} method
 * @property {Record<string, string>} headers
 * @property {string} body '' for none
 * @property {string} servername for TLS; '' for none
 * @property {number} connections
 * @property {number} requests Infinity for no limit
 * @property {number} durationMs Infinity for no limit
 * @property {number} rps 0 for as fast as possible
 * @property {number} timeoutMs until an answer must be complete
 */

/** @typedef {import('../drone/causes.js').Cause} Cause */
/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {import('./tally.js').End} End */
/** @typedef {import('./tally.js').Measured} Measured */

export class Load {
  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    this.request = requestOf(plan);
    this.tally = new Tally();
    this.pacer = new Pacer(plan.rps, plan.requests);
    /** As it was when the run ended. @type {Measured | null} */
    this.result = null;
    /** @type {Connection[]} */
    this.connections = [];
    this.left = 0;
    this.resolve = () => {};
  }

  /** @returns {Promise<Measured>} when the run has ended */
  async run() {
    const { durationMs, connections } = this.plan;
    const sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    const isTimed = Number.isFinite(durationMs);
    const timer = isTimed ? setTimeout(() => this.stop('duration'), durationMs) : undefined;
    await new Promise((resolve) => {
      this.resolve = () => resolve(null);
      if (this.result) return resolve(null); // a signal was quicker
      this.connections = Array.from({ length: connections }, () => new Connection(this));
      for (const connection of this.connections) this.pacer.wait(connection);
    });
    clearInterval(sweeper);
    clearTimeout(timer);
    return /** @type {Measured} */ (this.result);
  }

  sweep() {
    const nowMs = performance.now();
    for (const connection of this.connections) connection.checkDeadline(nowMs);
  }

  /** @param {Exchange} exchange */
  onAnswered({ status, server, bodyBytes, sentMs, dueMs }) {
    const nowMs = performance.now();
    const fromMs = this.plan.rps > 0 ? dueMs : sentMs;
    this.tally.addAnswer({ status, server, bodyBytes, sentMs, dueMs: fromMs, nowMs });
  }

  /** @param {Cause} cause @param {Exchange} exchange @param {string} message */
  onFailed(cause, exchange, message) {
    const { tally, plan } = this;
    if (cause !== 'closed' && message) tally.lastError = message;
    tally.addFailure(cause, exchange.status > 0, performance.now());
    // Nobody is there, or nobody who answers requests: more of them would tell nothing new.
    if (tally.complete === 0 && tally.failures() >= plan.connections) this.stop('unanswered');
  }

  /** A connection has no more requests to send. */
  onLeft() {
    if (++this.left === this.connections.length) this.stop('count');
  }

  /** Ends the run; only the first reason counts. @param {End} end */
  stop(end) {
    if (this.result) return;
    const nowMs = performance.now();
    const unsent = this.pacer.overdue(nowMs);
    this.pacer.stop();
    for (const connection of this.connections) connection.close();
    this.result = this.tally.measured({ end, unsent, nowMs });
    this.resolve();
  }
}

/** @param {Plan} plan @returns {import('undici').Dispatcher.DispatchOptions} */
function requestOf({ path, method, headers, body, servername }) {
  return /** @type {any} */ ({
    path,
    method,
    headers,
    body: body === '' ? null : body,
    ...(servername ? { servername } : {}), // undici's types leave it out
    // undici would close a connection after a HEAD.
    ...(method === 'HEAD' ? { reset: false } : {}),
  });
}
