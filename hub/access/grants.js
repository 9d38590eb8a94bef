/*
 * What a token allows: its claims, in both dialects, become a Session. Pure.
 *
 *     draft-08   "authorization_details": [{ "type": "https://mercure.rocks/authorization-detail", "actions": ["subscribe"],
 *                  "topics": [{ "match": "https://example.com/:id", "match_type": "urlpattern" }], "payload": {…} }]
 *     0.x        "mercure": { "publish": ["topic"], "subscribe": ["https://example.com/{id}"], "payload": … }
 *
 * One bad entry makes the whole token invalid: leaving it out would change what the issuer granted.
 */
import { hash } from 'node:crypto';
import { parseSelector, SelectorError, selectorOfKey } from '../matching/selectors.js';
import { TokenError } from './refusals.js';

/** The type of the authorization details that are ours. */
export const DETAIL_TYPE = 'https://mercure.rocks/authorization-detail';
/** The claims of 0.x. */
const CLAIMS = ['https://mercure.rocks/', 'mercure'];
/** The most details of ours in a token, and the most topics in all of them; in 0.x, the most topics in each list. */
const MOST_DETAILS = 100;
const MOST_TOPICS = 100;
/** Matcher types, and the kinds of selectors they are. @type {ReadonlyMap<unknown, 'exact' | 'urlpattern'>} */
const MATCH_TYPES = new Map([
  [undefined, 'exact'],
  ['exact', 'exact'],
  ['urlpattern', 'urlpattern'],
]);
/** Hashes that are kept as numbers have 31 bits: V8 stores them without an object of their own. */
const MOST_LABEL = 0x7fffffff;

/** In keys of sessions. */
const BETWEEN_KEYS = '\n';
const HASHED = '#';
const MOST_KEY_LENGTH = 1024;

const BAD_DETAILS = new TokenError('its authorization_details are malformed');
const BAD_TOPIC = new TokenError('one of its topics is malformed');
const BAD_CLAIM = new TokenError('its claim mercure is malformed');
const TOO_MANY = new TokenError(`it has more than ${MOST_DETAILS} details or ${MOST_TOPICS} topics`);

/** @typedef {'draft' | 'legacy'} Dialect draft-08 of Mercure, or 0.x */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('../matching/selectors.js').SelectorKind} SelectorKind */

/** Subscribe grants with the payload of their subscriptions. @typedef {{ selectors: readonly Selector[], payload: unknown }} Detail */

/**
 * @typedef {object} Grants what the claims of a token grant, each selector once
 * @property {readonly Selector[]} publish
 * @property {readonly Selector[]} subscribe
 * @property {readonly Detail[]} details in the order of the token; empty if none has a payload
 */

/** @type {readonly never[]} */
const NONE = [];

/** What a token allows; shared by everyone who sends the same token. */
export class Session {
  /**
   * @param {Grants} grants
   * @param {{ dialect: Dialect, expiresAtMs: number, subject: number, token: number, audiences: readonly string[] | null }} facts
   */
  constructor({ publish, subscribe, details }, { dialect, expiresAtMs, subject, token, audiences }) {
    /** Which topics it may publish to. @type {readonly Selector[]} */
    this.publish = publish;
    /** Which private publications it may read. @type {readonly Selector[]} */
    this.subscribe = subscribe;
    /** The same for all sessions with the same subscribe grants, whatever their order; '' for none. */
    this.key = keyOf(subscribe);
    /** @type {Dialect} */
    this.dialect = dialect;
    /** Infinity if never. */
    this.expiresAtMs = expiresAtMs;
    /** `labelOf` its sub; 0 if it has none. */
    this.subject = subject;
    /** `labelOf` its jti; 0 if it has none. */
    this.token = token;
    /** The hubs it is for, if that depends on the request. */
    this.audiences = audiences;
    this.details = details;
  }

  /**
   * @param {{ value: string }} selector of a subscription
   * @returns {unknown} what presence says about it: the payload of the first detail that matches the selector's own text;
   *   undefined for none
   */
  payload({ value }) {
    return this.details.find(({ selectors }) => selectors.some((one) => one.matches(value)))?.payload;
  }
}

/** @param {Session} session @param {readonly string[]} topics @returns {boolean} whether it may publish to all of them */
export function mayPublish({ publish }, topics) {
  return topics.every((topic) => publish.some((selector) => selector.matches(topic)));
}

/**
 * @param {string} text a sub or a jti
 * @returns {number} the same on every machine: from 1 to 2^31 - 1; 0 for ''
 */
export function labelOf(text) {
  if (text === '') return 0;
  return Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16) & MOST_LABEL || 1;
}

/** @param {Record<string, unknown>} claims @returns {boolean} whether it has a claim of 0.x */
export function hasLegacyGrants(claims) {
  return CLAIMS.some((name) => claims[name] !== undefined);
}

/**
 * @param {unknown} details the claim authorization_details; undefined grants nothing
 * @param {string} baseUrl of the hub
 * @returns {Grants}
 * @throws {TokenError}
 */
