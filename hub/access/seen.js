/*
 * Remembers hashes that came lately, in a table of fixed size in which new ones replace old ones. It may forget one early, and
 * confuse two of 2^48.
 */
const SLOTS = 65_536;

export class Seen {
  constructor() {
    /** 256 KiB, most of which the system provides when they are used. */
    this.tags = new Uint32Array(SLOTS);
  }

  /** @param {string} hash at least 6 characters, one per byte @returns {boolean} whether it came before; from now on it did */
  again(hash) {
    const slot = (hash.charCodeAt(0) << 8) | hash.charCodeAt(1);
    const tag =
      ((hash.charCodeAt(2) << 24) |
        (hash.charCodeAt(3) << 16) |
        (hash.charCodeAt(4) << 8) |
        hash.charCodeAt(5)) >>>
      0;
    if (this.tags[slot] === tag) return true;
    this.tags[slot] = tag;
    return false;
  }
}
