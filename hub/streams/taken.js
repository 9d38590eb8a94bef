/*
 * Streams that were handed over by another process: what this one keeps for each is rebuilt from its channels, its label and the address of
 * its client. What a channel doesn't say, because its name has only a hash of several grants, the other process tells before (`notes`).
 */
import { BoundedMap } from '../../lib/boundedmap.js';
import { keptIn } from './audience.js';

/** Places that are kept at hand: many streams have the same channels. */
const MOST_PLACES = 256;

/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {[session: string, grants: readonly string[]]} Note keys of the grants of a session, by its key */
/** @typedef {{ id: number, channels: readonly string[], subject: number, address: string }} Taken */

export class TakenStreams {
  /** @param {(key: string) => Selector} selectorOf throws if it is not valid */
  constructor(selectorOf) {
    this.selectorOf = selectorOf;
    /** @type {Map<string, readonly Selector[]>} by the key of a session */
    this.grants = new Map();
    /** @type {BoundedMap<string, Place | null>} by channels */
    this.places = new BoundedMap(MOST_PLACES);
  }

  /** @param {readonly Note[]} notes of the other process */
  learn(notes) {
    for (const [session, keys] of notes) {
      const grants = this.selectorsOf(keys);
      if (grants) this.grants.set(session, grants);
    }
    this.places.clear();
  }

  /** @param {readonly string[]} channels @returns {Place | null} null if it can't be known: the stream would miss publications */
  placeOf(channels) {
    const name = channels.join('\0');
    const known = this.places.get(name);
    if (known !== undefined) return known;
    const place = this.placeIn(channels);
    this.places.set(name, place);
    return place;
  }

  /** @param {readonly string[]} channels @returns {Place | null} */
  placeIn(channels) {
    /** @type {Place['uses'][number][]} */
    const uses = [];
    for (const channel of channels) {
      const kept = keptIn(channel);
      if (!kept) continue;
      const selectors = this.selectorsOf([kept.selector]);
      const grants = kept.session === '' ? [] : this.grantsOf(kept.session);
      if (!selectors || !grants) return null;
      uses.push({ key: channel, selector: selectors[0], grants });
    }
    return { selectors: [], session: null, channels, uses, listing: '' };
  }

  /** @param {string} session its key, which is that of its grant if there is only one @returns {readonly Selector[] | null} */
  grantsOf(session) {
    return this.grants.get(session) ?? this.selectorsOf([session]);
  }

  /** @param {readonly string[]} keys @returns {Selector[] | null} null if one is not valid, or not known to this version */
  selectorsOf(keys) {
    try {
      return keys.map((key) => this.selectorOf(key));
    } catch {
      return null;
    }
  }
}
