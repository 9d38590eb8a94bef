/*
 * The most recent publications, bounded in bytes, so that clients that reconnect are served without asking the broker. It
 * knows where the publications of a topic are; those of a pattern are found once and then remembered.
 */

/** What a publication takes besides its texts, roughly. */
const OVERHEAD_BYTES = 400;
/** Patterns whose publications are remembered. */
const MOST_PATTERNS = 256;
/** The front of the list is given back when it is at least this long, and half of the list. */
const SLACK = 1024;
/** @type {readonly number[]} */
const NONE = [];

/** @typedef {import('../../broker/index.js').Publication} Publication */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('./events.js').Script} Script */
/** @typedef {{ publication: Publication, bytes: number, event: string | undefined, line: string | undefined }} Entry the last two are made when they are first needed */
/** @typedef {{ through: number, sequences: number[] }} Found publications about a pattern's topics, up to a sequence */

/** Other selectors need no search. @type {Found} */
const KNOWN = Object.freeze({ through: Number.POSITIVE_INFINITY, sequences: [] });

export class Window {
  /**
   * @param {object} options
   * @param {number} options.mostBytes
   * @param {number} options.last sequence of the last publication before the first one here
   * @param {(publication: Publication) => string} options.idOf
   */
  constructor({ mostBytes, last, idOf }) {
    this.mostBytes = mostBytes;
    this.idOf = idOf;
    this.bytes = 0;
    /** @type {Entry[]} those before `start` are gone */
    this.entries = [];
    this.start = 0;
    /** Sequence of the last publication. */
    this.last = last;
    /** Ascending sequences of each topic. @type {Map<string, number[]>} */
    this.byTopic = new Map();
    /** Sequences of ids that publishers chose; of the first publication here, if several have the same. @type {Map<string, number>} */
    this.byId = new Map();
    /** By the key of a selector, least recently used first. @type {Map<string, Found>} */
    this.patterns = new Map();
  }

  /** @returns {number} sequence of the oldest publication; `last + 1` if there is none */
  get first() {
    return this.last - (this.entries.length - this.start) + 1;
  }

  /** @param {Publication} publication the next in the order */
  push(publication) {
    const { id, data, topics, sequence } = publication;
    let characters = data.length;
    for (const topic of topics) characters += topic.length;
    const bytes = OVERHEAD_BYTES + 2 * characters;
    this.entries.push({ publication, bytes, event: undefined, line: undefined });
    this.last = sequence;
    this.bytes += bytes;
    if (id !== undefined && !this.byId.has(id)) this.byId.set(id, sequence);
    for (const topic of eachOnce(topics)) {
      const sequences = this.byTopic.get(topic);
      if (sequences) sequences.push(sequence);
      else this.byTopic.set(topic, [sequence]);
    }
    while (this.bytes > this.mostBytes) this.shift();
  }

  /** @param {readonly Publication[]} older that end just before the first one here */
  prepend(older) {
    const newer = this.entries.slice(this.start).map(({ publication }) => publication);
    this.entries = [];
    this.start = 0;
    this.bytes = 0;
    for (const found of this.patterns.values()) Object.assign(found, { through: 0, sequences: [] }); // some are in use
    for (const map of [this.byTopic, this.byId, this.patterns]) map.clear();
    for (const publication of [...older, ...newer]) this.push(publication);
  }

  /** Drops the oldest. */
  shift() {
    const { publication, bytes } = this.entries[this.start];
    const { id, topics, sequence } = publication;
    this.entries[this.start] = /** @type {Entry} */ (/** @type {unknown} */ (undefined));
    this.start++;
    this.bytes -= bytes;
    if (id !== undefined && this.byId.get(id) === sequence) this.byId.delete(id);
    for (const topic of eachOnce(topics)) this.forget(topic, sequence);
    if (this.start >= SLACK && this.start * 2 >= this.entries.length) {
      this.entries = this.entries.slice(this.start);
      this.start = 0;
    }
  }

