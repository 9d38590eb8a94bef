/*
 * The places of the plain dialer's streams, and what outlives their connections. A stream has the same place for as long as it
 * exists: the one that was left last is taken first, so a stream that is closed and opened again at once keeps its place.
 */
import { Visits } from './servers.js';
import { Subscriber } from './subscriber.js';

export class Subscribers {
  constructor() {
    this.places = 0;
    /** Places of streams that have ended. @type {number[]} */
    this.left = [];
    /** By place; none for a stream that doesn't subscribe. @type {(Subscriber | undefined)[]} */
    this.all = [];
    /** By place. @type {string[]} */
    this.tokens = [];
    this.visits = new Visits();
  }

  /** @returns {number} a place for a stream */
  take() {
    return this.left.pop() ?? this.places++;
  }

  /** @param {number} place of a stream that has ended */
  leave(place) {
    this.left.push(place);
  }

  /** @param {number} place of a stream that was closed for good: another one may get its number */
  forget(place) {
    this.all[place] = undefined;
    this.visits.forget(place);
  }

  /** @param {number} place @returns {Subscriber | undefined} */
  at(place) {
    return this.all[place];
  }

  /** @param {number} from @param {string[]} tokens */
  setTokens(from, tokens) {
    for (const [i, token] of tokens.entries()) this.tokens[from + i] = token;
  }

  /**
   * @param {import('../dial.js').Target} target @param {number} place of a stream that is about to be opened
   * @returns {string} the request for it
   */
  requestFor({ request, subscription }, place) {
    const before = this.all[place];
    const isSame = before?.subscription === subscription;
    const subscriber = subscription && (isSame ? before : new Subscriber(subscription, place));
    this.all[place] = subscriber ?? undefined;
    return subscriber ? subscriber.request(this.tokens) : request;
  }
}
