/*
 * What `import { Hold } from 'holdfast'` imports; its types are in index.d.ts.
 */
import { mistake, native, problem } from '../native/index.js';
import { StreamHolder } from './holder.js';
import { warnOnce } from './warnings.js';

/** Holds many open streams: in the native core if it is available, otherwise in JS. */
export class Hold extends StreamHolder {
  /**
   * @param {import('./options.js').HoldOptions} [options]
   * @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION
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
}
