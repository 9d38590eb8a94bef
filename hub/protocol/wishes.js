/*
 * What requests for streams ask for, by their targets. Many clients send the same target, each with a token or a cursor of its own.
 */
import { BoundedMap } from '../../lib/boundedmap.js';
import { wantedBy } from './protocol.js';

/** Targets that are kept. Most clients that come once in a storm are not: they would only make work for the garbage collector. */
const MOST_KEPT = 1024;
/** Longer ones are not worth their memory. */
const MOST_CHARS = 512;
/** The parameter of 0.x for a token, of which nothing is kept. */
const TOKEN = 'authorization';

/** @typedef {import('./subscription.js').Subscription} Wish */

export class Wishes {
  /** @param {import('./subscription.js').Rules} rules */
  constructor(rules) {
    this.rules = rules;
    /** By target. @type {BoundedMap<string, Wish>} */
    this.known = new BoundedMap(MOST_KEPT);
  }

  /**
   * @param {import('./protocol.js').Request} request @param {readonly import('./query.js').Pair[]} [more] in the body of a QUERY
   * @returns {Wish}
   * @throws {import('../../lib/router.js').RequestError} 400
   */
  of(request, more) {
    if (more) return wantedBy(request, this.rules, more);
    return this.known.get(request.target) ?? this.find(request);
  }

  /** @param {import('./protocol.js').Request} request @returns {Wish} */
  find(request) {
    const wish = wantedBy(request, this.rules);
    const { target } = request;
    if (target.length <= MOST_CHARS && wish.pairs.every(([name]) => name !== TOKEN))
      this.known.set(target, wish);
    return wish;
  }
}
