/*
 * Who asked for a topic: items (streams, channels, grants), each under one or more selectors. What a publication costs depends on
 * what it matches, hardly on how many selectors there are.
 */
import { resolve } from './address.js';
import { Recent } from './recent.js';
import { PatternSelector, TemplateSelector } from './selectors.js';
import { stepsOfPattern, stepsOfTemplate, TopicWords, UrlWords } from './steps.js';
import { Trie } from './trie.js';

/** @typedef {import('./selectors.js').Selector} Selector */
/** Several items of one selector. A single item is stored as it is. @template T @extends {Set<T>} */
class Several extends Set {}
/** @template T @typedef {T | Several<T>} Items */

/** How many topics the index remembers the patterns of. */
const MOST_RECENT = 8192;

/** A pattern or template that is in use. @template T */
class Entry {
  /** @param {PatternSelector | TemplateSelector} selector @param {T} item */
  constructor(selector, item) {
    this.selector = selector;
    /** @type {Items<T>} */
    this.items = item;
  }

  steps() {
    const { selector } = this;
    return selector instanceof PatternSelector
      ? stepsOfPattern(selector.pattern)
      : stepsOfTemplate(selector.program);
  }
}

/** The entries of one kind of selector. @template T */
class Kind {
  /** By the value of the selector. @type {Map<string, Entry<T>>} */
  entries = new Map();
  /** @type {Trie<Entry<T>>} */
  trie = new Trie();

  /** @param {Entry<T>} entry */
  add(entry) {
    this.entries.set(entry.selector.value, entry);
    this.trie.add(entry);
  }

  /** @param {Entry<T>} entry */
  delete(entry) {
    this.entries.delete(entry.selector.value);
    this.trie.delete(entry);
  }
}

/** @template T */
export class SelectorIndex {
  /** Items that get all topics. @type {Several<T>} */
  #all = new Several();
  /** By topic. @type {Map<string, Items<T>>} */
  #exact = new Map();
  /** @type {Kind<T>} */
  #patterns = new Kind();
  /** @type {Kind<T>} */
  #templates = new Kind();
  /** The patterns and templates that match a topic, until there is another one. @type {Recent<readonly Entry<T>[]>} */
  #recent = new Recent(MOST_RECENT);
  #baseUrl = '';

  /** The number of distinct selectors. */
  get size() {
    const several = this.#patterns.entries.size + this.#templates.entries.size;
    return this.#exact.size + several + (this.#all.size > 0 ? 1 : 0);
  }

  /**
   * Nothing changes if the item is there already.
   * @param {Selector} selector all URL patterns have the same base URL
   * @param {T} item
   * @returns {boolean} whether the selector is new
   */
  add(selector, item) {
    const { size } = this;
    if (selector.kind === 'all') this.#all.add(item);
    else if (selector.kind === 'exact')
      this.#exact.set(selector.value, withItem(this.#exact.get(selector.value), item));
    else
      this.#addTo(this.#kindOf(selector), /** @type {PatternSelector | TemplateSelector} */ (selector), item);
    return this.size > size;
  }

  /**
   * Nothing changes if the item isn't there.
   * @param {Selector} selector or an equal one
   * @param {T} item
   * @returns {boolean} whether the selector is gone
   */
  delete(selector, item) {
    const { size } = this;
    if (selector.kind === 'all') this.#all.delete(item);
    else if (selector.kind === 'exact') {
      const items = withoutItem(this.#exact.get(selector.value), item);
      if (items === undefined) this.#exact.delete(selector.value);
      else this.#exact.set(selector.value, items);
    } else this.#deleteFrom(this.#kindOf(selector), selector.value, item);
    return this.size < size;
  }

  /** @param {readonly string[]} topics @returns {T[]} the items whose selectors match at least one of them, each once */
  matching(topics) {
    /** @type {Items<T>[]} */
    const found = this.#all.size > 0 ? [this.#all] : [];
    for (const topic of topics) {
      const exact = this.#exact.get(topic);
      if (exact !== undefined) found.push(exact);
      for (const { items } of this.#entriesOf(topic)) found.push(items);
    }
    if (found.length === 0) return [];
    if (found.length > 1) return distinct(found);
    return found[0] instanceof Several ? [...found[0]] : [found[0]];
  }

  /** @param {Selector} selector */
  #kindOf(selector) {
    return selector.kind === 'urlpattern' ? this.#patterns : this.#templates;
  }

  /** @param {Kind<T>} kind @param {PatternSelector | TemplateSelector} selector @param {T} item */
  #addTo(kind, selector, item) {
    const entry = kind.entries.get(selector.value);
    if (entry) {
      entry.items = withItem(entry.items, item);
      return;
    }
    if (selector instanceof PatternSelector) this.#checkBase(selector.baseUrl);
    kind.add(new Entry(selector, item));
    this.#recent.clear();
  }

  /** @param {Kind<T>} kind @param {string} value @param {T} item */
  #deleteFrom(kind, value, item) {
    const entry = kind.entries.get(value);
    if (!entry) return;
    const items = withoutItem(entry.items, item);
    if (items !== undefined) entry.items = items;
    else {
      kind.delete(entry);
      this.#recent.clear();
    }
  }

  /** A topic is resolved once for all patterns. @param {string} baseUrl */
  #checkBase(baseUrl) {
    this.#baseUrl ||= baseUrl;
    if (this.#baseUrl !== baseUrl)
      throw new Error(`the base URL of this index is ${this.#baseUrl}, not ${baseUrl}`);
  }

  /** @param {string} topic @returns {readonly Entry<T>[]} */
  #entriesOf(topic) {
    if (this.#patterns.trie.isEmpty && this.#templates.trie.isEmpty) return [];
    let entries = this.#recent.get(topic);
    if (!entries) {
      entries = [...this.#matchingPatterns(topic), ...this.#matchingTemplates(topic)];
      this.#recent.set(topic, entries);
    }
    return entries;
  }

  /** @param {string} topic */
  #matchingPatterns(topic) {
    const url = this.#patterns.trie.isEmpty ? null : resolve(topic, this.#baseUrl);
    if (!url) return [];
    const candidates = this.#patterns.trie.find(new UrlWords(url));
    return candidates.filter(
      ({ selector }) => selector instanceof PatternSelector && selector.pattern.matches(url),
    );
  }

  /** @param {string} topic */
  #matchingTemplates(topic) {
    if (this.#templates.trie.isEmpty) return [];
    return this.#templates.trie.find(new TopicWords(topic)).filter(({ selector }) => selector.matches(topic));
  }
}

/** @template T @param {Items<T> | undefined} items @param {T} item @returns {Items<T>} */
function withItem(items, item) {
  if (items === undefined || items === item) return item;
  return items instanceof Several ? items.add(item) : new Several([items, item]);
}

/** @template T @param {Items<T> | undefined} items @param {T} item @returns {Items<T> | undefined} undefined if none is left */
function withoutItem(items, item) {
  if (!(items instanceof Several)) return items === item ? undefined : items;
  items.delete(item);
  return items.size > 1 ? items : items.values().next().value;
}

/** @template T @param {Items<T>[]} found @returns {T[]} */
function distinct(found) {
  /** @type {Set<T>} */
  const items = new Set();
  for (const one of found) {
    if (one instanceof Several) for (const item of one) items.add(item);
    else items.add(one);
  }
  return [...items];
}
