/*
 * The admin view: health, the last frame and the metrics over HTTP, on 127.0.0.1 only.
 */
import { createServer } from 'node:http';
import { codeOf, listenError } from '../lib/errors.js';
import { METRICS_TYPE, metricsText } from './metrics.js';

const HOST = '127.0.0.1';
/** Enough for its readers, too few to take the primary's descriptors. */
const MOST_CONNECTIONS = 64;

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} type
 * @property {string} body
 */

/** @param {number} status @param {string} body @returns {Answer} */
const text = (status, body) => ({ status, type: 'text/plain; charset=utf-8', body: `${body}\n` });

export class Admin {
  /** @param {() => boolean} isReady whether the server takes streams */
  constructor(isReady) {
    this.isReady = isReady;
    /** @type {import('./frame.js').Frame | null} */
    this.frame = null;
    this.server = createServer((request, response) => {
      this.answer(request.method ?? '', request.url ?? '')
        .catch((error) => text(500, String(error)))
        .then(({ status, type, body }) => {
          const allow = status === 405 ? { Allow: 'GET, HEAD' } : {};
          const length = Buffer.byteLength(body);
          response.writeHead(status, {
            'Content-Type': type,
            'Content-Length': length,
            'Cache-Control': 'no-store',
            ...allow,
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

  /** @param {string} method @param {string} url @returns {Promise<Answer>} */
  async answer(method, url) {
    const route = this.routes[url.replace(/\?.*/s, '')];
    if (!route) return text(404, `404 Not Found: there are ${Object.keys(this.routes).join(', ')}`);
    if (method !== 'GET' && method !== 'HEAD') return text(405, '405 Method Not Allowed');
    return route();
  }

  /** @type {Record<string, () => Answer | Promise<Answer>>} */
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
  };

  /** @param {import('./frame.js').Frame} frame */
  show(frame) {
    this.frame = frame;
  }

  note() {}

  close() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
