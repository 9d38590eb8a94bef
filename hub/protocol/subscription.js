/*
 * What a client asks for when it subscribes, in both dialects of Mercure. Pure.
 *
 *     draft-08   match=TOPIC, match_exact=TOPIC, match_urlpattern=PATTERN        last_event_id=CURSOR
 *     0.x        topic=TOPIC or a URI template                                   lastEventID=CURSOR and others
 */
import { RequestError } from '../../lib/router.js';
import { parseSelector, SelectorError } from '../matching/selectors.js';
import { LimitError } from '../streams/limits.js';

/** @typedef {import('./query.js').Pair} Pair */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {'draft' | 'legacy'} Dialect */

/**
 * @typedef {object} Subscription
 * @property {Dialect} dialect
 * @property {readonly Selector[]} selectors each once; none if it names none, which only a WebSocket may (`checkWanted`)
 * @property {readonly Pair[]} pairs that say so
 *
 * @typedef {object} Rules
 * @property {string} baseUrl of the hub
 * @property {boolean} isLegacyAllowed
 * @property {number} mostSelectors of a stream
 */

/** The kinds of selectors that draft-08 names. @type {Record<string, 'exact' | 'urlpattern'>} */
const MATCHERS = { match: 'exact', match_exact: 'exact', match_urlpattern: 'urlpattern' };
/** Where clients that can't set the header put the cursor. */
const CURSORS = ['last_event_id', 'lastEventID', 'Last-Event-ID', 'lastEventId'];

/**
 * @param {readonly Pair[]} pairs of the body of a QUERY, and of the query, which counts more
 * @param {Rules} rules
 * @returns {Subscription}
 * @throws {RequestError} 400
 */
export function subscriptionOf(pairs, { baseUrl, isLegacyAllowed, mostSelectors }) {
  const wanted = pairs.flatMap(([name, value]) => wantedBy(name, value, isLegacyAllowed));
  checkCount(wanted.length, mostSelectors);
  const isLegacy = wanted.some(({ kind }) => kind === 'template');
  if (isLegacy && wanted.some(({ kind }) => kind !== 'template'))
    throw new RequestError(400, 'use either "match" or the older "topic", not both');
  const selectors = new Map();
  for (const { kind, value } of wanted) {
    const selector = selectorOf(kind, value, baseUrl);
    selectors.set(selector.key, selector);
  }
  return {
    dialect: isLegacy ? 'legacy' : 'draft',
    selectors: [...selectors.values()],
    pairs,
  };
}

/** @param {number} count of topics of a stream @param {number} most @throws {LimitError} 400 */
export function checkCount(count, most) {
  if (count <= most) return;
  throw new LimitError(
    400,
    `a stream can have at most ${most} topics, not ${count} (max-topics-per-stream)`,
    'hubLimitedTopicsPerStream',
  );
}

/** @param {Pick<Subscription, 'selectors'>} wish of anything but a WebSocket @throws {RequestError} 400 */
export function checkWanted({ selectors }) {
  if (selectors.length === 0) throw new RequestError(400, 'missing "match" subscription parameter');
}

/** @param {string} name @param {string} value @param {boolean} isLegacyAllowed @returns {{ kind: 'exact' | 'urlpattern' | 'template', value: string }[]} */
function wantedBy(name, value, isLegacyAllowed) {
  if (Object.hasOwn(MATCHERS, name)) return [{ kind: MATCHERS[name], value }];
  if (name.slice(0, 5).toLowerCase() === 'match')
    throw new RequestError(
      400,
      `"${shown(name)}" is no parameter: use match, match_exact or match_urlpattern`,
    );
  if (name !== 'topic') return [];
  if (!isLegacyAllowed) throw new RequestError(400, '"topic" is no parameter: use match');
  return [{ kind: 'template', value }];
}

/** @param {'exact' | 'urlpattern' | 'template'} kind @param {string} value @param {string} baseUrl @returns {Selector} */
function selectorOf(kind, value, baseUrl) {
  try {
    return parseSelector(kind, value, baseUrl);
  } catch (error) {
    if (error instanceof SelectorError) throw new RequestError(400, error.message);
    throw error;
  }
}

/**
 * The header counts, and then the last parameter with one of the names: clients append theirs to an address that may have an
 * older one.
 * @param {readonly Pair[]} pairs
 * @param {string | undefined} header Last-Event-ID; each character is a byte
 * @returns {string | undefined} the last event id; '' counts as one
 */
export function cursorOf(pairs, header) {
  if (header !== undefined) return Buffer.from(header, 'latin1').toString();
  return pairs.findLast(([name]) => CURSORS.includes(name))?.[1];
}

/** @param {string} name of a parameter @returns {string} safe to show */
function shown(name) {
  return name.slice(0, 40).replace(/[^\w.-]/g, '?');
}
