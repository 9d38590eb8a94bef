/*
 * Everything in the hub that is about one order of publications: what it has heard of it, its cursors, and the streams that are
 * being opened in it. When the order begins anew, or has a gap, this one is over, and another takes its place (core.js).
 */
import { Cursors } from './cursor.js';
import { Feed } from './feed.js';
import { Latest } from './latest.js';
import { Openings } from './openings.js';
import { Recovery } from './recovery.js';
import { Window } from './window.js';

/** Publications from before its beginning that are kept at hand. */
const MOST_RECENT = 10_000;

/** @typedef {import('../../broker/index.js').Publication} Publication */

export class Order {
  /**
   * @param {object} parts
   * @param {import('./core.js').HoldLike} parts.hold
   * @param {import('../../broker/index.js').Broker} parts.broker
   * @param {import('./audience.js').Audience} parts.audience
   * @param {(topic: string) => boolean} parts.isCached whether new subscribers get the last publication of a topic
   * @param {number} parts.windowBytes of publications that are kept at hand
   * @param {number} parts.mostReplayBytes above it, a client gets a replay in parts
   * @param {import('../../lib/hubcounters.js').HubCounters} parts.counts
   * @param {(error: unknown) => void} parts.onError
   */
  constructor({ hold, broker, audience, isCached, windowBytes, mostReplayBytes, counts, onError }) {
    this.broker = broker;
    this.cursors = new Cursors(broker);
    this.latest = new Latest(isCached);
    const idOf = (/** @type {Publication} */ { id, sequence }) => id ?? this.cursors.of(sequence);
    this.window = new Window({ mostBytes: windowBytes, last: broker.last, idOf });
    const { window, latest, cursors } = this;
    this.recovery = new Recovery({ broker, window, latest, cursors, mostBytes: mostReplayBytes });
    this.openings = new Openings(this.recovery, counts);
    this.feed = new Feed({ hold, audience, window, latest, cursors, onError });
    void hold.publish([], null, { cursor: cursors.of(broker.last) });
  }

  /** Whether another one has taken its place. */
  get isOver() {
    return this.recovery.isOver;
  }

  /** @returns {string} the cursor of now */
  get cursor() {
    return this.cursors.of(this.window.last);
  }

  /** Learns what was published before: recent publications, for clients that reconnect, and the last ones of cached topics. */
  async learn() {
    for (const publication of await this.broker.latest())
      if (publication.sequence <= this.window.last) this.latest.add(publication); // others are on their way
    const older = [];
    const { first } = this.window;
    for (let after = Math.max(this.broker.first - 1, first - 1 - MOST_RECENT); after < first - 1; ) {
      const page = await this.broker.read(after, first - 1 - after);
      if (page.length === 0 || (older.length > 0 && page[0].sequence !== after + 1)) return;
      for (const publication of page) if (publication.sequence < first) older.push(publication);
      after = page[page.length - 1].sequence;
    }
    // Those in between may have left the window again.
    if (older.length > 0 && this.window.first === first) this.window.prepend(older);
  }

  /** Nothing of it is published or replayed any more. */
  end() {
    this.recovery.isOver = true;
    this.feed.drop();
  }
}
