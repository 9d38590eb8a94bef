/*
 * Checks the arguments that an application passes to a `Hold`. The native core does not check them again.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { types } from 'node:util';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { FORMATS, isPoll, isWebSocket, LABELS } from '../native/protocol.js';

export const DAY_MS = 86_400_000;
/** Channels that a stream can be opened with; native counts them in 16 bits. `subscribe` adds more. */
const MOST_CHANNELS = 1024;
/** Channels of one publication. */
const MOST_TARGETS = 2 ** 20;
const MOST_CURSOR_BYTES = 256;
const MOST_TAG_BYTES = 256;
/** Reasons with which an application can end many streams. @type {readonly string[]} */
const END_REASONS = ['revoked', 'expired', 'restarted', 'drain'];
/** Characters that a line of an event can't contain. */
export const LINE_BREAK = /[\r\n\0]/;
/** The largest record of an adoption in native, minus its fixed part. */
const MOST_ADOPTION_BYTES = 16_384 - 20;
/** So many channels are compared with each other faster than put into a set. */
const FEW = 8;
/** Frozen lists and objects that were checked. @type {WeakSet<object>} */
const valid = new WeakSet();
/** Holdfast writes these itself: they determine where the response ends. */
const OWN_HEADERS = ['content-length', 'transfer-encoding', 'date', 'connection'];
/** The same of polls, and of WebSockets. */
const POLL_HEADERS = ['content-type', 'last-event-id'];
const WEBSOCKET_HEADERS = ['upgrade', 'sec-websocket-accept', 'sec-websocket-extensions'];
/** @type {readonly string[]} */
const NO_NAMES = [];

/** @typedef {import('../native/protocol.js').Format} Encoding */

/**
 * Checks a value.
 * @typedef {object} Check
 * @property {string} expected
 * @property {(value: unknown) => boolean} accepts
 */

/** @param {number} min @param {number} max @returns {Check} */
export const whole = (min, max) => ({
  expected: `a whole number from ${min} to ${max}`,
  accepts: (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
});

const PORT = whole(0, 65_535);
const PERIOD = whole(0, DAY_MS);
const LABEL = whole(0, 2 ** 32 - 1);
const LABEL_KEYS = [...Object.keys(LABELS), 'expiresAtMs'];

/** @param {number} id @throws {HoldfastError} BAD_ARGUMENT */
export function checkId(id) {
  if (!Number.isSafeInteger(id) || id < 0)
    throw badArgument(`an id is a number from decide, adopt or onClose, not ${shown(id)}`);
}

/** @param {string} channel @throws {HoldfastError} BAD_ARGUMENT */
export function checkChannel(channel) {
  if (typeof channel !== 'string') throw badArgument(`a channel must be a string, not ${shown(channel)}`);
  // Written as UTF-8, different names with lone surrogates would become the same one.
  if (!channel.isWellFormed())
    throw badArgument(`a channel must be well-formed Unicode, not ${shown(channel)}`);
}

/**
 * @param {readonly string[]} given
 * @returns {readonly string[]} a copy, because the application may change its list later
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkedChannels(given) {
  if (!Array.isArray(given)) throw badArgument(`channels must be an array of strings, not ${shown(given)}`);
  if (given.length > MOST_CHANNELS)
    throw badArgument(
      `a stream can be opened with at most ${MOST_CHANNELS} channels, not ${given.length}: subscribe it to the rest`,
    );
  if (valid.has(given)) return given;
  const channels = [...given];
  // Not forEach, which skips the holes of a sparse array.
  for (const channel of channels) checkChannel(channel);
  return kept(given, channels);
}

/**
 * @param {string | readonly string[]} given what a publication is for
 * @returns {readonly string[]} each once
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkedTargets(given) {
  if (!Array.isArray(given)) {
    checkChannel(/** @type {string} */ (given));
    return [/** @type {string} */ (given)];
  }
  if (given.length > MOST_TARGETS)
    throw badArgument(`a message can be published to at most ${MOST_TARGETS} channels, not ${given.length}`);
  const channels = [...given];
  for (const channel of channels) checkChannel(channel);
  return hasRepeats(channels) ? [...new Set(channels)] : channels;
}

