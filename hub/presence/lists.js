/*
 * Lists of subscriptions, made a slice at a time: other callbacks run in between.
 */
import { Slices } from '../../lib/slices.js';
import { jsonOf, subscriptionsIn, topicOf } from './texts.js';

/** Lists that are made at the same time; streams that are looked at between two looks at the clock. */
const MOST_LISTS = 4;
const STEP = 200;
/** About how much of a list is passed on at once, and the longest list. */
const PART_LENGTH = 65_536;
const MOST_LIST_LENGTH = 67_108_864;

/** @typedef {import('./messages.js').Query} Query */
/** @typedef {import('./messages.js').Found} Found */
/** @typedef {{ owner: import('./table.js').Owner, id: number, text: string }} Stream */

export class Lists {
  /**
   * @param {object} options
   * @param {{ last: number }} options.broker
   * @param {string} options.path of the hub
   * @param {() => Iterable<Stream>} options.streams all that are open; they may change meanwhile
   */
  constructor({ broker, path, streams }) {
    this.broker = broker;
    this.path = path;
    this.streams = streams;
    this.slices = new Slices(MOST_LISTS);
  }

  /**
   * @param {Query} query
   * @param {(part: string) => void | Promise<void>} send gets JSON objects, separated by commas
   * @returns {Promise<Found>}
   */
  list(query, send) {
    return this.slices.run(() => this.collect(query, send));
  }

  /** @param {Query} query @param {(part: string) => void | Promise<void>} send @returns {Promise<Found>} */
  async collect(query, send) {
    const { subscriber, unless } = query;
    // Before the list is begun: whatever changes from now on comes after it.
    const sequence = this.broker.last;
    const isKnown = unless === '*' || unless.includes(sequence);
    if (isKnown && subscriber === '') return { sequence, count: 0, state: 'same' };
    let [looked, count, length, part] = [0, 0, 0, ''];
    for (const stream of this.streams()) {
      if (++looked % STEP === 0) await this.slices.pause();
      for (const item of this.itemsOf(stream, query)) part += count++ === 0 ? item : `,${item}`;
      if (part.length < PART_LENGTH) continue;
      length += part.length;
      if (length > MOST_LIST_LENGTH) return { sequence, count, state: 'long' };
      await send(part);
      part = '';
    }
    if (part !== '') await send(part);
    return { sequence, count, state: isKnown && count > 0 ? 'same' : 'whole' };
  }

  /** @param {Stream} stream @param {Query} query @returns {string[]} JSON of its subscriptions that belong on the list */
  itemsOf({ owner, id, text }, { dialect, keys, subscriber }) {
    // Most streams are not about it, and looking for the key is faster than reading the text.
    if (keys && !keys.some((key) => text.includes(key))) return [];
    const wanted = subscriptionsIn(text).filter(({ key }) => !keys || keys.includes(key));
    if (wanted.length === 0) return [];
    const own = owner.node.subscribers.of(owner.number, id);
    if (subscriber !== '' && subscriber !== own) return [];
    return wanted.map((one) => jsonOf(dialect, topicOf(dialect, this.path, one, own), one, own, true));
  }
}
