/*
 * The admin view: health, the last frame and the metrics over HTTP, on 127.0.0.1 only; and the way in for what is
 * published.
 */
import { createServer } from 'node:http';
import { codeOf, listenError } from '../lib/errors.js';
import { Histogram } from '../lib/histogram.js';
import { METRICS_TYPE, metricsText } from './metrics.js';

const HOST = '127.0.0.1';
/** The largest message that can be published. */
const MOST_MESSAGE_BYTES = 65_536;
/** Enough for its readers, too few to take the primary's descriptors. */
const MOST_CONNECTIONS = 64;

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} type
 * @property {string} body
 * @property {string} [allow]
 */

/** @param {number} status @param {string} body @returns {Answer} */
const text = (status, body) => ({ status, type: 'text/plain; charset=utf-8', body: `${body}\n` });

export class Admin {
  /**
   * @param {object} server
   * @param {() => boolean} server.isReady whether it takes streams
   * @param {(channel: string, message: string) => void} server.publish
   */
  constructor({ isReady, publish }) {
    this.isReady = isReady;
    this.publish = publish;
    /** @type {import('./frame.js').Frame | null} */
    this.frame = null;
    /** All ticks of each worker that lives. @type {Map<number, { id: number, ticks: Histogram }>} by pid */
    this.ticks = new Map();
    this.server = createServer((request, response) => {
      this.answer(request)
        .catch((error) => text(500, String(error)))
        .then(({ status, type, body, allow }) => {
          response.writeHead(status, {
            'Content-Type': type,
            'Content-Length': Buffer.byteLength(body),
            'Cache-Control': 'no-store',
            ...(allow ? { Allow: allow } : {}),
          });
          response.end(body);
        });
    });
  }

  /** @param {number} port 0 for a free one @returns {Promise<number>} the port */
  listen(port) {
    return new Promise((resolve, reject) => {
      this.server.once('error', (error) =>
        reject(codeOf(error) ? listenError(error, 'admin-port', port, HOST) : error),
      );
      this.server.maxConnections = MOST_CONNECTIONS;
      this.server.listen(port, HOST, () => {
        this.server.on('error', () => {}); // of an accept: the client tries again
        resolve(/** @type {import('node:net').AddressInfo} */ (this.server.address()).port);
      });
    });
  }

  /** @param {import('node:http').IncomingMessage} request @returns {Promise<Answer>} */
  async answer(request) {
    const path = (request.url ?? '').replace(/\?.*/s, '');
    const route = this.routes[path];
    if (!route) return text(404, `404 Not Found: there are ${Object.keys(this.routes).join(', ')}`);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const allow = path === '/publish' ? 'POST' : 'GET, HEAD';
    if (path === '/publish' ? request.method !== 'POST' : !isRead) {
      return { ...text(405, '405 Method Not Allowed'), allow };
    }
    return route(request);
  }

  /** @type {Record<string, (request: import('node:http').IncomingMessage) => Answer | Promise<Answer>>} */
  routes = {
    '/healthz': () => text(200, 'ok'),
    '/readyz': () => (this.isReady() ? text(200, 'ready') : text(503, 'not ready')),
    '/frame': () =>
      this.frame
        ? { status: 200, type: 'application/json', body: `${JSON.stringify(this.frame)}\n` }
        : text(503, 'no frame yet'),
    '/metrics': async () =>
      this.frame
        ? { status: 200, type: METRICS_TYPE, body: await metricsText(this.frame) }
        : text(503, 'no frame yet'),
    '/ticks': () => this.answerTicks(),
    '/publish': (request) => this.takeMessage(request),
  };

  /**
   * POST /publish?channel=NAME, the body is the message. The pages of a browser may not: they send an Origin.
   * @param {import('node:http').IncomingMessage} request @returns {Promise<Answer>}
   */
  async takeMessage(request) {
    const channel = new URL(request.url ?? '', 'http://localhost').searchParams.get('channel');
    if (request.headers.origin !== undefined) return text(403, '403 Forbidden: not from a page of a browser');
    if (!channel) return text(400, '400 Bad Request: name a channel, as in /publish?channel=news');
    const chunks = [];
    let bytes = 0;
    for await (const chunk of request) {
      bytes += chunk.length;
      if (bytes <= MOST_MESSAGE_BYTES) chunks.push(chunk);
    }
    if (bytes > MOST_MESSAGE_BYTES) {
      return text(413, `413 Content Too Large: ${bytes} bytes; a message has at most ${MOST_MESSAGE_BYTES}`);
    }
    this.publish(channel, Buffer.concat(chunks).toString());
    return text(202, 'published');
  }

  /** @param {import('./frame.js').Frame} frame @param {import('./frame.js').WorkerReading[]} workers */
  show(frame, workers) {
    this.frame = frame;
    const before = this.ticks;
    this.ticks = new Map();
    for (const { id, pid, ticks } of workers) {
      const all = before.get(pid)?.ticks ?? new Histogram();
      this.ticks.set(pid, { id, ticks: all.merge(ticks.encode()) });
    }
  }

  /** Histograms since each worker began: what lies between two answers has percentiles of its own. */
  answerTicks() {
    const workers = [...this.ticks].map(([pid, { id, ticks }]) => ({ id, pid, ticks: ticks.encode() }));
    return { status: 200, type: 'application/json', body: `${JSON.stringify({ workers })}\n` };
  }

  note() {}

  close() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
