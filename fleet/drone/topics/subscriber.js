/*
 * What outlives the connection of a stream that subscribes to topics: its cursor, and its position in each topic. The native
 * dialer does the same (native/core/src/dial/subscriber.rs).
 */
import { Position } from './position.js';
import { ageMs, publicationIn } from './publication.js';
import { fill } from './template.js';

/** @typedef {import('../dial.js').Subscription} Subscription */
/** @typedef {Record<import('../counters.js').CounterName, number>} Counts */

/** @param {Subscription} subscription @param {number} place @returns {number} of the stream, in the whole fleet */
export function numberOf({ first, step }, place) {
  return first + step * place;
}

export class Subscriber {
  /** @param {Subscription} subscription @param {number} place */
  constructor(subscription, place) {
    this.subscription = subscription;
    this.place = place;
    /** The last event id, each character a byte. */
    this.cursor = '';
    /** When it was open again, with a cursor; 0 if it never was. */
    this.resumedMs = 0;
    this.wasOpen = false;
    const filling = { number: numberOf(subscription, place) };
    const topics = subscription.topics.map((topic) => Buffer.from(fill(topic, filling)).toString('latin1'));
    /** By topic. @type {Map<string, Position>} */
    this.positions = new Map(topics.map((topic) => [topic, new Position()]));
  }

  /** @param {string[]} tokens by place @returns {string} the request that opens it */
  request(tokens) {
    const { subscription, place, cursor } = this;
    const token = tokens[subscription.isTokenShared ? 0 : place];
    return fill(subscription.request, { number: numberOf(subscription, place), token, cursor });
  }

  /** It is open. @param {Counts} counts */
  welcome(counts) {
    if (this.cursor) {
      this.resumedMs = performance.now();
      counts.resumed++;
    } else if (this.wasOpen) {
      for (const position of this.positions.values()) position.forget();
      counts.restarted++;
    }
    this.wasOpen = true;
  }

  /** The server says that what follows may have a gap before it. @param {Counts} counts */
  expectGap(counts) {
    for (const position of this.positions.values()) position.expectGap();
    counts.gaps++;
  }

  /**
   * A block of events has arrived. Its id moves the cursor, its data is checked if it is ours.
   * @param {import('./block.js').Block} block @param {Counts} counts
   * @returns {number | null} how many ms ago it was sent, if that says something about delivery
   */
  note({ id, data }, counts) {
    if (id !== null) this.cursor = id;
    const publication = data === null ? null : publicationIn(data);
    if (!publication) return null;
    const position = this.positions.get(publication.topic);
    if (!position) counts.strayed++;
    if (!position || !count(position.check(publication.publisher, publication.number), counts)) return null;
    const age = ageMs(publication);
    if (this.resumedMs === 0 || age <= performance.now() - this.resumedMs) return age;
    counts.recovered++; // it was sent before the stream was open again
    return null;
  }
}

/** @param {import('./position.js').Verdict} verdict @param {Counts} counts @returns {boolean} whether it has arrived for the first time */
function count({ what, skipped }, counts) {
  if (what === 'repeated') counts.duplicated++;
  else if (what === 'next') counts.missed += skipped;
  else if (what === 'afterGap') counts.discarded += skipped;
  else counts.outOfOrder++;
  if (what === 'late') counts.missed--;
  const isNew = what !== 'repeated' && what !== 'outdated';
  if (isNew) counts.delivered++;
  return isNew;
}
