/*
 * How a drone is steered and watched: HTTP, on this machine without more, elsewhere with a token.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { codeOf, HoldfastError, listenError, messageOf } from '../../lib/errors.js';
import { isLoopback } from './consent.js';

const MOST_CONNECTIONS = 64;
/** Names by which a page of this machine reaches it; another is a name that was pointed here. */
const LOCAL_HOST = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i;
/** Statuses of the errors that a person can mend. */
const STATUS_OF = new Map([
  ['BAD_PARAM', 400],
  ['NO_HOST', 400],
  ['NO_CONSENT', 403],
]);

/**
 * What is steered.
 * @typedef {object} Steered
 * @property {() => object} stats
 * @property {() => object} counts alone
 * @property {(changes: [string, string][]) => Promise<object>} set gives the parameters as they are then
 * @property {() => Promise<void>} restart
 * @property {() => void} stop
 */

/** @typedef {{ status: number, body: object, allow?: string }} Answer */

export class Control {
  /** @param {Steered} steered @param {string} token '' for none */
  constructor(steered, token) {
    this.steered = steered;
    this.token = token;
    this.server = createServer((request, response) => {
      this.answer(request)
        .catch((error) => ({
          status: STATUS_OF.get(codeOf(error)) ?? 500,
          body: { error: messageOf(error) },
        }))
        .then((answer) => send(response, answer));
    });
    this.server.maxConnections = MOST_CONNECTIONS;
  }

  /**
   * @param {string} address @param {number} port 0 for a free one
   * @returns {Promise<number>} the port
   * @throws {HoldfastError} NO_TOKEN where one is needed; what `listen` fails with
   */
  async listen(address, port) {
    if (!isLoopback(address) && this.token === '') {
      throw new HoldfastError(
        'NO_TOKEN',
        `--listen ${address} is no loopback address: others could steer this drone; give a token in HOLDFAST_TOKEN`,
      );
    }
    return new Promise((resolve, reject) => {
      this.server.once('error', (error) => reject(listenError(error, 'listen-port', port, address)));
      this.server.listen(port, address, () => {
        this.server.on('error', () => {}); // of an accept: the client tries again
        resolve(/** @type {import('node:net').AddressInfo} */ (this.server.address()).port);
      });
    });
  }

  /** @param {import('node:http').IncomingMessage} request @returns {Promise<Answer>} */
  async answer(request) {
    const refusal = this.refusalOf(request);
    if (refusal) return refusal;
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const route = this.routes[pathname];
    if (!route) return { status: 404, body: { error: `there are ${Object.keys(this.routes).join(', ')}` } };
    if (request.method !== route.method)
      return { status: 405, body: { error: `${pathname} takes ${route.method}` }, allow: route.method };
    return { status: 200, body: await route.act([...searchParams]) };
  }

  /** @param {import('node:http').IncomingMessage} request @returns {Answer | null} null where it may go on */
  refusalOf({ headers }) {
    if (headers.origin !== undefined) return forbidden('not from a page of a browser');
    if (this.token === '') return LOCAL_HOST.test(headers.host ?? '') ? null : forbidden('not by that name');
    return isSame(headers.authorization ?? '', `Bearer ${this.token}`)
      ? null
      : { status: 401, body: { error: 'it needs its token: Authorization: Bearer …' } };
  }

  /** @type {Record<string, { method: string, act: (query: [string, string][]) => object | Promise<object> }>} */
  routes = {
    '/': { method: 'GET', act: () => this.steered.stats() },
    '/counts': { method: 'GET', act: () => ({ counts: this.steered.counts() }) },
    '/set': { method: 'GET', act: async (query) => ({ params: await this.steered.set(query) }) },
    '/restart': {
      method: 'POST',
      act: async () => {
        await this.steered.restart();
        return { restarted: true };
      },
    },
    '/stop': {
      method: 'POST',
      act: () => {
        setImmediate(this.steered.stop);
        return { stopped: true };
      },
    },
  };

  close() {
    this.server.close();
    this.server.closeIdleConnections();
  }
}

/** @param {string} why @returns {Answer} */
function forbidden(why) {
  return { status: 403, body: { error: why } };
}

/** In a time that tells nothing of either. @param {string} one @param {string} other */
function isSame(one, other) {
  const hashOf = (/** @type {string} */ text) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hashOf(one), hashOf(other));
}

/** @param {import('node:http').ServerResponse} response @param {Answer} answer */
function send(response, { status, body, allow }) {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    Connection: 'close',
    ...(allow ? { Allow: allow } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
  });
  response.end(text);
}
