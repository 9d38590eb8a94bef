/*
 * Who gets what: the channels that a stream is on, and the channels that a publication goes to.
 *
 *     's' + selector   streams that get only public publications about it
 *     'a' + selector   streams whose grants cover the selector, so they get private publications about it too
 *     'g' + selector + grants   streams on 's' whose grants match other topics: they get a private publication if the selector matches
 *                               one of its topics and a grant matches one, which may be another (Mercure's alternate topics)
 *     'w'              streams that have no selectors: nothing is published here
 *
 * Exact topics need no state here, because the name of the channel follows from the topic. Patterns, `*` among them, and selectors
 * with grants of their own are counted while streams use them.
 */
import { cutOff, mergeTops } from '../../lib/tops.js';
import { isHashed } from '../access/grants.js';
import { SelectorIndex } from '../matching/selectorindex.js';

/** No channel of an application begins like this. */
export const OURS = '\u0001';
export const PUBLIC = `${OURS}s`;
export const ALL = `${OURS}a`;
export const GRANTED = `${OURS}g`;
/** WebSockets that have not asked for anything are here: streams without channels could not move to another process. */
const NOWHERE = `${OURS}w`;
const PRIVATE_PREFIXES = [ALL];
const PREFIXES = [ALL, PUBLIC];

/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('../access/grants.js').Session} Session */

/**
 * Something that is counted while streams use it.
 * @typedef {object} Use
 * @property {string} key its channel
 * @property {Selector} selector
 * @property {readonly Selector[]} grants none for a pattern
 * @property {number} count streams
 */

/**
 * Where a stream is; shared by streams that ask for the same with the same grants.
 * @typedef {object} Place
 * @property {readonly Selector[]} selectors
 * @property {Session | null} session
 * @property {readonly string[]} channels
 * @property {readonly Omit<Use, 'count'>[]} uses empty if there is nothing to count
 * @property {string} listing for presence; '' until it is needed
 */

export class Audience {
  constructor() {
    /** @type {Map<string, Use>} */
    this.uses = new Map();
    /** Patterns of streams that get only public publications about them, which cost private ones nothing. @type {SelectorIndex<Use>} */
    this.open = new SelectorIndex();
    /** Patterns of streams whose grants cover them. @type {SelectorIndex<Use>} */
    this.covered = new SelectorIndex();
    /** Selectors with grants of their own, by these grants. @type {SelectorIndex<Use>} */
    this.granted = new SelectorIndex();
    /** Those whose grants can't be read from their channel, with its key of the session. @type {Map<Use, string>} */
    this.hashed = new Map();
  }

  /** @param {readonly Selector[]} selectors @param {Session | null} session @returns {Place} */
  placeOf(selectors, session) {
    /** @type {string[]} */
    const channels = selectors.length === 0 ? [NOWHERE] : [];
    /** @type {Omit<Use, 'count'>[]} */
    const uses = [];
    for (const selector of selectors) {
      const { key, kind } = selector;
      const isCovered = session !== null && covers(session, selector);
      const channel = (isCovered ? ALL : PUBLIC) + key;
      channels.push(channel);
      if (kind !== 'exact') uses.push({ key: channel, selector, grants: [] });
      if (isCovered || session === null || session.subscribe.length === 0) continue;
      const own = `${GRANTED}${key}\n${session.key}`;
      channels.push(own);
      uses.push({ key: own, selector, grants: session.subscribe });
    }
    return { selectors, session, channels, uses, listing: '' };
  }

  /** A stream is there. @param {Place} place */
  enter({ uses }) {
    for (const { key, selector, grants } of uses) {
      const known = this.uses.get(key);
      if (known) {
        known.count++;
        continue;
      }
      const use = { key, selector, grants, count: 1 };
      this.uses.set(key, use);
      if (grants.length === 0) this.patternsLike(key).add(selector, use);
      for (const grant of grants) this.granted.add(grant, use);
      const sessionKey = key.slice(key.indexOf('\n') + 1);
      if (grants.length > 0 && isHashed(sessionKey)) this.hashed.set(use, sessionKey);
    }
  }

