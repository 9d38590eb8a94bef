/*
 * What `import { Hold } from 'holdfast'` imports; its types are in index.d.ts.
 */
import { HoldfastError } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { mistake, native, problem } from '../native/index.js';
import { StreamHolder } from './holder.js';
import { takeOver } from './takeover.js';
import { warnOnce } from './warnings.js';

/**
 * `tls`: as for `listen`, before which the listening sockets come.
 * @typedef {import('./options.js').HoldOptions & { onAdopted?: import('./takeover.js').OnAdopted, tls?: import('./tls.js').TlsOptions }} TakeOverOptions
 */

/** Holds many open streams: in the native core if it is available, otherwise in JS. */
export class Hold extends StreamHolder {
  /**
   * @param {import('./options.js').HoldOptions} [options]
   * @throws {HoldfastError} BAD_OPTION
   */
  constructor(options = {}) {
    super(options, native);
    if (mistake) warnOnce({ code: 'UNKNOWN_SETTING', message: mistake });
    if (!native)
      warnOnce({
        code: 'NO_NATIVE',
        message: `native core unavailable (${problem}): streams are held in JS`,
      });
  }

  /**
   * Takes over the streams that another process offers (`handOver`), and its listening sockets. If there is none, this is a
   * new Hold without streams: so the first start and a deploy are the same code.
   * @param {string} path
   * @param {TakeOverOptions} [options]
   * @returns {Promise<Hold>} once it has all streams
   * @throws {HoldfastError} BAD_OPTION, BAD_ARGUMENT, NOT_NATIVE, HANDOVER: the streams are still where they were
   */
  static async takeOver(path, options = {}) {
    const { onAdopted, tls, ...own } = options;
    if (onAdopted !== undefined && typeof onAdopted !== 'function')
      throw new HoldfastError('BAD_OPTION', `onAdopted got ${shown(onAdopted)}: expected a function`);
    const hold = new Hold(own);
    try {
      await takeOver(hold, path, { onAdopted, tls });
      return hold;
    } catch (error) {
      await hold.close();
      throw error;
    }
  }
}
