/*
 * The hub in an application that knows its users itself: streams on responses of its own, and the header by which its pages find
 * the hub.
 */
import { HoldfastError } from '../lib/errors.js';
import { RequestError } from '../lib/router.js';
import { labelOf, Session } from './access/grants.js';
import { parseSelector, SelectorError } from './matching/selectors.js';
import { checkTopic } from './matching/topics.js';
import { draftOf } from './protocol/drafts.js';
import { beginStream } from './protocol/handler.js';
import { streamHeaders } from './protocol/protocol.js';
import { queryOf } from './protocol/query.js';
import { cursorOf } from './protocol/subscription.js';
import { checkedRevocations } from './revocations.js';

const OPTIONS = ['topics', 'patterns', 'cursor', 'grants', 'subject', 'expiresAtMs'];
const GRANTS = ['topics', 'patterns'];
/** How its streams are opened. @type {import('./streams/core.js').Entrance} */
const OWN = Object.freeze({
  format: 'events',
  dialect: 'draft',
  address: '',
  mayPublish: false,
  admission: null,
});
/** What a URI can't contain. RFC 3986, section 2. */
const NOT_IN_URI = /[^\w\-.~:/?#[\]@!$&'()*+,;=%]+/g;

/** @typedef {import('./index.js').Hub} Hub */
/** @typedef {import('./matching/selectors.js').Selector} Selector */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {string | readonly string[]} Topics */
/** @typedef {{ topics?: Topics, patterns?: Topics }} Granted */
/** @typedef {import('./protocol/drafts.js').Given} Given */

/**
 * @typedef {object} SubscribeOptions
 * @property {Topics} [topics] exact ones, or '*'
 * @property {Topics} [patterns] URL patterns
 * @property {string | null} [cursor] null for none; by default that of the request
 * @property {Topics | Granted} [grants] whose private publications it may read
 * @property {string} [subject] for `revoke`
 * @property {number} [expiresAtMs] when the stream ends
 */

/**
 * Makes a stream of a response.
 * @param {Hub} hub
 * @param {ServerResponse} response whose head was not sent yet, or was sent with all it needs
 * @param {SubscribeOptions} options
 * @returns {Promise<number>} its id
 * @throws {HoldfastError} BAD_ARGUMENT, and what `adopt` of a Hold throws
 */
export async function subscribeTo(hub, response, options) {
  checkKeys('subscribe', options, OPTIONS);
  const { topics, patterns, cursor, grants, subject, expiresAtMs } = options;
  const wanted = selectorsOf('topics', topics, 'patterns', patterns, hub);
  if (wanted.length === 0)
    throw badArgument(
      'subscribe needs topics or patterns, as in { topics: ["https://example.com/books/1"] }',
    );
  const { mostSelectors } = hub.rules;
  if (wanted.length > mostSelectors)
    throw badArgument(`a stream can have at most ${mostSelectors} topics and patterns, not ${wanted.length}`);
  const session = sessionOf(grantsOf(grants, hub), subject, expiresAtMs);
  const place = hub.core.placeOf(wanted, session);
  const opening = await hub.core.prepare(givenCursor(cursor, response), place);
  const beginning = opening.begin();
  const { origin } = response.req.headers;
  beginStream(response, {
    ...streamHeaders('draft', opening.reported),
    ...hub.cors.headersFor({ headers: { origin } }),
  });
  return hub.core.joining.adopt(response, place, beginning, OWN);
}

/**
 * @param {Hub} hub
 * @param {Given | readonly Given[]} given
 * @returns {Promise<string[]>} the ids, once they are stored
 * @throws {HoldfastError} BAD_ARGUMENT, and those of a broker's `append`
 */
export async function publishTo(hub, given) {
  const list = /** @type {readonly Given[]} */ (Array.isArray(given) ? given : [given]);
  const drafts = list.map((one) => draftFor(one, hub.rules));
  return (await hub.core.publish(drafts)).map(({ id }) => id);
}

/** @param {Given} given @param {import('./protocol/drafts.js').Rules} rules */
function draftFor(given, rules) {
  return asArgument(() => draftOf(given, rules));
}

/**
 * @param {import('./revocations.js').Revocation} what
 * @returns {import('./revocations.js').Revocation[]} at least one; each has one of them
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function revocationsFor(what) {
  return asArgument(() => checkedRevocations([what]));
}

/** @template T @param {() => T} check of what a request may also have @returns {T} @throws {HoldfastError} BAD_ARGUMENT */
function asArgument(check) {
  try {
    return check();
  } catch (error) {
    throw error instanceof RequestError ? badArgument(error.message) : error;
  }
}

/**
 * @param {string} url of the hub, or its path
 * @param {string} cursor
 * @param {string | undefined} topic
 * @param {string} baseUrl of the hub
 * @returns {string} the value of a Link header
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function linkOf(url, cursor, topic, baseUrl) {
  const hub = `<${asUri(url)}>; rel="mercure"; last-event-id="${cursor}"`;
  if (topic === undefined) return hub;
  if (typeof topic !== 'string') throw badArgument(`a topic must be a string, not ${typeof topic}`);
  const wrong = checkTopic(topic, baseUrl);
  if (wrong) throw badArgument(wrong);
  return `${hub}, <${asUri(topic)}>; rel="self"`;
}

/** @param {string} text @returns {string} with only characters that a URI may have */
function asUri(text) {
  return text.replace(NOT_IN_URI, encodeURIComponent);
}

/** @param {SubscribeOptions['cursor']} cursor @param {ServerResponse} response @returns {string | undefined} */
function givenCursor(cursor, response) {
  if (typeof response?.setHeader !== 'function' || !response.req)
    throw badArgument('subscribe takes a ServerResponse (of Fastify: reply.raw; of Koa: context.res)');
  if (cursor === null) return undefined;
  if (cursor === undefined) return cursorIn(response.req);
  if (typeof cursor !== 'string')
    throw badArgument(`a cursor must be a string or null, not ${typeof cursor}`);
  return cursor;
}

/** @param {import('node:http').IncomingMessage} request @returns {string | undefined} what it sends as its last event id */
function cursorIn({ headers, url = '' }) {
  const header = headers['last-event-id'];
  return cursorOf([...new URLSearchParams(queryOf(url))], header === undefined ? undefined : String(header));
}

/** @param {SubscribeOptions['grants']} given @param {Hub} hub @returns {Selector[]} */
function grantsOf(given, hub) {
  if (given === undefined || typeof given === 'string' || Array.isArray(given))
    return selectorsOf('grants', /** @type {Topics | undefined} */ (given), 'patterns', [], hub);
  const { topics, patterns } = checkKeys('grants', /** @type {Granted} */ (given), GRANTS);
  return selectorsOf('topics of grants', topics, 'patterns of grants', patterns, hub);
}

/**
 * @param {string} exactName @param {Topics | undefined} exact @param {string} patternName @param {Topics | undefined} patterns @param {Hub} hub
 * @returns {Selector[]} each once
 */
function selectorsOf(exactName, exact, patternName, patterns, { rules: { baseUrl } }) {
  const selectors = [
    ...textsIn(exactName, exact).map((value) => selectorOf('exact', value, baseUrl)),
    ...textsIn(patternName, patterns).map((value) => selectorOf('urlpattern', value, baseUrl)),
  ];
  return [...new Map(selectors.map((one) => [one.key, one])).values()];
}

/** @param {string} name @param {Topics | undefined} given @returns {readonly string[]} */
function textsIn(name, given = []) {
  const list = Array.isArray(given) ? given : [given];
  const wrong = list.find((one) => typeof one !== 'string');
  if (list.every((one) => typeof one === 'string')) return list;
  throw badArgument(
    `${name} must be a string or a list of strings, not ${wrong === null ? 'null' : typeof wrong}`,
  );
}

/** @param {'exact' | 'urlpattern'} kind @param {string} value @param {string} baseUrl */
function selectorOf(kind, value, baseUrl) {
  try {
    return parseSelector(kind, value, baseUrl);
  } catch (error) {
    if (error instanceof SelectorError) throw badArgument(error.message);
    throw error;
  }
}

/** @param {readonly Selector[]} subscribe @param {unknown} subject @param {unknown} expiresAtMs @returns {Session | null} */
function sessionOf(subscribe, subject = '', expiresAtMs = Number.POSITIVE_INFINITY) {
  if (typeof subject !== 'string') throw badArgument(`subject must be a string, not ${typeof subject}`);
  if (typeof expiresAtMs !== 'number' || Number.isNaN(expiresAtMs) || expiresAtMs < 0)
    throw badArgument(`expiresAtMs must be a time in ms since 1970, not ${String(expiresAtMs)}`);
  if (subscribe.length === 0 && subject === '' && expiresAtMs === Number.POSITIVE_INFINITY) return null;
  const facts = {
    dialect: /** @type {const} */ ('draft'),
    expiresAtMs,
    subject: labelOf(subject),
    token: 0,
    audiences: null,
  };
  return new Session({ publish: [], subscribe, details: [] }, facts);
}

/** @template T @param {string} what @param {T} given @param {readonly string[]} known @returns {T} */
function checkKeys(what, given, known) {
  if (typeof given !== 'object' || given === null)
    throw badArgument(
      `${what} takes an object { ${known.join(', ')} }, not ${given === null ? 'null' : typeof given}`,
    );
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw badArgument(`${what} has no '${unknown}': expected ${known.join(', ')}`);
  return given;
}

/** @param {string} message */
function badArgument(message) {
  return new HoldfastError('BAD_ARGUMENT', message);
}
