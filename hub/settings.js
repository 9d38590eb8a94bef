/*
 * The options of a Hub, with their defaults and checks; their meaning is in index.d.ts. serveroptions.js makes them
 * from those of the server.
 */
import { MemoryBroker } from '../broker/memory.js';
import { isRange, LOOPBACK } from '../lib/addresses.js';
import { HoldfastError } from '../lib/errors.js';
import { isHttpUrl, readOrigin } from '../lib/origins.js';
import { shown } from '../lib/shown.js';
import { Access } from './access/index.js';
import { parseSelector } from './matching/selectors.js';
import { LIMITS } from './matching/topics.js';
import { LocalPresence } from './presence/local.js';
import { Cors } from './protocol/cors.js';
import { Limits } from './streams/limits.js';

export const PATH = '/.well-known/mercure';
/** What relative topics and patterns are relative to if the hub does not know its URL. */
export const NOWHERE = 'http://localhost';

const DEFAULTS = {
  path: PATH,
  jwt: /** @type {import('./access/index.js').JwtSettings} */ ({}),
  anonymous: false,
  legacy: true,
  corsOrigins: /** @type {readonly string[]} */ ([]),
  publishOrigins: /** @type {readonly string[]} */ ([]),
  cacheTopics: /** @type {readonly string[]} */ ([]),
  windowBytes: 16_777_216,
  maxReplayBytes: 1_048_576,
  maxBodyBytes: 1_048_576,
  maxTopics: Number(LIMITS.topicsPerPublication),
  maxSelectors: Number(LIMITS.selectorsPerStream),
  subscriptions: false,
  maxPresenceBytes: 134_217_728,
  maxStreamsPerAddress: 0,
  maxStreamsPerSubject: 0,
  maxOpensPerAddress: 0,
  proxies: /** @type {readonly string[]} */ (LOOPBACK),
};
/** Keys of `jwt`. */
const JWT = ['secret', 'publisherKey', 'subscriberKey', 'jwksUrl', 'issuer', 'audience', 'cookie'];
const PATH_FORM = /^\/[\w\-.~!$&'()*+,;=:@%/]*$/;
const OTHERS = ['hold', 'broker', 'url', 'onError', 'onNote'];
/** Holds that have a Hub: another one would publish on the same channels, and put its cursors in the same pings. @type {WeakSet<object>} */
const taken = new WeakSet();
/** What is kept for clients that come back. */
export const HISTORY = {
  historyCount: 10_000,
  historyAgeMs: 3_600_000,
  historyBytes: 67_108_864,
  maxQueueBytes: 16_777_216,
};

/**
 * What a Hub is made of.
 * @typedef {object} Settings
 * @property {import('./streams/core.js').HoldLike} hold
 * @property {import('../broker/index.js').Broker} broker
 * @property {Promise<Access>} opened
 * @property {Cors} cors
 * @property {string} path
 * @property {string} url '' if it is unknown
 * @property {Rules} rules
 * @property {(topic: string) => boolean} isCached
 * @property {number} windowBytes
 * @property {number} mostReplayBytes
 * @property {LocalPresence | null} presence null if it is off
 * @property {Limits | null} limits null if there are none
 * @property {(error: unknown) => void} onError
 * @property {(line: string) => void} onNote
 *
 * @typedef {object} Rules
 * @property {string} baseUrl
 * @property {boolean} isLegacyAllowed
 * @property {number} mostSelectors
 * @property {import('./matching/topics.js').Limits} limits
 * @property {number} mostBodyBytes
 */

/** @typedef {Partial<typeof DEFAULTS> & { hold: unknown, broker?: import('../broker/index.js').Broker, url?: string, onError?: (error: unknown) => void, onNote?: (line: string) => void }} HubOptions */

/** @param {HubOptions} options @returns {Settings} @throws {HoldfastError} BAD_OPTION */
export function settingsOf(options) {
  const given = checked(options);
  const {
    path,
    jwt,
    legacy,
    windowBytes,
    maxReplayBytes,
    onError: listener = warn,
    onNote = () => {},
  } = given;
  const hold = /** @type {import('./streams/core.js').HoldLike} */ (given.hold);
  const url = given.url === undefined ? urlOf(jwt.audience) : new URL(given.url).href;
  const baseUrl = url || NOWHERE + path;
  const isCached = cachedBy(given.cacheTopics, baseUrl);
  const broker = given.broker ?? new MemoryBroker({ ...HISTORY, isCached });
  const access = {
    jwt,
    hubPath: path,
    baseUrl,
    isAnonymousAllowed: given.anonymous,
    isLegacyAllowed: legacy,
    publishOrigins: originsOf('publishOrigins', given.publishOrigins),
    hasSubscriptions: given.subscriptions,
    onNote,
  };
  // Deferred, because a listener that throws must not interrupt what is in progress.
  const onError = (/** @type {unknown} */ error) => process.nextTick(listener, error);
  const settings = {
    hold: /** @type {import('./streams/core.js').HoldLike} */ (hold),
    broker,
    cors: new Cors(originsOf('corsOrigins', given.corsOrigins)),
    path,
    url,
    rules: rulesOf(given, baseUrl),
    isCached,
    windowBytes,
    mostReplayBytes: maxReplayBytes,
    presence: given.subscriptions ? LocalPresence.open({ ...given, broker, onError }) : null,
    limits: Limits.of(given),
    onError,
    onNote,
  };
  taken.add(hold);
  return { ...settings, opened: Access.open(access) }; // last: nobody would handle its error if something above throws
}

/** @param {{ legacy?: boolean, maxSelectors?: number, maxTopics?: number, maxBodyBytes?: number }} options @param {string} baseUrl @returns {Rules} */
export function rulesOf(options, baseUrl) {
  const { legacy, maxSelectors, maxTopics, maxBodyBytes } = { ...DEFAULTS, ...options };
  return {
    baseUrl,
    isLegacyAllowed: legacy,
    mostSelectors: maxSelectors,
    limits: { ...LIMITS, topicsPerPublication: maxTopics, selectorsPerStream: maxSelectors },
    mostBodyBytes: maxBodyBytes,
  };
}

/** @param {string | undefined} audience of tokens @returns {string} it, if it is the URL of the hub; otherwise '' */
export function urlOf(audience = '') {
  return isHttp(audience) ? audience : '';
}

/** @param {readonly string[]} values exact topics or URL patterns @param {string} baseUrl @returns {(topic: string) => boolean} */
export function cachedBy(values, baseUrl) {
  const selectors = values.flatMap((value) => cachedSelectors(value, baseUrl));
  return (topic) => selectors.some((selector) => selector.matches(topic));
}

/** @param {string} value @param {string} baseUrl */
function cachedSelectors(value, baseUrl) {
  try {
    return [parseSelector('exact', value, baseUrl), parseSelector('urlpattern', value, baseUrl)];
  } catch {
    throw badOption(
      `${shown(value)} is neither a topic nor a URL pattern: topics to cache are written like https://example.com/prices/*`,
    );
  }
}

/** @param {HubOptions} options @returns {typeof DEFAULTS & HubOptions} */
function checked(options) {
  const hold = /** @type {{ adopt?: unknown } | undefined} */ (options?.hold);
  if (typeof hold?.adopt !== 'function') throw badOption('a Hub needs a Hold: new Hub({ hold: new Hold() })');
  if (taken.has(hold)) throw badOption('this Hold has a Hub already: give each Hub a Hold of its own');
  checkKeys('a Hub', options, [...Object.keys(DEFAULTS), ...OTHERS]);
  const given = { ...DEFAULTS, ...withoutUndefined(options) };
  for (const [name, value] of Object.entries(DEFAULTS)) checkType(name, value, Object.entries(given));
  checkJwt(given.jwt);
  const { path, url, broker, proxies } = given;
  if (!PATH_FORM.test(path)) throw badOption(`the path of a Hub must be like ${PATH}, not ${shown(path)}`);
  if (url !== undefined && !isHttp(url))
    throw badOption(`the url of a Hub must be like https://example.com${path}, not ${shown(url)}`);
  const wrong = proxies.find((one) => !isRange(one));
  if (wrong !== undefined)
    throw badOption(`proxies has ${shown(wrong)}, expected an address or a range such as 10.0.0.0/8`);
  for (const [name, value] of Object.entries({ onError: given.onError, onNote: given.onNote }))
    if (value !== undefined && typeof value !== 'function')
      throw badOption(`the option ${name} of a Hub must be a function, not ${shown(value)}`);
  if (broker !== undefined && typeof broker?.append !== 'function')
    throw badOption('the broker of a Hub is made by openBroker or new MemoryBroker');
  return given;
}

/** @param {import('./access/index.js').JwtSettings} jwt */
function checkJwt(jwt) {
  checkKeys('the option jwt of a Hub', jwt, JWT);
  for (const [name, value] of Object.entries(jwt))
    if (value !== undefined && typeof value !== 'string')
      throw badOption(
        `${name} in the option jwt of a Hub must be a string (read files as 'utf8'), not ${shown(value)}`,
      );
  const { jwksUrl } = jwt;
  if (jwksUrl && !isHttpUrl(jwksUrl))
    throw badOption(
      'jwksUrl in the option jwt of a Hub must be an http or https URL without a user or password',
    );
}

/** @param {string} name of an option @param {unknown} byDefault @param {[string, unknown][]} given */
function checkType(name, byDefault, given) {
  const [, value] = /** @type {[string, unknown]} */ (given.find(([key]) => key === name));
  const isList = Array.isArray(byDefault);
  const isRight = isList
    ? Array.isArray(value) && value.every((one) => typeof one === 'string')
    : typeof value === typeof byDefault && value !== null;
  if (!isRight)
    throw badOption(
      `the option ${name} of a Hub must be ${isList ? 'a list of strings' : `of type ${typeof byDefault}`}, not ${shown(value)}`,
    );
  const least = byDefault === 0 ? 0 : 1; // 0 turns a limit off if it is off by default
  if (typeof value === 'number' && !(Number.isInteger(value) && value >= least))
    throw badOption(`the option ${name} of a Hub must be a whole number from ${least}, not ${value}`);
}

/** @param {string} what @param {object} given @param {readonly string[]} known */
export function checkKeys(what, given, known) {
  if (typeof given !== 'object' || given === null)
    throw badOption(`the options of ${what} must be an object, not ${shown(given)}`);
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw badOption(`${what} has no '${unknown}': expected ${known.join(', ')}`);
}

/** @param {unknown} given */
export function isHttp(given) {
  return typeof given === 'string' && /^https?:\/\//i.test(given) && URL.canParse(given);
}

/** @param {string} message */
export function badOption(message) {
  return new HoldfastError('BAD_OPTION', message);
}

/** @param {string} name @param {readonly string[]} origins */
function originsOf(name, origins) {
  return origins.map((origin) => {
    const read = readOrigin(origin);
    if (read === undefined)
      throw badOption(`${name} has ${shown(origin)}, expected an origin such as https://example.com`);
    return read;
  });
}

/** @template {object} T @param {T} options @returns {T} */
export function withoutUndefined(options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return /** @type {T} */ (Object.fromEntries(given));
}

/** @param {unknown} error */
function warn(error) {
  // With an Error, emitWarning would ignore the type and the code.
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(text, { type: 'HoldfastWarning', code: 'HUB_FAILED' });
}
