/*
 * The admin view, on 127.0.0.1 only: health, the last frame and the metrics over HTTP, and the way to publish.
 */
import { createServer } from 'node:http';
import { Histogram } from '../lib/histogram.js';
import { openPort } from '../lib/port.js';
import { listenerOf, pathsOf, RequestError, readBody } from '../lib/router.js';
import { METRICS_TYPE, metricsText } from './metrics.js';

const HOST = '127.0.0.1';
/** The largest message that can be published. */
const MOST_MESSAGE_BYTES = 65_536;
/** Enough for its readers, too few to use up the primary's file descriptors. */
const MOST_CONNECTIONS = 64;

/** @typedef {import('../lib/router.js').Answer} Answer */

export class Admin {
  /**
   * @param {object} server
   * @param {() => boolean} server.isReady whether it accepts streams
   * @param {(channel: string, message: string) => void} server.publish
   */
  constructor({ isReady, publish }) {
    this.isReady = isReady;
    this.publish = publish;
    /** @type {import('./frame.js').Frame | null} */
    this.frame = null;
    /** All ticks of each worker that is alive. @type {Map<number, { id: number, ticks: Histogram }>} by pid */
    this.ticks = new Map();
    this.server = createServer(listenerOf(this.routes));
    this.server.maxConnections = MOST_CONNECTIONS;
  }

  /** @type {import('../lib/router.js').Route[]} */
  routes = [
    { methods: ['GET'], path: '/healthz', handle: () => ({ status: 200, body: 'ok\n' }) },
    { methods: ['GET'], path: '/readyz', handle: () => this.readiness() },
    { methods: ['GET'], path: '/frame', handle: () => ({ status: 200, body: this.lastFrame() }) },
    { methods: ['GET'], path: '/ticks', handle: () => ({ status: 200, body: this.allTicks() }) },
    { methods: ['GET'], path: '/metrics', handle: () => this.metrics() },
    { methods: ['POST'], path: '/publish', handle: (request, url) => this.takeMessage(request, url) },
  ];

  /** @returns {string} what there is, for people */
  get paths() {
    return pathsOf(this.routes);
  }

  /** @param {number} port 0 for a free one @returns {Promise<number>} the port */
  listen(port) {
    return openPort(this.server, { port, host: HOST, flag: 'admin-port' });
  }

  /** @returns {Answer} */
  readiness() {
    return this.isReady() ? { status: 200, body: 'ready\n' } : { status: 503, body: 'not ready\n' };
  }

  /** @returns {import('./frame.js').Frame} */
  lastFrame() {
    if (!this.frame) throw new RequestError(503, 'no frame yet');
    return this.frame;
  }

  /** @returns {Promise<Answer>} */
  async metrics() {
    return { status: 200, type: METRICS_TYPE, body: await metricsText(this.lastFrame()) };
  }

  /**
   * POST /publish?channel=NAME, the body is the message. Web pages may not publish: they send an Origin.
   * @param {import('node:http').IncomingMessage} request @param {URL} url @returns {Promise<Answer>}
   */
  async takeMessage(request, { searchParams }) {
    const channel = searchParams.get('channel');
    if (request.headers.origin !== undefined) throw new RequestError(403, 'web pages may not publish');
    if (!channel) throw new RequestError(400, 'no channel given: use /publish?channel=NAME');
    this.publish(channel, await readBody(request, MOST_MESSAGE_BYTES));
    return { status: 202, body: 'published\n' };
  }

  /** @param {import('./frame.js').Frame} frame @param {import('./frame.js').WorkerReading[]} workers */
  show(frame, workers) {
    this.frame = frame;
    const before = this.ticks;
    this.ticks = new Map();
    for (const { id, pid, ticks } of workers) {
      const all = before.get(pid)?.ticks ?? new Histogram('µs');
      this.ticks.set(pid, { id, ticks: all.merge(ticks.encode()) });
    }
  }

  /** Histograms since each worker started. Two answers tell what happened between them (`Histogram.less`). */
  allTicks() {
    return {
      workers: [...this.ticks].map(([pid, { id, ticks }]) => ({ id, pid, ticks: ticks.encode() })),
    };
  }

  note() {}

  close() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