export function draftGrants(details, baseUrl) {
  if (details === undefined) return { publish: NONE, subscribe: NONE, details: NONE };
  if (!Array.isArray(details)) throw BAD_DETAILS;
  if (!details.every(isObject)) throw BAD_DETAILS;
  const ours = details.filter(({ type }) => type === DETAIL_TYPE);
  checkSize(ours);
  const read = ours.map((detail) => detailOf(detail, baseUrl));
  const reading = read.filter(({ actions }) => actions.includes('subscribe'));
  return {
    publish: unique(read.flatMap(({ actions, selectors }) => (actions.includes('publish') ? selectors : []))),
    subscribe: unique(reading.flatMap(({ selectors }) => selectors)),
    details: withPayloads(reading),
  };
}

/** @param {readonly Record<string, unknown>[]} details before anything is compiled */
function checkSize(details) {
  let topics = 0;
  for (const detail of details) topics += Array.isArray(detail.topics) ? detail.topics.length : 0;
  if (details.length > MOST_DETAILS || topics > MOST_TOPICS) throw TOO_MANY;
}

/** @param {Record<string, unknown>} detail @param {string} baseUrl */
function detailOf({ actions, topics, payload }, baseUrl) {
  const isValid =
    isFilledList(actions) &&
    actions.every((action) => typeof action === 'string') &&
    isFilledList(topics) &&
    (payload === undefined || isObject(payload));
  if (!isValid) throw BAD_DETAILS;
  return { actions, selectors: topics.map((topic) => selectorOf(topic, baseUrl)), payload };
}

/** @param {unknown} topic `{ match, match_type? }` @param {string} baseUrl @returns {Selector} */
function selectorOf(topic, baseUrl) {
  if (!isObject(topic)) throw BAD_TOPIC;
  const kind = MATCH_TYPES.get(topic.match_type);
  if (!kind) throw BAD_TOPIC;
  return parsed(kind, topic.match, baseUrl);
}

/**
 * @param {Record<string, unknown>} claims
 * @param {string} baseUrl of the hub
 * @returns {Grants}
 * @throws {TokenError}
 */
export function legacyGrants(claims, baseUrl) {
  const claim = CLAIMS.map((name) => claims[name]).find((one) => one !== undefined);
  if (!isObject(claim) && !isEmptyList(claim)) throw BAD_CLAIM; // PHP writes {} as []
  const { publish, subscribe, payload } = /** @type {Record<string, unknown>} */ (claim);
  const selectors = templatesOf(subscribe, baseUrl);
  return {
    publish: templatesOf(publish, baseUrl),
    subscribe: selectors,
    details: withPayloads([{ selectors: [EVERY], payload }]),
  };
}

/** In 0.x, the payload is that of all subscriptions. @type {Selector} */
const EVERY = parseSelector('exact', '*', '');

/** @param {unknown} list of topics and URI templates @param {string} baseUrl @returns {readonly Selector[]} */
function templatesOf(list, baseUrl) {
  if (list === undefined || list === null) return NONE;
  if (!Array.isArray(list)) throw BAD_CLAIM;
  if (list.length > MOST_TOPICS) throw TOO_MANY;
  return unique(list.map((value) => parsed('template', value, baseUrl)));
}

/** @param {SelectorKind} kind @param {unknown} value @param {string} baseUrl @returns {Selector} */
function parsed(kind, value, baseUrl) {
  if (typeof value !== 'string' || value === '') throw BAD_TOPIC;
  try {
    return parseSelector(kind, value, baseUrl);
  } catch (error) {
    throw error instanceof SelectorError ? BAD_TOPIC : error;
  }
}

/** @param {readonly Detail[]} details @returns {readonly Detail[]} none if there is no payload to be found in them */
function withPayloads(details) {
  if (details.every(({ payload }) => payload === undefined || payload === null)) return NONE;
  return details.map(({ selectors, payload }) => ({ selectors, payload }));
}

/** @param {readonly Selector[]} selectors @returns {readonly Selector[]} each once */
function unique(selectors) {
  if (selectors.length === 0) return NONE;
  return [...new Map(selectors.map((one) => [one.key, one])).values()];
}

/**
 * Part of the names of channels. When a stream moves to another process, its grants are read from them, unless they are too long.
 * @param {readonly Selector[]} selectors each once @returns {string} their keys, which contain no control characters, or a hash of them
 */
function keyOf(selectors) {
  if (selectors.length <= 1) return selectors[0]?.key ?? '';
  const keys = selectors.map(({ key }) => key).sort();
  const text = keys.join(BETWEEN_KEYS);
  return text.length <= MOST_KEY_LENGTH ? text : HASHED + hash('sha256', JSON.stringify(keys), 'base64url');
}

/** @param {string} key of a Session @returns {boolean} whether its grants can't be read from it */
export function isHashed(key) {
  return key.startsWith(HASHED);
}

/**
 * @param {string} key of a Session @param {string} baseUrl of the hub
 * @returns {readonly Selector[] | null} its subscribe grants; null if they can't be known
 */
export function grantsIn(key, baseUrl) {
  const selectors = key.split(BETWEEN_KEYS).map((one) => selectorOfKey(one, baseUrl));
  return selectors.every((one) => one !== null) ? selectors : null;
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @param {unknown} value @returns {value is unknown[]} */
function isFilledList(value) {
  return Array.isArray(value) && value.length > 0;
}

/** @param {unknown} value @returns {boolean} */
function isEmptyList(value) {
  return Array.isArray(value) && value.length === 0;
}
