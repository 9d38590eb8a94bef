/*
 * Streams that come from another process: what is kept for them here follows from the names of their channels. Most need nothing.
 */
import { grantsIn } from '../access/grants.js';
import { Recent } from '../matching/recent.js';
import { selectorOfKey } from '../matching/selectors.js';
import { ALL, GRANTED, OURS, PUBLIC } from './audience.js';

/** Channels of streams for which nothing is kept: those of exact topics. */
export const QUIET = [`${PUBLIC}=`, `${ALL}=`];
/** Many streams are on the same channels. */
const MOST_RECENT = 4096;
/** In names of lists of channels. */
const BETWEEN = '\u0002';

/** @typedef {import('./audience.js').Place} Place */
/** @typedef {Place['uses'][number]} Use */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {[sessionKey: string, grants: string[]]} Note the keys of the grants of a session whose own key is a hash */

/**
 * @typedef {object} Stream as the Hold reports it
 * @property {number} id here
 * @property {readonly string[]} channels
 * @property {number} subject label of its token's sub; 0 if it has none
 * @property {string} address '' if it is unknown
 * @property {string} [tag]
 */

export class TakenPlaces {
  /** @param {string} baseUrl of the hub */
  constructor(baseUrl) {
    this.baseUrl = baseUrl;
    /** By their channels. @type {Recent<Place>} */
    this.recent = new Recent(MOST_RECENT);
    /** Grants by the keys of sessions from which they can't be read. @type {Map<string, readonly Selector[]>} */
    this.learned = new Map();
  }

  /** @param {readonly Note[]} notes of the hubs whose streams come next, instead of those before */
  learn(notes) {
    this.learned.clear();
    for (const [key, grants] of notes) {
      const selectors = grants.map((one) => selectorOfKey(one, this.baseUrl));
      if (selectors.every((one) => one !== null)) this.learned.set(key, selectors);
    }
  }

  /**
   * @param {readonly string[]} channels of a stream
   * @returns {Place | null} where it is, without its selectors and its session, which nobody needs any more; null if that does not follow from its channels
   */
  of(channels) {
    const name = channels.join(BETWEEN);
    const known = this.recent.get(name);
    if (known) return known;
    const uses = channels.filter((one) => one.startsWith(OURS)).map((one) => this.useOf(one));
    if (uses.includes(null)) return null;
    const counted = uses.filter(
      (use) => use !== null && (use.selector.kind !== 'exact' || use.grants.length > 0),
    );
    const place = {
      selectors: [],
      session: null,
      channels,
      uses: /** @type {Use[]} */ (counted),
      listing: '',
    };
    this.recent.set(name, place);
    return place;
  }

  /** @param {string} channel @returns {Use | null} null if it can't be read */
  useOf(channel) {
    const isGranted = channel.startsWith(GRANTED);
    if (!isGranted && !channel.startsWith(PUBLIC) && !channel.startsWith(ALL)) return null;
    const text = channel.slice(GRANTED.length);
    const end = isGranted ? text.indexOf('\n') : text.length;
    if (end < 0) return null;
    const selector = selectorOfKey(text.slice(0, end), this.baseUrl);
    const grants = isGranted ? this.grantsOf(text.slice(end + 1)) : [];
    return selector && grants && { key: channel, selector, grants };
  }

  /** @param {string} key of a session @returns {readonly Selector[] | null} */
  grantsOf(key) {
    return this.learned.get(key) ?? grantsIn(key, this.baseUrl);
  }
}

/** @param {import('./audience.js').Audience} audience @returns {Note[]} what the hub that takes its streams can't read from their channels */
export function notesOf({ hashed }) {
  const grants = new Map([...hashed].map(([use, key]) => [key, use.grants]));
  return [...grants].map(([key, selectors]) => [key, selectors.map((one) => one.key)]);
}
