/*
 * The seam between a worker and the transport that keeps its streams open.
 */
import { HoldfastError } from '../lib/errors.js';
import { MOST_SHARDS } from './options.js';

/**
 * What a worker passes to a transport: the options of a `Hold`, and others that are ignored.
 * @typedef {{ policy: import('./policy.js').Policy } & Omit<import('./options.js').HoldOptions, 'policy'>} TransportOptions
 */

/**
 * The contract. A transport accepts connections, reads request heads, does what the policy decides, pings every stream once
 * per interval, closes streams whose clients fall behind, and counts all of it.
 * @typedef {object} Transport
 * @property {import('./holder.js').StreamHolder['listen']} listen resolves to the port; host '' means all addresses
 * @property {import('./holder.js').StreamHolder['setSecureContext']} setSecureContext
 * @property {import('./holder.js').StreamHolder['publish']} publish
 * @property {import('./holder.js').StreamHolder['send']} send
 * @property {import('./holder.js').StreamHolder['write']} write
 * @property {import('./holder.js').StreamHolder['subscribe']} subscribe
 * @property {import('./holder.js').StreamHolder['unsubscribe']} unsubscribe
 * @property {import('./holder.js').StreamHolder['label']} label
 * @property {import('./holder.js').StreamHolder['end']} end
 * @property {import('./holder.js').StreamHolder['endChannel']} endChannel
 * @property {import('./holder.js').StreamHolder['endLabelled']} endLabelled
 * @property {import('./holder.js').StreamHolder['endUpdates']} endUpdates
 * @property {import('./holder.js').StreamHolder['adopt']} adopt
 * @property {import('./holder.js').StreamHolder['upgrade']} upgrade
 * @property {import('./handover.js').Handover | null} handover null if this transport can't hand its streams over
 * @property {import('./holder.js').StreamHolder['onStreamClose']} onStreamClose
 * @property {import('./holder.js').StreamHolder['onStreamMessage']} onStreamMessage
 * @property {import('./holder.js').StreamHolder['reply']} reply
 * @property {import('./holder.js').StreamHolder['countChannels']} countChannels
 * @property {(options?: { reset?: boolean }) => import('../lib/counters.js').TransportCounters} counters since the
 *   start; histograms since the last reset
 * @property {(periodMs: number) => Promise<void>} close stops accepting, closes the streams evenly over the period, and
 *   resolves when the last connection is gone
 */

/**
 * A port that no other server can take until it is released.
 * @typedef {{ readonly port: number, release: () => void }} PortClaim
 *
 * @typedef {object} TransportModule
 * @property {(options: TransportOptions) => Transport} create
 * @property {(port: number, host: string) => Promise<PortClaim>} claim
 * @property {(port: number, host: string) => Promise<PortClaim>} [join] shares the claim of another process; only hold
 */

/** @type {Record<string, () => Promise<TransportModule>>} */
const TRANSPORTS = {
  http: () => import('./http.js'),
  hold: () => import('./native.js'),
};

/**
 * @typedef {object} Choice
 * @property {'http' | 'hold'} name of an available transport
 * @property {number} mostShards the most shards (descriptor tables) of one worker
 * @property {string} note what is not ideal and why; '' if nothing
 */

/**
 * @param {'auto' | 'http' | 'hold'} wish auto means hold if the native core is available, otherwise http
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
        note: `native core unavailable (${problem}): using the http transport`,
      };
    }
    throw new HoldfastError(
      'NO_TRANSPORT',
      `--transport hold needs the native core, which is unavailable: ${problem}; use --transport http or auto`,
    );
  }
  if (process.env.HOLDFAST_UNSHARE !== 'off' && native.canUnshare()) {
    return { name: 'hold', mostShards: MOST_SHARDS, note: '' };
  }
  const note =
    "threads can't have their own descriptor tables here (unshare is refused): one shard per worker";
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

/**
 * Claims the port that the workers of this process will listen on, so that two servers can't both take it.
 * @param {string} name from `chooseTransport`
 * @param {number} port 0 takes a free one @param {string} host '' for every address of the machine
 * @returns {Promise<PortClaim>}
 * @throws {NodeJS.ErrnoException} EADDRINUSE, or why the address can't be used
 */
export async function claimPort(name, port, host) {
  const { claim } = await TRANSPORTS[name]();
  return claim(port, host);
}

/**
 * Shares the claim of a server from which this one takes over.
 * @param {string} name from `chooseTransport`
 * @param {number} port @param {string} host '' for every address of the machine
 * @returns {Promise<PortClaim>}
 * @throws {NodeJS.ErrnoException} EADDRINUSE, or why the address can't be used
 */
export async function joinPort(name, port, host) {
  const { claim, join = claim } = await TRANSPORTS[name]();
  return join(port, host);
}
