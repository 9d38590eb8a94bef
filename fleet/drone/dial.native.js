/*
 * Dials through the native core: streams are rows of a table in threads of their own, and nothing of them is in JS.
 */
import { descriptorLimit } from '../../lib/descriptors.js';
import { native, problem } from '../../native/index.js';
import { CAUSES } from './causes.js';

/** Descriptors that a table has for other things than streams. */
const OWN_DESCRIPTORS = 64;

/** @typedef {import('./dial.js').Target} Target */
/** @typedef {import('./dial.js').Counters} Counters */
/** @typedef {import('./causes.js').Cause} Cause */

/** @returns {import('./dial.js').Dialer} */
export function create() {
  if (!native) throw new Error(`the native core is not here: ${problem}`);
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
    /** @type {Promise<void> | undefined} */
    this.stopping = undefined;
  }

  /** @param {Target} target */
  aim(target) {
    this.core.aim({ ...target, request: Buffer.from(target.request, 'latin1') });
  }

  /** @param {number} count */
  open(count) {
    this.core.open(count);
  }

  /** @param {number} count */
  close(count) {
    this.core.close(count);
  }

  /** @returns {Counters} */
  take() {
    const { failed, lost, samples, connectUs, firstByteUs, latenessUs, deliveryUs, ...counts } =
      this.core.take();
    return {
      ...counts,
      failed: byCause(failed),
      lost: byCause(lost),
      samples: samples.map(({ cause, text }) => ({ cause: CAUSES[cause], text })),
      connect: encoded(connectUs),
      firstByte: encoded(firstByteUs),
      lateness: encoded(latenessUs),
      delivery: encoded(deliveryUs),
    };
  }

  /** @returns {Promise<void>} */
  stop() {
    this.stopping ??= this.core.stop();
    return this.stopping;
  }
}

/** @param {number[]} counts in the order of the causes @returns {Record<Cause, number>} */
function byCause(counts) {
  const rows = CAUSES.map((cause, i) => [cause, counts[i]]);
  return /** @type {Record<Cause, number>} */ (Object.fromEntries(rows));
}

/** @param {import('../../native/types.js').Encoded} histogram @returns {Counters['connect']} */
function encoded({ count, sum, min, max, buckets }) {
  return { count, sumUs: sum, minUs: min, maxUs: max, buckets };
}
