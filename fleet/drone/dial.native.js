/*
 * Dials through the native core: streams are rows of a table in native threads, and nothing of them is in JS.
 */
import { descriptorLimit, OWN_DESCRIPTORS } from '../../lib/descriptors.js';
import { native, problem } from '../../native/index.js';
import { CAUSES } from './causes.js';
import { COUNTS, HISTOGRAMS } from './counters.js';

/** @typedef {import('./dial.js').Target} Target */
/** @typedef {import('./dial.js').Counters} Counters */
/** @typedef {import('./causes.js').Cause} Cause */

/** @returns {import('./dial.js').Dialer} */
export function create() {
  if (!native) throw new Error(`the native core is not available: ${problem}`);
  return new NativeDialer(
    new native.Dialer({
      connections: descriptorLimit() - OWN_DESCRIPTORS,
      unshare: process.env.HOLDFAST_UNSHARE !== 'off',
    }),
  );
}

class NativeDialer {
  /** @type {'native'} */
  name = 'native';

  /** @param {import('../../native/types.js').Dialer} core */
  constructor(core) {
    this.core = core;
    this.most = core.most;
    /** @type {import('./dial.js').Server[]} */
    this.servers = [];
    /** @type {Promise<void> | undefined} */
    this.stopping = undefined;
  }

  /** @param {Target} target */
  aim(target) {
    const { request, subscription, security, ...others } = target;
    const own = {
      ...(subscription && { subscription }),
      ...(security && { security: securityOf(security) }),
    };
    this.servers = target.servers;
    this.core.aim({ ...others, ...own, request: Buffer.from(request, 'latin1') });
  }

  /** @param {number} count */
  open(count) {
    this.core.open(count);
  }

  /** @param {number} count @param {boolean} [isCut] */
  close(count, isCut = false) {
    if (isCut) this.core.cut(count);
    else this.core.close(count);
  }

  /** @param {number} count */
  churn(count) {
    this.core.churn(count);
  }

  /** @param {number} from @param {string[]} tokens */
  setTokens(from, tokens) {
    this.core.setTokens(from, tokens);
  }

  /** @returns {Counters} */
  take() {
    return countersOf(this.core.take(), this.servers);
  }

  /** @returns {Promise<void>} */
  stop() {
    this.stopping ??= this.core.stop();
    return this.stopping;
  }
}

/** @param {import('./dial.js').Security} security */
function securityOf({ roots, resumes }) {
  return { resumes, ...(roots === null ? {} : { roots: Buffer.from(roots) }) };
}

/**
 * Adds the names to what the core counted.
 * @param {import('../../native/types.js').DialCounters} taken @param {{ name: string }[]} aimedAt its servers
 * @returns {Counters}
 */
export function countersOf({ counts, failed, lost, samples, servers, histograms }, aimedAt) {
  const named = [
    ...COUNTS.map(({ name }, i) => [name, counts[i]]),
    ...HISTOGRAMS.map(({ name, unit }, i) => [name, { unit, ...histograms[i] }]),
  ];
  return {
    .../** @type {Counters} */ (Object.fromEntries(named)),
    failed: byCause(failed),
    lost: byCause(lost),
    servers: servers.map((one, i) => ({ name: aimedAt[i].name, ...one })),
    samples: samples.map(({ cause, text }) => ({ cause: CAUSES[cause], text })),
  };
}

/** @param {ArrayLike<number>} counts in the order of the causes @returns {Record<Cause, number>} */
function byCause(counts) {
  const rows = CAUSES.map((cause, i) => [cause, counts[i]]);
  return /** @type {Record<Cause, number>} */ (Object.fromEntries(rows));
}
