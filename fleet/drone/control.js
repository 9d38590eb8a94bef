/*
 * The control port of a drone: HTTP, open to this machine, and to other machines only with a token.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { limitConnections } from '../../lib/crowd.js';
import { codeOf, HoldfastError } from '../../lib/errors.js';
import { openPort } from '../../lib/port.js';
import { asJson, listenerOf, RequestError } from '../../lib/router.js';
import { isLoopback, Refusal } from './consent.js';

/** Connections. Idle ones give way to new ones. */
const MOST_CONNECTIONS = 64;
/** A request takes no longer to arrive, and an answer no longer to be asked for and read. */
const TIMEOUTS = { headersTimeout: 5000, requestTimeout: 5000, connectionsCheckingInterval: 1000 };
const IDLE_MS = 30_000;
/** Names under which this machine reaches itself. Any other name could be an attacker's that resolves to here. */
const LOCAL_HOST = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i;
/** Statuses of the errors that a person can fix. */
const STATUS_OF = new Map([
  ['BAD_PARAM', 400],
  ['BAD_CERTIFICATE', 400],
  ['BUSY', 503],
]);

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('../../lib/router.js').Route} Route */

/**
 * What is controlled: a drone.
 * @typedef {object} Controlled
 * @property {() => object} stats
 * @property {() => object} counts a part of the stats that costs less
 * @property {(changes: [string, string][]) => Promise<object>} set returns the new parameters
 * @property {() => Promise<void>} restart
 * @property {() => void} stop
 * @property {(line: string) => void} note gets what a caller must not know
 */

export class Control {
  /** @param {Controlled} drone @param {string} token '' for none */
  constructor(drone, token) {
    const options = {
      problem: asJson,
      statusOf: (/** @type {unknown} */ error) => STATUS_OF.get(codeOf(error)) ?? 500,
      check: (/** @type {IncomingMessage} */ request) => check(request, token),
    };
    this.token = token;
    const answer = listenerOf(routesOf(drone), options);
    this.server = createServer(TIMEOUTS, (request, response) => {
      response.setHeader('Connection', 'close'); // so that no idle connection takes up room
      answer(request, response);
    });
    this.server.timeout = IDLE_MS;
    limitConnections(this.server, MOST_CONNECTIONS);
  }

  /**
   * @param {string} address @param {number} port 0 for a free one
   * @returns {Promise<number>} the port
   * @throws {HoldfastError} NO_TOKEN if one is needed; the reason why it can't listen
   */
  async listen(address, port) {
    if (!isLoopback(address) && this.token === '') {
      throw new HoldfastError(
        'NO_TOKEN',
        `--listen ${address} is not a loopback address, so others could control this drone: set a token in HOLDFAST_TOKEN`,
      );
    }
    return openPort(this.server, { port, host: address, flag: 'listen-port' });
  }

  close() {
    this.server.close();
    this.server.closeIdleConnections();
  }
}

/** @param {Controlled} drone @returns {Route[]} */
function routesOf(drone) {
  const ok = (/** @type {object} */ body) => ({ status: 200, body });
  return [
    { methods: ['GET'], path: '/', handle: () => ok(drone.stats()) },
    { methods: ['GET'], path: '/counts', handle: () => ok({ counts: drone.counts() }) },
    {
      methods: ['POST'],
      path: '/set',
      handle: async (_, { searchParams }) => {
        if (searchParams.size === 0)
          throw new RequestError(400, 'no parameter given: use /set?n=1000&ramp=500');
        return ok({ params: await asked(drone, drone.set([...searchParams])) });
      },
    },
    {
      methods: ['POST'],
      path: '/restart',
      handle: async () => {
        await asked(drone, drone.restart());
        return ok({ restarted: true });
      },
    },
    {
      methods: ['POST'],
      path: '/stop',
      handle: () => {
        setImmediate(drone.stop);
        return ok({ stopped: true });
      },
    },
  ];
}

/**
 * The caller gets the same answer for every kind of refusal; the reason goes to the drone's own output.
 * @template T @param {Controlled} drone @param {Promise<T>} change @returns {Promise<T>} @throws {RequestError} 403
 */
async function asked(drone, change) {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    drone.note(error.message);
    throw new RequestError(403, error.answer);
  }
}

/**
 * Accepts requests of programs, not of web pages: without a token those from this machine, with a token all that have it.
 * A page of a name that was made to resolve to here doesn't have the token, so the name matters only without one.
 * @param {IncomingMessage} request @param {string} token @throws {RequestError} 401, 403
 */
function check({ headers }, token) {
  // Pages of this machine are 'same-site' on any port; 'none' is a person who typed the address.
  const { origin, 'sec-fetch-site': site = 'none' } = headers;
  if (origin !== undefined || site !== 'none')
    throw new RequestError(403, 'requests from web pages are refused');
  if (token === '') {
    if (LOCAL_HOST.test(headers.host ?? '')) return;
    throw new RequestError(
      403,
      `the Host header is '${headers.host ?? ''}': expected localhost or its address`,
    );
  }
  if (isSame(headers.authorization ?? '', `Bearer ${token}`)) return;
  throw new RequestError(401, 'the token is missing or wrong: expected Authorization: Bearer TOKEN', {
    'WWW-Authenticate': 'Bearer',
  });
}

/** In a time that reveals nothing about either. @param {string} one @param {string} other */
function isSame(one, other) {
  const hashOf = (/** @type {string} */ text) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hashOf(one), hashOf(other));
}
