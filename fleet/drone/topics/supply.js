/*
 * Gives the dialer the tokens of its streams before they are opened.
 */
import { signerFor } from './subscription.js';
import { Tokens } from './tokens.js';

/** How long a step may take. Streams that have no token yet wait. */
const STEP_MS = 40;

export class TokenSupply {
  /** @param {import('../dial.js').Dialer} dialer */
  constructor(dialer) {
    this.dialer = dialer;
    /** @type {Tokens | null} */
    this.tokens = null;
    /** What they are made from. */
    this.origin = '';
  }

  /**
   * @param {import('../params.js').Params} params
   * @param {import('../dial.js').Subscription | null} subscription
   */
  use(params, subscription) {
    if (params.token) this.dialer.setTokens(0, [params.token]);
    const signer = signerFor(params);
    const origin = signer && subscription ? JSON.stringify([signer, subscription]) : '';
    if (origin === this.origin) return;
    this.origin = origin;
    this.tokens = signer && subscription ? new Tokens(signer, subscription) : null;
  }

  /** Makes tokens for so many streams, for a while. @param {number} nowMs @param {number} count */
  step(nowMs, count) {
    const endMs = performance.now() + STEP_MS;
    do {
      const some = this.tokens?.next(nowMs, count);
      if (!some) return;
      this.dialer.setTokens(some.from, some.tokens);
    } while (performance.now() < endMs);
  }

  /** @returns {number} how many streams have one */
  get ready() {
    return this.tokens?.ready ?? Number.POSITIVE_INFINITY;
  }
}