  /** @param {string} topic @param {number} sequence of its oldest publication */
  forget(topic, sequence) {
    const sequences = this.byTopic.get(topic);
    if (!sequences) return;
    if (sequences[sequences.length - 1] <= sequence) {
      this.byTopic.delete(topic);
      return;
    }
    this.trim(sequences);
  }

  /** Drops what is gone. Shifting each time would cost the square of a busy topic's length. @param {number[]} sequences ascending */
  trim(sequences) {
    const gone = countThrough(sequences, this.first - 1);
    if (gone >= SLACK || gone * 2 >= sequences.length) sequences.splice(0, gone);
  }

  /** @param {number} sequence @returns {Entry} */
  at(sequence) {
    return this.entries[this.start + sequence - this.first];
  }

  /** @param {number} sequence @param {Script} script @returns {string} the publication */
  textAt(sequence, script) {
    const entry = this.at(sequence);
    const known = entry[script.name];
    if (known !== undefined) return known;
    const text = this.textOf(entry.publication, script);
    entry[script.name] = text;
    return text;
  }

  /** @param {Publication} publication @param {Script} script @returns {string} */
  textOf(publication, script) {
    return script.textOf(publication, this.idOf(publication));
  }

  /**
   * What is known about a selector. Asking for it once more makes it the last to be forgotten.
   * @param {Selector} selector
   * @returns {Found}
   */
  foundFor({ kind, key }) {
    if (kind === 'exact' || kind === 'all') return KNOWN;
    const found = this.patterns.get(key) ?? { through: 0, sequences: [] };
    this.patterns.delete(key);
    this.patterns.set(key, found);
    if (this.patterns.size > MOST_PATTERNS) this.patterns.delete(this.patterns.keys().next().value ?? '');
    return found;
  }

  /** @param {Found} found @returns {number} how many publications have not been compared with its selector */
  missing({ through }) {
    return Math.max(0, this.last - Math.max(through, this.first - 1));
  }

  /**
   * Compares publications that were not compared before.
   * @param {Found} found @param {Selector} selector @param {number} most
   */
  extend(found, selector, most) {
    if (this.missing(found) === 0) return;
    const { sequences } = found; // added to in place: a copy for each step would cost the square of their number
    this.trim(sequences);
    const from = Math.max(found.through, this.first - 1);
    const through = Math.min(this.last, from + most);
    for (let sequence = from + 1; sequence <= through; sequence++)
      if (this.at(sequence).publication.topics.some((topic) => selector.matches(topic)))
        sequences.push(sequence);
    found.through = through;
  }

  /**
   * @param {Found} found @param {Selector} selector
   * @param {number} after not before `first - 1`
   * @returns {readonly number[]} sequences of the publications about the selector's topics, ascending
   */
  sequencesOf(found, selector, after) {
    const { kind, value } = selector;
    if (kind === 'all') return range(after, this.last);
    if (kind === 'exact') return following(this.byTopic.get(value) ?? NONE, after);
    this.extend(found, selector, Number.POSITIVE_INFINITY);
    return following(found.sequences, after);
  }
}

/** @param {readonly number[]} sequences ascending @param {number} after @returns {readonly number[]} those that are greater */
function following(sequences, after) {
  return sequences.slice(countThrough(sequences, after));
}

/** @param {readonly string[]} topics @returns {Iterable<string>} */
function eachOnce(topics) {
  return topics.length > 1 ? new Set(topics) : topics;
}

/** @param {number} after @param {number} last @returns {number[]} after + 1 to last */
function range(after, last) {
  return Array.from({ length: Math.max(0, last - after) }, (_, i) => after + 1 + i);
}

/** @param {readonly number[]} sequences ascending @param {number} sequence @returns {number} how many are not greater */
function countThrough(sequences, sequence) {
  let [low, high] = [0, sequences.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sequences[middle] <= sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}
