/*
 * Subscriptions as presence shows them, in both dialects. Pure.
 *
 *     draft-08   /.well-known/mercure/subscriptions/{match_type}/{match}/{subscriber}
 *     0.x        /.well-known/mercure/subscriptions/{topic}/{subscriber}
 *
 * While a stream is open, one text is kept for it: its dialect, and a line for each subscription, with the payload of the token if
 * there is one. Most streams have the same one for all subscriptions, so nothing after a tab is the one before. Selectors contain no
 * control characters, and JSON escapes them.
 *
 *     '8=https://example.com/books/1\t{"name":"Ann"}\n=https://example.com/books/2\t\n~https://example.com/:id'
 *
 * The subscriptions of a stream are numbered, so that each beginning and each end is announced once. As long as they don't change, the
 * numbers are those of the lines. The client of a WebSocket may change them: then the text has the next free number, and each line its own.
 *
 *     '83:0=https://example.com/books/1\n2=https://example.com/books/3'
 */

const DRAFT = '8';
const LEGACY = '0';
/** How the keys of selectors begin, and what presence calls their kind. `*` selects all topics whatever the type. @type {Record<string, string>} */
const MATCH_TYPES = { '*': 'exact', '=': 'exact', '~': 'urlpattern', '%': 'uritemplate' };
const KEYS = Object.entries(MATCH_TYPES).filter(([start]) => start !== '*');
/** Where a key begins. */
const KEY = /[*=~%]/;
const ZERO = 48;
const NINE = 57;
const CONTEXT = 'https://mercure.rocks/';
/** What `encodeURIComponent` leaves although it is reserved. RFC 6570, section 3.2.2, encodes all of it. */
const RESERVED = /[!'()*]/g;

/** @typedef {import('../access/grants.js').Session} Session */
/** @typedef {import('../access/grants.js').Dialect} Dialect */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {{ key: string, payload: string, number: number }} Subscription the key of its selector; the payload is JSON, '' for none */

/**
 * @param {Dialect} dialect of the stream @param {readonly Selector[]} selectors @param {Session | null} session
 * @returns {string}
 */
export function textOf(dialect, selectors, session) {
  let before = '';
  const lines = selectors.map((selector) => {
    const payload = session?.payload(selector) ?? undefined;
    if (payload === undefined) return selector.key;
    const json = JSON.stringify(payload);
    const line = `${selector.key}\t${json === before ? '' : json}`;
    before = json;
    return line;
  });
  // A copy: parts of a longer text would keep all of it in memory.
  return Buffer.from((dialect === 'legacy' ? LEGACY : DRAFT) + lines.join('\n')).toString();
}

/** @param {string} text @returns {Dialect} */
export function dialectOf(text) {
  return text[0] === LEGACY ? 'legacy' : 'draft';
}

/** @param {string} text @returns {Subscription[]} */
export function subscriptionsIn(text) {
  const colon = numbersIn(text);
  const lines = text.slice(colon + 1 || 1);
  if (lines === '') return [];
  let before = '';
  return lines.split('\n').map((line, index) => {
    const start = colon < 0 ? 0 : line.search(KEY);
    const number = colon < 0 ? index : Number(line.slice(0, start));
    const tab = line.indexOf('\t');
    if (tab < 0) return { key: line.slice(start), payload: '', number };
    before = line.slice(tab + 1) || before;
    return { key: line.slice(start, tab), payload: before, number };
  });
}

/** @param {string} text @returns {number} where the colon after the next number is; -1 if its lines have no numbers */
function numbersIn(text) {
  const first = text.charCodeAt(1);
  return first >= ZERO && first <= NINE ? text.indexOf(':') : -1;
}

/**
 * The client of a WebSocket has changed its subscriptions.
 * @param {string} before as it is listed @param {string} now from `textOf`
 * @returns {{ text: string, begun: string, ended: string }} as it is listed now, and the subscriptions that have begun and ended. Those that
 *   it had before keep their payload
 */
export function changeOf(before, now) {
  const colon = numbersIn(before);
  const had = subscriptionsIn(before);
  const known = new Map(had.map((one) => [one.key, one]));
  let next = colon < 0 ? had.length : Number(before.slice(1, colon));
  const has = subscriptionsIn(now).map((one) => known.get(one.key) ?? { ...one, number: next++ });
  const kept = new Set(has);
  const numbered = (/** @type {Subscription[]} */ list) => textWith(before[0], next, list);
  return {
    text: numbered(has),
    begun: numbered(has.filter(({ key }) => !known.has(key))),
    ended: numbered(had.filter((one) => !kept.has(one))),
  };
}

/** @param {string} dialect @param {number} next @param {readonly Subscription[]} subscriptions @returns {string} */
function textWith(dialect, next, subscriptions) {
  let before = '';
  const lines = subscriptions.map(({ key, payload, number }) => {
    if (payload === '') return `${number}${key}`;
    const line = `${number}${key}\t${payload === before ? '' : payload}`;
    before = payload;
    return line;
  });
  return Buffer.from(`${dialect}${next}:${lines.join('\n')}`).toString();
}

/** @param {string} text @returns {number} subscriptions */
export function countIn(text) {
  if (text.length === 1 || text.endsWith(':')) return subscriptionsIn(text).length;
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** @param {string} type @param {string} value @returns {string[] | null} the key of its selector; null if the type is unknown */
export function keysOfMatch(type, value) {
  const starts = KEYS.filter(([, name]) => name === type).map(([start]) => start);
  if (starts.length === 0) return null;
  return value === '*' ? ['*'] : starts.map((start) => start + value);
}

/** @param {string} topic of 0.x @returns {string[]} keys of the selectors it may be */
export function keysOfTopic(topic) {
  return topic === '*' ? ['*'] : KEYS.map(([start]) => start + topic);
}

/** @param {string} hubPath @param {readonly string[]} segments not encoded @returns {string} */
export function pathOf(hubPath, segments) {
  return [`${hubPath}/subscriptions`, ...segments.map(encoded)].join('/');
}

/**
 * @param {Dialect} dialect @param {string} hubPath @param {Subscription} subscription @param {string} subscriber
 * @returns {string} where the API has it; also the topic of its events
 */
export function topicOf(dialect, hubPath, { key }, subscriber) {
  const segments = dialect === 'legacy' ? [matchOf(key)] : [MATCH_TYPES[key[0]], matchOf(key)];
  return pathOf(hubPath, [...segments, subscriber]);
}

/**
 * @param {Dialect} dialect @param {string} topic @param {Subscription} subscription @param {string} subscriber
 * @param {boolean} isActive
 * @returns {string} JSON
 */
export function jsonOf(dialect, topic, { key, payload }, subscriber, isActive) {
  const match = JSON.stringify(matchOf(key));
  const what =
    dialect === 'legacy'
      ? `"type":"Subscription","topic":${match}`
      : `"type":"subscription","match_type":"${MATCH_TYPES[key[0]]}","match":${match}`;
  const rest = payload === '' ? '' : `,"payload":${payload}`;
  return `{"id":${JSON.stringify(topic)},${what},"subscriber":"${subscriber}","active":${isActive}${rest}}`;
}

/** @param {string} json an object with members @returns {string} as JSON-LD */
export function withContext(json) {
  return `{"@context":"${CONTEXT}",${json.slice(1)}`;
}

/** @param {string} key */
function matchOf(key) {
  return key === '*' ? key : key.slice(1);
}

/** @param {string} text @returns {string} with everything percent-encoded but letters, digits, and - . _ ~ */
function encoded(text) {
  return encodeURIComponent(text).replace(
    RESERVED,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
