/*
 * The seam between a worker and whatever keeps its streams open.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * @typedef {object} TransportOptions
 * @property {(head: import('./wire.js').Head) => import('./wire.js').Decision} decide what to do with a request
 * @property {number} capacity streams; past it 503
 * @property {number} connectionLimit connections; past it they are cut
 * @property {number} pingIntervalMs
 * @property {boolean} nagle
 * @property {number} maxHeadBytes
 * @property {number} headTimeoutMs
 * @property {number} maxBacklogBytes
 */

/**
 * The contract. A transport accepts connections, reads heads, does as `decide` says, pings every stream it
 * holds once an interval, closes those that fall behind, and counts it all.
 * @typedef {object} Transport
 * @property {(port: number, host: string) => Promise<number>} listen resolves to the port; host '' is all addresses
 * @property {() => import('../lib/messages.js').TransportCounters} take the counters; empties the histograms
 * @property {(periodMs: number) => Promise<void>} drain stops accepting, closes the streams evenly over the
 *   period, and resolves when the last connection is gone
 */

/** @type {Record<string, () => Promise<{ create: (options: TransportOptions) => Transport }>>} */
const TRANSPORTS = {
  http: () => import('./http.js'),
};

/**
 * @param {'auto' | 'http' | 'hold'} wish auto is hold where it is built, and http elsewhere
 * @returns {string} the name of a transport that is here
 * @throws {HoldfastError} NO_TRANSPORT
 */
export function chooseTransport(wish) {
  if (wish === 'auto') return 'hold' in TRANSPORTS ? 'hold' : 'http';
  if (wish in TRANSPORTS) return wish;
  throw new HoldfastError(
    'NO_TRANSPORT',
    `--transport ${wish} is not built here: give --transport ${Object.keys(TRANSPORTS).join(' or ')}, or auto`,
  );
}

/**
 * @param {string} name from `chooseTransport`
 * @param {TransportOptions} options
 * @returns {Promise<Transport>}
 */
export async function createTransport(name, options) {
  const { create } = await TRANSPORTS[name]();
  return create(options);
}
