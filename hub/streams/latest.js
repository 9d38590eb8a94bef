/*
 * The last publication of each cached topic (--cache-topics): new subscribers get it first.
 */

/** The most topics; those that were published to longest ago go first. */
export const MOST_TOPICS = 100_000;

/** @typedef {import('../../broker/index.js').Publication} Publication */
/** @typedef {import('../matching/selectors.js').Selector} Selector */

export class Latest {
  /** @param {(topic: string) => boolean} isCached */
  constructor(isCached) {
    this.isCached = isCached;
    /** Least recently published first. @type {Map<string, Publication>} */
    this.byTopic = new Map();
  }

  /** @param {Publication} publication newer than those before */
  push(publication) {
    for (const topic of publication.topics) {
      if (!this.isCached(topic)) continue;
      this.byTopic.delete(topic);
      this.byTopic.set(topic, publication);
    }
    this.trim();
  }

  /** @param {Publication} publication read from the broker: newer ones may be known already */
  add(publication) {
    for (const topic of publication.topics) {
      const known = this.byTopic.get(topic);
      if (this.isCached(topic) && (!known || known.sequence < publication.sequence))
        this.byTopic.set(topic, publication);
    }
    this.trim();
  }

  trim() {
    for (const topic of this.byTopic.keys()) {
      if (this.byTopic.size <= MOST_TOPICS) return;
      this.byTopic.delete(topic);
    }
  }

  /** @param {readonly Selector[]} selectors @returns {number} topics that have to be looked at */
  costOf(selectors) {
    return selectors.every(({ kind }) => kind === 'exact') ? selectors.length : this.byTopic.size;
  }

  /** @param {readonly Selector[]} selectors @returns {Generator<string>} cached topics that they match */
  *topicsOf(selectors) {
    const patterns = selectors.filter(({ kind }) => kind !== 'exact');
    for (const { kind, value } of selectors) if (kind === 'exact' && this.byTopic.has(value)) yield value;
    if (patterns.length === 0) return;
    for (const topic of this.byTopic.keys())
      if (patterns.some((selector) => selector.matches(topic))) yield topic;
  }

  /** @returns {IterableIterator<string>} all cached topics */
  topics() {
    return this.byTopic.keys();
  }

  /** @param {Iterable<string>} topics @returns {Publication[]} in order, each once */
  of(topics) {
    const found = new Set();
    for (const topic of topics) found.add(this.byTopic.get(topic));
    found.delete(undefined);
    return [...found].sort((one, other) => one.sequence - other.sequence);
  }
}
