/*
 * The seam between a worker and whatever keeps its streams open.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * @typedef {object} TransportOptions
 * @property {(head: import('./wire.js').Head) => import('./wire.js').Decision} decide what to do with a request
 * @property {number} capacity streams of one shard; past it 503
 * @property {number} connectionLimit connections of one shard; past it they are cut, or wait
 * @property {number} shards parts with a table of descriptors of their own; 1 where the transport has none
 * @property {number} seat where its shards stand among all of the machine, so that they don't wake together
 * @property {number} seats
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
 * @property {(channel: string, message: string) => void} publish writes a message to every stream that listens to
 *   the channel
 * @property {() => import('../primary/messages.js').TransportCounters} take the counters; empties the histograms
 * @property {(periodMs: number) => Promise<void>} drain stops accepting, closes the streams evenly over the
 *   period, and resolves when the last connection is gone
 */

/** @type {Record<string, () => Promise<{ create: (options: TransportOptions) => Transport }>>} */
const TRANSPORTS = {
  http: () => import('./http.js'),
  hold: () => import('./native.js'),
};

/** As many as a byte can count. */
const MOST_SHARDS = 255;

/**
 * @typedef {object} Choice
 * @property {'http' | 'hold'} name of a transport that is here
 * @property {number} mostShards tables of descriptors that one worker can have
 * @property {string} note what is not as it could be, and why; '' where all is well
 */

/**
 * @param {'auto' | 'http' | 'hold'} wish auto is hold where it is built, and http elsewhere
 * @returns {Promise<Choice>}
 * @throws {HoldfastError} NO_TRANSPORT
 */
export async function chooseTransport(wish) {
  if (wish === 'http') return { name: 'http', mostShards: 1, note: '' };
  const { native, problem } = await import('../native/index.js');
  if (!native) {
    if (wish === 'auto') {
      return {
        name: 'http',
        mostShards: 1,
        note: `the native core is not here (${problem}): the http transport serves`,
      };
    }
    throw new HoldfastError(
      'NO_TRANSPORT',
      `--transport hold is not here: ${problem}; give --transport http, or auto`,
    );
  }
  if (process.env.HOLDFAST_UNSHARE !== 'off' && native.canUnshare()) {
    return { name: 'hold', mostShards: MOST_SHARDS, note: '' };
  }
  const note =
    'threads get no table of descriptors of their own here (unshare is refused): one shard a worker';
  return { name: 'hold', mostShards: 1, note };
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
