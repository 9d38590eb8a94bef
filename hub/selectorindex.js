/*
 * Who asked for a topic: items (streams, channels, grants), each under one or more selectors.
 */

/** @typedef {import('./selectors.js').Selector} Selector */

/** @template T */
export class SelectorIndex {
  /** @type {Map<string, { selector: Selector, items: Set<T> }>} */
  #entries = new Map();

  /** The number of distinct selectors. */
  get size() {
    return this.#entries.size;
  }

  /** @param {Selector} selector @param {T} item */
  add(selector, item) {
    const entry = this.#entries.get(selector.key) ?? { selector, items: new Set() };
    this.#entries.set(selector.key, entry);
    entry.items.add(item);
  }

  /** @param {Selector} selector @param {T} item */
  delete(selector, item) {
    const entry = this.#entries.get(selector.key);
    if (entry?.items.delete(item) && entry.items.size === 0) this.#entries.delete(selector.key);
  }

  /** @param {readonly string[]} topics @returns {T[]} the items whose selectors match one of them, each once */
  matching(topics) {
    /** @type {Set<T>} */
    const found = new Set();
    for (const { selector, items } of this.#entries.values())
      if (topics.some((topic) => selector.matches(topic))) for (const item of items) found.add(item);
    return [...found];
  }
}
