/*
 * A cache with a bound. It has two generations: what is looked up moves to the young one, and when that is full, the old one goes.
 */

/** Longer keys are not worth their memory. */
const MOST_CHARS = 512;

/** @template V */
export class Recent {
  /** @type {Map<string, V>} */
  #young = new Map();
  /** @type {Map<string, V>} */
  #old = new Map();

  /** @param {number} most keys, about */
  constructor(most) {
    this.mostYoung = most / 2;
  }

  /** @param {string} key @returns {V | undefined} */
  get(key) {
    const value = this.#young.get(key);
    if (value !== undefined || this.#old.size === 0) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** @param {string} key @param {V} value */
  set(key, value) {
    if (key.length > MOST_CHARS) return;
    if (this.#young.size >= this.mostYoung) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  clear() {
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
  }
}
