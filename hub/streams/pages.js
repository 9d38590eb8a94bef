/*
 * Publications that are older than the window, read from the broker a page at a time. Reads begin at multiples of the page
 * size where possible, so that clients with different cursors share them.
 */

/** Publications of a page, unless they are so large that the broker returns fewer. */
const PAGE = 500;
/** Pages that are kept. */
const MOST_PAGES = 16;

/** @typedef {import('../../broker/index.js').Publication} Publication */
/** @typedef {readonly Publication[]} Page */

export class Pages {
  /** @param {import('../../broker/index.js').Broker} broker */
  constructor(broker) {
    this.broker = broker;
    /** By the sequence before the first, least recently used first. @type {Map<number, Promise<Page>>} */
    this.kept = new Map();
  }

  /**
   * @param {number} after a sequence
   * @returns {Promise<Page>} some of those that follow, in order; none if nothing follows. The first is not `after + 1` if that one is
   *   no longer stored
   */
  async read(after) {
    const page = await this.shared(after - (after % PAGE));
    const rest = page.filter(({ sequence }) => sequence > after);
    return rest.length > 0 ? rest : this.broker.read(after, PAGE);
  }

  /** @param {number} after @returns {Promise<Page>} */
  async shared(after) {
    const kept = this.kept.get(after) ?? this.broker.read(after, PAGE);
    this.kept.delete(after);
    this.kept.set(after, kept);
    if (this.kept.size > MOST_PAGES) this.kept.delete(this.kept.keys().next().value ?? 0);
    let page;
    try {
      page = await kept;
      return page;
    } finally {
      // One that failed, or that ends with the last publication, will be longer next time.
      if (!page || (page.at(-1)?.sequence ?? this.broker.last) >= this.broker.last) this.kept.delete(after);
    }
  }
}
