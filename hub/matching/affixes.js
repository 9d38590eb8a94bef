/*
 * Values by the beginning and the end of a text. A text is looked up once for each combination of their lengths that occurs: there are
 * few in practice, and never more than values.
 */

/** Longer beginnings and ends are cut: what they would tell apart is told apart later. */
const MOST_CHARS = 32;

/** @typedef {{ prefix: number, suffix: number, count: number }} Shape  two lengths, and how many values have them */

/** @template V */
export class Affixes {
  /** @type {Map<string, V>} */
  #values = new Map();
  /** @type {Shape[]} */
  #shapes = [];

  get size() {
    return this.#values.size;
  }

  /** @param {string} prefix @param {string} suffix @returns {V | undefined} */
  get(prefix, suffix) {
    return this.#values.get(keyOf(start(prefix, MOST_CHARS), end(suffix, MOST_CHARS)));
  }

  /** @param {string} prefix @param {string} suffix @param {V | undefined} value  undefined deletes it */
  set(prefix, suffix, value) {
    const key = keyOf(start(prefix, MOST_CHARS), end(suffix, MOST_CHARS));
    const isKnown = this.#values.has(key);
    if (value === undefined) this.#values.delete(key);
    else this.#values.set(key, value);
    if (isKnown !== (value !== undefined)) this.#count(prefix, suffix, isKnown ? -1 : 1);
  }

  /** @param {string} prefix @param {string} suffix @param {1 | -1} change */
  #count(prefix, suffix, change) {
    const lengths = {
      prefix: Math.min(prefix.length, MOST_CHARS),
      suffix: Math.min(suffix.length, MOST_CHARS),
    };
    const index = this.#shapes.findIndex(
      (one) => one.prefix === lengths.prefix && one.suffix === lengths.suffix,
    );
    if (index < 0) this.#shapes.push({ ...lengths, count: 1 });
    else this.#shapes[index].count += change;
    if (this.#shapes[index]?.count === 0) this.#shapes.splice(index, 1);
  }

  /**
   * @param {string} word whose beginning counts
   * @param {string} path whose end counts
   * @returns {V[]} the values that fit
   */
  find(word, path) {
    const found = [];
    for (const { prefix, suffix } of this.#shapes) {
      if (prefix > word.length || suffix > path.length) continue;
      const value = this.#values.get(keyOf(start(word, prefix), end(path, suffix)));
      if (value !== undefined) found.push(value);
    }
    return found;
  }
}

/** @param {string} text @param {number} length */
const start = (text, length) => text.slice(0, length);

/** @param {string} text @param {number} length */
const end = (text, length) => text.slice(Math.max(text.length - length, 0));

/** A line break is in neither of them. @param {string} prefix @param {string} suffix */
const keyOf = (prefix, suffix) => `${prefix}\n${suffix}`;