/** @param {readonly string[]} channels @returns {boolean} true for a long list in any case */
function hasRepeats(channels) {
  if (channels.length > FEW) return true;
  for (let i = 1; i < channels.length; i++) if (channels.indexOf(channels[i]) < i) return true;
  return false;
}

/** @param {string | undefined} cursor @throws {HoldfastError} BAD_ARGUMENT */
export function checkCursor(cursor) {
  if (cursor === undefined) return;
  if (typeof cursor !== 'string') throw badArgument(`a cursor must be a string, not ${shown(cursor)}`);
  const bytes = Buffer.byteLength(cursor);
  if (LINE_BREAK.test(cursor) || bytes === 0 || bytes > MOST_CURSOR_BYTES)
    throw badArgument(
      `a cursor must be one line of 1 to ${MOST_CURSOR_BYTES} bytes without NUL, not ${shown(cursor)}`,
    );
}

/** @param {string | undefined} tag of a stream @throws {HoldfastError} BAD_ARGUMENT */
export function checkTag(tag) {
  if (tag === undefined) return;
  if (typeof tag !== 'string' || !tag.isWellFormed())
    throw badArgument(`a tag must be a string of well-formed Unicode, not ${shown(tag)}`);
  const bytes = Buffer.byteLength(tag);
  if (bytes > MOST_TAG_BYTES)
    throw badArgument(
      `a tag has at most ${MOST_TAG_BYTES} bytes, not ${bytes}: it is for a key, such as an id of a user`,
    );
}

/** @param {string | Uint8Array} payload @throws {HoldfastError} BAD_ARGUMENT */
export function checkPayload(payload) {
  if (typeof payload !== 'string' && !types.isUint8Array(payload))
    throw badArgument(`what is written must be a string or a Uint8Array, not ${shown(payload)}`);
}

/**
 * @param {import('./labels.js').Labels} given
 * @returns {import('./labels.js').Labels} a copy
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkedLabels(given) {
  checkKeys('a label', given, LABEL_KEYS);
  const { subject = 0, token = 0, expiresAtMs = Number.POSITIVE_INFINITY } = given;
  if (!LABEL.accepts(subject)) throw badLabel('subject', subject);
  if (!LABEL.accepts(token)) throw badLabel('token', token);
  if (typeof expiresAtMs !== 'number' || !(expiresAtMs >= 0))
    throw badArgument(`expiresAtMs must be a time in ms since 1970, or Infinity, not ${shown(expiresAtMs)}`);
  return { subject, token, expiresAtMs };
}

/** @param {string} kind @param {unknown} label */
function badLabel(kind, label) {
  return badArgument(`a ${kind} must be ${LABEL.expected}, not ${shown(label)}`);
}

/** @param {string} kind @param {number} label @throws {HoldfastError} BAD_ARGUMENT */
export function checkLabel(kind, label) {
  if (typeof kind !== 'string' || !Object.hasOwn(LABELS, kind))
    throw badArgument(`a label is one of ${Object.keys(LABELS).join(', ')}, not ${shown(kind)}`);
  if (!LABEL.accepts(label) || label === 0)
    throw badArgument(`a ${kind} must be a whole number from 1 to ${2 ** 32 - 1}, not ${shown(label)}`);
}

/** @param {string} reason @throws {HoldfastError} BAD_ARGUMENT */
export function checkEndReason(reason) {
  if (!END_REASONS.includes(reason))
    throw badArgument(`streams can be ended with one of ${END_REASONS.join(', ')}, not ${shown(reason)}`);
}

/**
 * @param {readonly string[]} channels of an adoption
 * @param {string} [opening] Latin-1
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkAdoptionBytes(channels, opening = '') {
  const bytes = channels.reduce((sum, name) => sum + Buffer.byteLength(name) + 4, 0);
  const most = MOST_ADOPTION_BYTES - opening.length;
  if (bytes > most)
    throw badArgument(
      `the names of the channels take ${bytes} bytes, more than ${most}: subscribe it to the rest`,
    );
}

/** @param {string} encoding @throws {HoldfastError} BAD_ARGUMENT */
export function checkEncoding(encoding) {
  if (typeof encoding !== 'string' || !Object.hasOwn(FORMATS, encoding))
    throw badArgument(
      `an encoding must be one of ${Object.keys(FORMATS).join(', ')}, not ${shown(encoding)}`,
    );
}

