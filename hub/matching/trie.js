/*
 * Finds the patterns that a topic may match, among very many. A pattern is a sequence of steps (steps.js), each of which says
 * something about one word of the topic: its host, its scheme, each segment of its path. The patterns are sorted by their steps
 * in a tree. Its leaves are lists of a few patterns, so most of them cost no more than a place in a list; a list that gets longer
 * becomes a branch.
 *
 * An entry is whatever has steps. `depth` is the number of steps that lead to a node.
 */
import { Affixes } from './affixes.js';

/**
 * @typedef {import('./steps.js').Step} Step
 * @typedef {import('./steps.js').Words} Words
 * @typedef {{ steps: () => Step[] }} Entry
 */
/** @template {Entry} E @typedef {Leaf<E> | Branch<E>} Node */

const MOST_IN_LEAF = 8;
/** The depth of a leaf that can't become a branch: nothing tells its entries apart. */
const LAST = Infinity;

/** @template {Entry} E */
class Leaf {
  /** @param {E} entry An array with one entry is much smaller than an empty one to which an entry is added. */
  constructor(entry) {
    /** @type {E[] | Set<E>} a set if there are many */
    this.entries = [entry];
  }

  /** @param {E} entry @param {Step[]} _steps @param {number} depth @returns {Node<E>} what replaces it */
  add(entry, _steps, depth) {
    if (this.entries instanceof Set) this.entries.add(entry);
    else if (this.entries.push(entry) > MOST_IN_LEAF) {
      if (depth !== LAST) return branchOf(this.entries, depth);
      this.entries = new Set(this.entries);
    }
    return this;
  }

  /** @param {E} entry @param {Step[]} _steps @param {number} _depth @returns {Node<E> | undefined} what is left of it */
  delete(entry, _steps, _depth) {
    if (this.entries instanceof Set)
      return this.entries.delete(entry) && this.entries.size === 0 ? undefined : this;
    const index = this.entries.indexOf(entry);
    if (index >= 0) this.entries.splice(index, 1);
    return this.entries.length > 0 ? this : undefined;
  }

  /** @param {Words} _words @param {number} _depth @param {E[]} into */
  find(_words, _depth, into) {
    for (const entry of this.entries) into.push(entry);
  }
}

/** Entries by their next step. @template {Entry} E */
class Branch {
  /** The word is given. @type {Map<string, Node<E>>} */
  words = new Map();
  /** How the word starts and ends is given. @type {Affixes<Node<E>> | null} */
  partial = null;
  /** How the word starts is given, and how the path ends. There is no further step. @type {Affixes<Node<E>> | null} */
  rests = null;
  /** There is no next step. @type {Node<E> | undefined} */
  here = undefined;

  /** @param {E} entry @param {Step[]} steps @param {number} depth @returns {Node<E>} */
  add(entry, steps, depth) {
    const step = steps[depth];
    const next = !step || step.isRest ? LAST : depth + 1;
    this.#change(step, (node) => node?.add(entry, steps, next) ?? new Leaf(entry));
    return this;
  }

  /** @param {E} entry @param {Step[]} steps @param {number} depth @returns {Node<E> | undefined} */
  delete(entry, steps, depth) {
    this.#change(steps[depth], (node) => node?.delete(entry, steps, depth + 1));
    return this.words.size === 0 && !this.partial && !this.rests && !this.here ? undefined : this;
  }

  /** @param {Words} words @param {number} depth @param {E[]} into */
  find(words, depth, into) {
    this.here?.find(words, depth, into);
    const word = words.at(depth);
    if (word === undefined) return;
    this.words.get(word)?.find(words, depth + 1, into);
    if (this.partial) for (const node of this.partial.find(word, word)) node.find(words, depth + 1, into);
    if (this.rests) for (const node of this.rests.find(word, words.path)) node.find(words, LAST, into);
  }

  /** @param {Step | undefined} step @param {(node: Node<E> | undefined) => Node<E> | undefined} change of the entries with this step */
  #change(step, change) {
    if (!step) this.here = change(this.here);
    else if (step.word !== null) set(this.words, step.word, change(this.words.get(step.word)));
    else if (step.isRest) this.rests = changed(this.rests, step, change);
    else this.partial = changed(this.partial, step, change);
  }
}

/** @template {Entry} E @param {Iterable<E>} entries @param {number} depth @returns {Branch<E>} */
function branchOf(entries, depth) {
  /** @type {Branch<E>} */
  const branch = new Branch();
  for (const entry of entries) branch.add(entry, entry.steps(), depth);
  return branch;
}

/** @template V @param {Map<string, V>} map @param {string} key @param {V | undefined} value  undefined deletes it */
function set(map, key, value) {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/**
 * @template V
 * @param {Affixes<V> | null} affixes
 * @param {Step} step
 * @param {(value: V | undefined) => V | undefined} change
 * @returns {Affixes<V> | null}
 */
function changed(affixes, { prefix, suffix }, change) {
  const all = affixes ?? new Affixes();
  all.set(prefix, suffix, change(all.get(prefix, suffix)));
  return all.size > 0 ? all : null;
}

/** @template {Entry} E */
export class Trie {
  /** @type {Node<E> | undefined} */
  #root = undefined;

  get isEmpty() {
    return this.#root === undefined;
  }

  /** @param {E} entry */
  add(entry) {
    this.#root = this.#root?.add(entry, entry.steps(), 0) ?? new Leaf(entry);
  }

  /** @param {E} entry */
  delete(entry) {
    this.#root = this.#root?.delete(entry, entry.steps(), 0);
  }

  /** @param {Words} words @returns {E[]} all that may match, and few others */
  find(words) {
    /** @type {E[]} */
    const found = [];
    this.#root?.find(words, 0, found);
    return found;
  }
}