  /** It has ended. @param {Place} place */
  leave({ uses }) {
    for (const { key } of uses) {
      const use = this.uses.get(key);
      if (!use || --use.count > 0) continue;
      this.uses.delete(key);
      if (use.grants.length === 0) this.patternsLike(key).delete(use.selector, use);
      for (const grant of use.grants) this.granted.delete(grant, use);
      this.hashed.delete(use);
    }
  }

  /** @param {string} channel of a pattern @returns {SelectorIndex<Use>} where it is */
  patternsLike(channel) {
    return channel.startsWith(ALL) ? this.covered : this.open;
  }

  /** @param {{ topics: readonly string[], private: boolean }} publication @returns {string[]} channels it goes to */
  channelsOf({ topics, private: isPrivate }) {
    /** @type {string[]} */
    const channels = [];
    const prefixes = isPrivate ? PRIVATE_PREFIXES : PREFIXES;
    for (const prefix of prefixes) for (const topic of topics) channels.push(`${prefix}=${topic}`);
    if (this.covered.size > 0) for (const { key } of this.covered.matching(topics)) channels.push(key);
    if (!isPrivate && this.open.size > 0)
      for (const { key } of this.open.matching(topics)) channels.push(key);
    if (!isPrivate || this.granted.size === 0) return channels;
    for (const { key, selector } of this.granted.matching(topics))
      if (topics.some((topic) => selector.matches(topic))) channels.push(key);
    return channels;
  }

  /** @param {string} topic @returns {string[]} channels of all streams that asked for it, but not of those that asked for everything */
  channelsAbout(topic) {
    const uses = [this.covered, this.open].flatMap((patterns) => patterns.matching([topic]));
    const patterns = uses.filter(({ selector }) => selector.kind !== 'all').map(({ key }) => key);
    return [...PREFIXES.map((prefix) => `${prefix}=${topic}`), ...patterns];
  }
}

/**
 * Which selectors have most streams. Those with grants of their own are on the public channel of their selector too, so they are
 * counted there.
 * @param {import('../../lib/tops.js').Top} channels @param {number} most
 * @returns {import('../../lib/tops.js').Top} by key of the selector; '#' and the name for channels that are not the hub's
 */
export function selectorsIn({ rows, missing }, most) {
  /** @param {string} prefix @param {string} mark @returns {import('../../lib/tops.js').Row[]} */
  const listOf = (prefix, mark) =>
    rows
      .filter(([name]) => name.startsWith(prefix) && (prefix !== '' || !name.startsWith(OURS)))
      .map(([name, count, over]) => [mark + name.slice(prefix.length), count, over]);
  // A selector may be on both lists of the hub: what it lacks on the one where it isn't, is in `over`.
  const hub = mergeTops(
    [PUBLIC, ALL].map((prefix) => ({ rows: listOf(prefix, ''), missing })),
    rows.length,
  );
  return cutOff([...hub.rows, ...listOf('', '#')], hub.missing, most);
}

/** @param {Session} session @param {Selector} selector @returns {boolean} whether whatever the selector matches is granted too */
function covers({ subscribe }, selector) {
  return subscribe.some(
    (grant) =>
      grant.kind === 'all' ||
      grant.key === selector.key ||
      (selector.kind === 'exact' && grant.matches(selector.value)),
  );
}

/**
 * Whether a stream gets a publication that its selectors match.
 * @param {{ topics: readonly string[], private: boolean }} publication @param {Session | null} session
 * @returns {boolean}
 */
export function mayRead({ topics, private: isPrivate }, session) {
  if (!isPrivate) return true;
  if (session === null) return false;
  return session.subscribe.some((grant) => topics.some((topic) => grant.matches(topic)));
}