/** @param {Encoding} format @param {number | undefined} waitMs of a poll @throws {HoldfastError} BAD_ARGUMENT */
export function checkWait(format, waitMs) {
  if (waitMs === undefined) return;
  if (!isPoll(format)) throw badArgument(`only a poll has a waitMs, not a stream of ${format}`);
  if (!PERIOD.accepts(waitMs))
    throw badArgument(`the waitMs of a poll must be ${PERIOD.expected} (ms), not ${shown(waitMs)}`);
}

/**
 * @param {Encoding} format @param {Record<string, string>} headers that were checked
 * @throws {HoldfastError} BAD_ARGUMENT for those that belong to what the response is
 */
export function checkFormatHeaders(format, headers) {
  const own = isPoll(format) ? POLL_HEADERS : isWebSocket(format) ? WEBSOCKET_HEADERS : NO_NAMES;
  if (own.length === 0) return;
  const name = Object.keys(headers).find((given) => own.includes(given.toLowerCase()));
  if (name !== undefined)
    throw badArgument(`the header ${name} of a ${format} can't be set: Holdfast writes it`);
}

/**
 * @param {Record<string, string> | undefined} given headers of a response
 * @returns {Record<string, string> | undefined} a copy
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkedHeaders(given) {
  if (given === undefined || valid.has(given)) return given;
  // A Map or Headers would be copied as an empty object.
  if (typeof given !== 'object' || given === null || Symbol.iterator in given)
    throw badArgument(`headers must be a plain object of strings, not ${shown(given)}`);
  const headers = { ...given };
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value);
  return kept(given, headers);
}

/**
 * Remembers what was checked if the application can't change it any more: many streams may share it.
 * @template {object} T @param {T} given @param {T} copy
 * @returns {T} the one to use
 */
function kept(given, copy) {
  if (!Object.isFrozen(given)) return copy;
  valid.add(given);
  return given;
}

/** @param {string} name @param {string} value */
function checkHeader(name, value) {
  if (OWN_HEADERS.includes(name.toLowerCase()))
    throw badArgument(`the header ${name} can't be set: Holdfast writes it`);
  // node:http throws if the response is not chunked.
  if (name.toLowerCase() === 'trailer')
    throw badArgument(`the header ${name} can't be set: no trailers are sent`);
  if (typeof value !== 'string')
    throw badArgument(`the value of the header ${name} must be a string, not ${shown(value)}`);
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch (error) {
    throw badArgument(messageOf(error));
  }
}

/**
 * Finds misspelled keys, which would otherwise have no effect.
 * @param {string} what @param {object} given @param {readonly string[]} known
 * @param {readonly string[]} [named] those that the error names
 * @throws {HoldfastError} BAD_ARGUMENT
 */
export function checkKeys(what, given, known, named = known) {
  if (typeof given !== 'object' || given === null)
    throw badArgument(`${what} takes an object of options, not ${shown(given)}`);
  for (const key of Object.keys(given))
    if (!known.includes(key)) throw badArgument(`${what} has no '${key}': it can have ${named.join(', ')}`);
}

/** @param {number} port @throws {HoldfastError} BAD_ARGUMENT */
export function checkPort(port) {
  if (!PORT.accepts(port)) throw badArgument(`a port must be ${PORT.expected}, not ${shown(port)}`);
}

/** @param {number} ms @throws {HoldfastError} BAD_ARGUMENT */
export function checkPeriod(ms) {
  if (!PERIOD.accepts(ms)) throw badArgument(`a period must be ${PERIOD.expected} (ms), not ${shown(ms)}`);
}

/** @param {AbortSignal | undefined} signal @throws {HoldfastError} BAD_ARGUMENT */
export function checkSignal(signal) {
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw badArgument(`a signal must be an AbortSignal, not ${shown(signal)}`);
}

/** @param {string} line */
export function badArgument(line) {
  return new HoldfastError('BAD_ARGUMENT', line);
}
