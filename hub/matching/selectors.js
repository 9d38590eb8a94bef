/*
 * What a subscriber asks for, and what a token grants: all topics, one topic, a URL pattern (draft-08), or a URI template (0.x).
 * Selectors are small and immutable. Equal patterns that are asked for again soon are the same object, and compiled once.
 */
import { addressOf } from './address.js';
import { UrlPattern } from './patterns.js';
import { matches } from './program.js';
import { Recent } from './recent.js';
import { compileTemplate } from './templates.js';
import { PatternError } from './tokens.js';
import { checkSelector } from './topics.js';

/**
 * @typedef {'exact' | 'urlpattern' | 'template'} SelectorKind
 * @typedef {object} Selector
 * @property {'all' | SelectorKind} kind
 * @property {string} value
 * @property {string} key unique among the selectors of a hub
 * @property {(topic: string) => boolean} matches
 */

/** A selector that is not valid. The message is for the body of a 400. */
export class SelectorError extends Error {}

/** Patterns and templates that were parsed lately. @type {Recent<Selector>} */
const recent = new Recent(4096);

/** @type {Selector} */
const ALL = Object.freeze({ kind: 'all', value: '*', key: '*', matches: () => true });

/** @implements {Selector} */
class ExactSelector {
  /** @param {string} value */
  constructor(value) {
    this.value = value;
  }

  get kind() {
    return /** @type {const} */ ('exact');
  }

  get key() {
    return `=${this.value}`;
  }

  /** @param {string} topic */
  matches(topic) {
    return topic === this.value;
  }
}

/** @implements {Selector} */
export class PatternSelector {
  /** @param {string} value @param {string} baseUrl */
  constructor(value, baseUrl) {
    this.value = value;
    this.baseUrl = baseUrl;
    this.pattern = new UrlPattern(value, baseUrl);
  }

  get kind() {
    return /** @type {const} */ ('urlpattern');
  }

  get key() {
    return `~${this.value}`;
  }

  /** @param {string} topic */
  matches(topic) {
    const url = addressOf(topic, this.baseUrl);
    return url !== null && this.pattern.matches(url);
  }
}

/** @implements {Selector} */
export class TemplateSelector {
  /** @param {string} value @param {import('./templates.js').Operation[]} program */
  constructor(value, program) {
    this.value = value;
    this.program = program;
  }

  get kind() {
    return /** @type {const} */ ('template');
  }

  get key() {
    return `%${this.value}`;
  }

  /** @param {string} topic */
  matches(topic) {
    return topic === this.value || matches(this.program, topic);
  }
}

/**
 * @param {SelectorKind} kind of a template that has no variables, or is not a valid template, an exact selector is made
 * @param {string} value `*` selects everything, whatever the kind
 * @param {string} baseUrl of the hub: relative patterns and topics resolve against it
 * @param {import('./topics.js').Limits} [limits]
 * @returns {Selector}
 * @throws {SelectorError}
 */
export function parseSelector(kind, value, baseUrl, limits) {
  if (value === '*') return ALL;
  const wrong = checkSelector(value, limits);
  if (wrong) throw new SelectorError(wrong);
  if (kind === 'exact') return new ExactSelector(value);
  const name = `${kind} ${baseUrl} ${value}`;
  const known = recent.get(name);
  if (known) return known;
  const selector = compiled(kind, value, baseUrl);
  recent.set(name, selector);
  return selector;
}

/** How keys begin. @type {Record<string, SelectorKind>} */
const KINDS = { '=': 'exact', '~': 'urlpattern', '%': 'template' };

/** @param {string} key of a selector @param {string} baseUrl @returns {Selector | null} it; null if it is none that we know */
export function selectorOfKey(key, baseUrl) {
  if (key === ALL.key) return ALL;
  const kind = KINDS[key[0]];
  if (!kind) return null;
  try {
    const selector = parseSelector(kind, key.slice(1), baseUrl);
    return selector.key === key ? selector : null;
  } catch (error) {
    if (error instanceof SelectorError) return null;
    throw error;
  }
}

/** @param {'urlpattern' | 'template'} kind @param {string} value @param {string} baseUrl @returns {Selector} */
function compiled(kind, value, baseUrl) {
  try {
    if (kind === 'urlpattern') return new PatternSelector(value, baseUrl);
    const program = compileTemplate(value);
    return program ? new TemplateSelector(value, program) : new ExactSelector(value);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new SelectorError(
      `not a valid ${kind === 'template' ? 'URI template' : 'URL pattern'}: ${error.message}`,
    );
  }
}
