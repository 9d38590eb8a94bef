/*
 * The seam to the application: a policy says which headers it reads, and decides about each request, at once or later.
 */

import { types } from 'node:util';
import { shown } from '../lib/shown.js';
import { isPoll } from '../native/protocol.js';
import {
  badArgument,
  checkEncoding,
  checkedChannels,
  checkedHeaders,
  checkedLabels,
  checkFormatHeaders,
  checkKeys,
  checkTag,
  checkWait,
} from './checks.js';

/** Variants of a welcome; native counts them in 16 bits. */
const MOST_WELCOMES = 1024;
/** The kinds of decisions, and the keys of each. @type {Record<string, { name: string, keys: readonly string[] }>} */
const KINDS = {
  hold: {
    name: "a decision with 'hold'",
    keys: ['hold', 'channels', 'headers', 'welcome', 'always', 'labels', 'tag', 'waitMs'],
  },
  refuse: { name: "a decision with 'refuse'", keys: ['refuse', 'headers', 'body'] },
  answer: { name: "a decision with 'answer'", keys: ['answer'] },
  pass: { name: "a decision with 'pass'", keys: ['pass'] },
};
const KIND_NAMES = Object.keys(KINDS);
const ANSWER_KEYS = ['status', 'headers', 'body'];
/** Statuses whose responses can't have a body. */
const BODILESS = [204, 304];
/** A name or an address in brackets, either with a port (RFC 9110, section 7.2); native/core/src/head.rs accepts the same. */
const HOST = /^(?:\[[\w.~!$&'()*+,;=%:-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/** @typedef {import('../native/protocol.js').Format} Encoding */
/** @typedef {string | Uint8Array} Bytes a string is written as UTF-8 */

/**
 * The head of a request; frozen.
 * @typedef {object} Head
 * @property {string} method
 * @property {string} target as sent, such as '/news?channel=a'
 * @property {string} version '1.1' or '1.0'
 * @property {Readonly<Record<string, string | undefined>>} headers only those that the policy names; the values of a
 *   repeated header are joined by ', '
 * @property {string} [address] the client's, if the policy asks for it; '' if it is unknown
 */

/**
 * Opens a stream. `channels`: those it listens to. `headers`: added to the default headers of the response, or replacing
 * them. `welcome`: payload written right after the head, not encoded; a list has variants, used in turn. `always`:
 * identical heads always get this decision, so native may cache it. `labels`: those of the stream. `tag`: what the application
 * finds its own state by after the stream was taken over. `waitMs`: how long a poll waits (25 s).
 * @typedef {{ hold: Encoding, channels?: readonly string[], headers?: Record<string, string>, welcome?: Bytes | readonly Bytes[], always?: boolean, labels?: import('./labels.js').Labels, tag?: string, waitMs?: number }} HoldDecision
 */

/**
 * A complete response. The connection goes on after it, if its client wants that and the request had no body.
 * @typedef {{ status?: number, headers?: Record<string, string>, body?: Bytes }} Answer
 */

/**
 * Refuses a request with a status from 400 to 599. The body says why; by default it is the name of the status. `headers`:
 * added to the default headers of a refusal, or replacing them.
 * @typedef {{ refuse: number, headers?: Record<string, string>, body?: Bytes }} Refusal
 */

/**
 * `hold` opens a stream (a HEAD request gets only the head), `refuse` and `answer` respond, `pass` gives the request to
 * `options.server`.
 * @typedef {HoldDecision | Refusal | { answer: Answer } | { pass: true }} Decision
 */

/**
 * @typedef {object} Policy
 * @property {readonly string[]} [headers] lower-case names of the headers that `decide` reads
 * @property {boolean} [address] whether `decide` reads the client's address
 * @property {(head: Head, id: number) => Decision | Promise<LateDecision>} decide `id` is the stream's, if it is held
 */

/** A decision, or a function that is called at the moment when the decision takes effect. @typedef {Decision | (() => Decision)} LateDecision */

/** @type {Decision} */
const UNAVAILABLE = { refuse: 503 };

/**
 * Asks a policy. If it fails, only that request is affected: it gets 503.
 * @param {Policy} policy
 * @param {Head} head
 * @param {number} id
 * @param {(error: unknown) => void} onError called with what `decide` threw, or with why its result is invalid
 * @returns {Decision | Promise<LateDecision>} checked; neither the promise nor the function ever fails
 */
export function decisionOn(policy, head, id, onError) {
  try {
    const decision = policy.decide(head, id);
    return isPromise(decision) ? later(decision, onError) : checked(decision);
  } catch (error) {
    return failed(error, onError);
  }
}

/** @param {unknown} error @param {(error: unknown) => void} onError */
function failed(error, onError) {
  onError(error);
  return UNAVAILABLE;
}

/** @param {Promise<LateDecision>} promise @param {(error: unknown) => void} onError @returns {Promise<LateDecision>} */
async function later(promise, onError) {
  try {
    const given = await promise;
    return typeof given === 'function' ? () => attempt(given, onError) : checked(given);
  } catch (error) {
    return failed(error, onError);
  }
}

/** @param {() => Decision} decide @param {(error: unknown) => void} onError */
function attempt(decide, onError) {
  try {
    return checked(decide());
  } catch (error) {
    return failed(error, onError);
  }
}

/** @param {unknown} value @returns {value is Promise<LateDecision>} */
function isPromise(value) {
  return typeof (/** @type {{ then?: unknown } | null | undefined} */ (value)?.then) === 'function';
}

/**
 * Reads a decision once, into objects of our own: what the application changes later has no effect.
 * @param {Decision} given
 * @returns {Decision}
 * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT
 */
function checked(given) {
  if (typeof given !== 'object' || given === null) throw noDecision();
  const kind = KIND_NAMES.find((name) => name in given);
  if (kind === undefined) throw noDecision();
  checkKeys(KINDS[kind].name, given, KINDS[kind].keys);
  if ('hold' in given) return checkedHold(given);
  if ('refuse' in given) return checkedRefusal(given);
  if ('answer' in given) return { answer: checkedAnswer(given.answer) };
  if (given.pass !== true) throw noDecision();
  return { pass: true };
}

/** @param {HoldDecision} given @returns {HoldDecision} */
function checkedHold(given) {
  const { hold, always, channels: names, labels: own, tag, waitMs } = given;
  const headers = checkedHeaders(given.headers);
  const welcome = copyOf(given.welcome);
  checkEncoding(hold);
  const channels = names === undefined ? undefined : checkedChannels(names);
  checkWelcome(welcome);
  const labels = own === undefined ? undefined : checkedLabels(own);
  checkTag(tag);
  checkWait(hold, waitMs);
  if (headers) checkFormatHeaders(hold, headers);
  if (isPoll(hold) && welcome !== undefined)
    throw badArgument('a poll has no welcome: answer it at once if there is something to say');
  if (always && (labels || tag !== undefined))
    throw badArgument("a decision with 'always' can't have labels or a tag: each stream has its own");
  return { hold, channels, headers, welcome, always, labels, tag, waitMs };
}

/** @param {HoldDecision['welcome']} welcome */
function checkWelcome(welcome) {
  if (!Array.isArray(welcome)) return checkBytes('a welcome', welcome);
  if (welcome.length > MOST_WELCOMES)
    throw badArgument(`a welcome has at most ${MOST_WELCOMES} variants, not ${welcome.length}`);
  for (const variant of welcome) checkBytes('a welcome', variant ?? null);
}

/** @template T @param {T} value @returns {T} a copy of a list; anything else as it is */
function copyOf(value) {
  return /** @type {T} */ (Array.isArray(value) ? [...value] : value);
}

/** @param {Refusal} given @returns {Refusal} */
function checkedRefusal(given) {
  const { refuse, body } = given;
  const headers = checkedHeaders(given.headers);
  if (!Number.isInteger(refuse) || refuse < 400 || refuse > 599)
    throw badArgument(`decide can refuse with a status from 400 to 599, not ${shown(refuse)}`);
  checkBytes('the body of a refusal', body);
  return { refuse, headers, body };
}

/** @param {Answer} given @returns {Answer} */
function checkedAnswer(given) {
  if (typeof given !== 'object' || given === null)
    throw badArgument(`an answer must be an object { status, headers, body }, not ${shown(given)}`);
  checkKeys('an answer', given, ANSWER_KEYS);
  const { status = 200, body } = given;
  const headers = checkedHeaders(given.headers);
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw badArgument(`the status of an answer must be a whole number from 200 to 599, not ${shown(status)}`);
  checkBytes('the body of an answer', body);
  if (BODILESS.includes(status) && body !== undefined && body.length > 0)
    throw badArgument(`an answer with status ${status} can't have a body`);
  return { status, headers, body };
}

/** @param {string} what @param {unknown} value */
function checkBytes(what, value) {
  if (value === undefined || typeof value === 'string' || types.isUint8Array(value)) return;
  throw badArgument(`${what} must be a string or a Uint8Array, not ${shown(value)}`);
}

function noDecision() {
  return badArgument(
    'decide must return { hold }, { refuse }, { answer } or { pass: true }, or a promise of one, or of a function that returns one',
  );
}

/**
 * Selects headers, and joins the values of repeated ones as the native core does.
 * @param {Set<string>} names in lower case
 * @param {string[]} rawHeaders name, value, name, value…
 */
export function headersNamed(names, rawHeaders) {
  /** @type {Map<string, string>} */
  const values = new Map();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i].toLowerCase();
    if (!names.has(name)) continue;
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? rawHeaders[i + 1] : `${earlier}, ${rawHeaders[i + 1]}`);
  }
  return Object.fromEntries(values);
}

/** @param {string[]} rawHeaders name, value, name, value… @returns {boolean} false if there are several Hosts, or a malformed one */
export function hasValidHost(rawHeaders) {
  const hosts = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1].toLowerCase() === 'host');
  return hosts.length <= 1 && hosts.every((host) => HOST.test(host));
}

/**
 * @param {string} method @param {string} target @param {string} version
 * @param {Readonly<Record<string, string | undefined>>} headers
 * @param {string} [address]
 * @returns {Head}
 */
export function headOf(method, target, version, headers, address) {
  Object.freeze(headers);
  return Object.freeze(
    address === undefined
      ? { method, target, version, headers }
      : { method, target, version, headers, address },
  );
}
