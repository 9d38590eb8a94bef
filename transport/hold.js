/*
 * What `import { Hold } from 'holdfast'` gives; its types are in index.d.ts.
 */
import { native, problem } from '../native/index.js';
import { StreamHolder } from './holder.js';
import { warnOnce } from './warnings.js';

/** Many open streams: held by the native core where it is available, in JS elsewhere. */
export class Hold extends StreamHolder {
  /**
   * @param {import('./options.js').HoldOptions} [options]
   * @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION
   */
  constructor(options = {}) {
    super(options, native);
    if (!native)
      warnOnce({
        code: 'NO_NATIVE',
        message: `native core unavailable (${problem}): streams are held in JS`,
      });
  }
}
