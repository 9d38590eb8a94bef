/*
 * Checks signatures. HS256 takes microseconds and is done at once; public keys take up to 100 µs, on the thread pool of libuv.
 *
 * The pool is shared with DNS and files, so only so many run at a time; the rest waits here. That many finish in one turn of the
 * event loop at most, so the number is a compromise: with 64, nothing else in the pool waits longer than a few milliseconds.
 */
import { timingSafeEqual, verify } from 'node:crypto';

const MOST_RUNNING = 64;
/** A queue is moved to its front when so many places are free there, and half of it. */
const MOST_FREE = 1024;

/** @typedef {import('./keys.js').Key} Key */

/** What `crypto.verify` calls the hash, and how the signature of ES256 is written. @type {Record<Key['algorithm'], { digest: string | null, dsaEncoding?: 'ieee-p1363' }>} */
const SCHEMES = {
  HS256: { digest: 'sha256' },
  RS256: { digest: 'sha256' },
  ES256: { digest: 'sha256', dsaEncoding: 'ieee-p1363' },
  EdDSA: { digest: null },
};

/** @param {Key} key for HS256 @param {string} signed @param {Buffer} signature @returns {boolean} in constant time */
export function matchesMac({ mac }, signed, signature) {
  const own = mac?.of(signed);
  return own?.length === signature.length && timingSafeEqual(own, signature);
}

export class Signatures {
  /** @param {number} [mostRunning] */
  constructor(mostRunning = MOST_RUNNING) {
    this.mostRunning = mostRunning;
    this.running = 0;
    /** Whatever begins the next ones, from `first` on. @type {((() => void) | undefined)[]} */
    this.waiting = [];
    this.first = 0;
  }

  /**
   * @param {Key} key a public one
   * @param {string} signed
   * @param {Buffer} signature
   * @returns {Promise<boolean>} never rejects
   */
  verify(key, signed, signature) {
    return new Promise((resolve) => {
      const begin = () => {
        this.running++;
        begun(key, Buffer.from(signed, 'latin1'), signature, (isValid) => {
          this.running--;
          this.next();
          resolve(isValid);
        });
      };
      if (this.running < this.mostRunning) begin();
      else this.waiting.push(begin);
    });
  }

  /** Begins the one that has waited longest. */
  next() {
    const begin = this.waiting[this.first];
    if (!begin) return;
    this.waiting[this.first++] = undefined;
    if (
      this.first === this.waiting.length ||
      (this.first > MOST_FREE && this.first * 2 > this.waiting.length)
    ) {
      this.waiting.splice(0, this.first);
      this.first = 0;
    }
    begin();
  }
}

/** @param {Key} key @param {Buffer} signed @param {Buffer} signature @param {(isValid: boolean) => void} done */
function begun({ algorithm, key }, signed, signature, done) {
  const { digest, dsaEncoding } = SCHEMES[algorithm];
  verify(digest, signed, { key, dsaEncoding }, signature, (error, isValid) => done(!error && isValid));
}
