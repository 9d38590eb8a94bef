/*
 * What requests for streams ask for, by their targets. Many clients send the same target, each with a token or a cursor of its own.
 */
import { Recent } from '../matching/recent.js';
import { wantedBy } from './protocol.js';
import { cursorOf } from './subscription.js';

/** Targets that are kept. */
const MOST_KEPT = 1024;
/** The parameter of 0.x for a token, of which nothing is kept. */
const TOKEN = 'authorization';

/** @typedef {ReturnType<typeof wantedBy>} Wish */

export class Wishes {
  /** @param {import('./subscription.js').Rules} rules */
  constructor(rules) {
    this.rules = rules;
    /** Without the header Last-Event-ID, by target. @type {Recent<Wish>} */
    this.known = new Recent(MOST_KEPT);
  }

  /**
   * @param {import('./protocol.js').Request} request @param {readonly import('./query.js').Pair[]} [more] in the body of a QUERY
   * @returns {Wish}
   * @throws {import('../../lib/router.js').RequestError} 400
   */
  of(request, more) {
    const cursor = request.headers['last-event-id'];
    if (more) return withCursor(wantedBy(request, this.rules, more), cursor);
    return withCursor(this.known.get(request.target) ?? this.find(request), cursor);
  }

  /** @param {import('./protocol.js').Request} request @returns {Wish} */
  find(request) {
    const wish = wantedBy(request, this.rules);
    if (wish.pairs.every(([name]) => name !== TOKEN)) this.known.set(request.target, wish);
    return wish;
  }
}

/** @param {Wish} wish @param {string | undefined} header @returns {Wish} */
function withCursor(wish, header) {
  return header === undefined ? wish : { ...wish, cursor: cursorOf(wish.pairs, header) };
}
