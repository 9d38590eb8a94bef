/*
 * How publications are written in NATS: a message per publication, as JSON, on a subject that says only which topic it is about.
 * Pure.
 *
 *     holdfast.<stream>.p.<hash of the first topic>        {"topics":["…"],"data":"…"}
 *     holdfast.<stream>.c.<hash of all cached topics>
 *
 * Topics may contain what subjects can't, and may be longer, so subjects have hashes of them.
 */
import { createHash } from 'node:crypto';

const HASH_BYTES = 16;
/** More than a hub takes from publishers. */
const MOST_TOPICS = 10_000;
const MOST_RETRY_MS = 0x7fffffff;
/** What would end the line of a field in an event stream, or is not UTF-8. */
const NO_LINE = /[\p{Cc}\p{Cs}]/u;

/** @typedef {import('../index.js').Draft} Draft */

/** What is in the place of a message that is no publication: it is about nothing, so nobody gets it. @type {Draft} */
export const NOTHING = { topics: [], data: '', private: true };

/** @param {string} stream its name @returns {string} what subjects of a hub begin with */
export function prefixOf(stream) {
  return `holdfast.${stream}`;
}

/** @param {string} stream @returns {string} the subjects of publications on cached topics */
export function cachedSubjectsOf(stream) {
  return `${prefixOf(stream)}.c.*`;
}

/** @param {string} stream @returns {string[]} the subjects of all publications */
export function subjectsOf(stream) {
  return [`${prefixOf(stream)}.p.*`, cachedSubjectsOf(stream)];
}

/**
 * @param {string} stream @param {Draft} draft
 * @param {readonly string[]} cached those of its topics that are cached. The last publication of each is the last one of some subject
 * @returns {string}
 */
export function subjectOf(stream, { topics }, cached) {
  if (cached.length === 0) return `${prefixOf(stream)}.p.${hashOf(topics[0] ?? '')}`;
  return `${prefixOf(stream)}.c.${hashOf(JSON.stringify([...new Set(cached)].sort()))}`;
}

/**
 * @param {Draft} draft
 * @returns {string | undefined} NATS stores only the first of several messages with the same one; undefined if the draft has none
 */
export function messageIdOf({ id, key }) {
  if (id !== undefined) return hashOf(`id ${id}`);
  return key === undefined ? undefined : hashOf(`key ${key}`);
}

/** @param {string} text @returns {string} 22 characters, all of them letters, digits, - or _ */
function hashOf(text) {
  return createHash('sha256').update(text).digest().toString('base64url', 0, HASH_BYTES);
}

/** @param {Draft} draft @returns {Uint8Array} what was not given is missing */
export function encode({ topics, data, private: isPrivate, id, type, retry }) {
  return Buffer.from(JSON.stringify({ topics, data, private: isPrivate || undefined, id, type, retry }));
}

/** @param {Uint8Array} bytes @returns {Draft | null} null if somebody else has written something else */
export function decode(bytes) {
  try {
    const { topics, data, private: isPrivate, id, type, retry } = JSON.parse(textOf(bytes));
    const draft = { topics, data, private: isPrivate ?? false, id, type, retry };
    return isDraft(draft) ? draft : null;
  } catch {
    return null;
  }
}

/** @param {Uint8Array} bytes */
function textOf(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/**
 * Other programs may write into the stream, and what they write goes into event streams: an id that is empty or looks like a cursor
 * would also take the position of every client away.
 * @param {Record<string, unknown>} given @returns {given is Draft}
 */
function isDraft(given) {
  const { topics, data, private: isPrivate, id, type, retry } = given;
  return (
    Array.isArray(topics) &&
    topics.length > 0 &&
    topics.length <= MOST_TOPICS &&
    topics.every(isUnicode) &&
    isUnicode(data) &&
    typeof isPrivate === 'boolean' &&
    (id === undefined || (isLine(id) && !id.trim().startsWith('#') && id.trim() !== 'earliest')) &&
    (type === undefined || isLine(type)) &&
    (retry === undefined || isRetry(retry))
  );
}

/** @param {unknown} value @returns {value is string} */
function isUnicode(value) {
  return typeof value === 'string' && value.isWellFormed();
}

/** @param {unknown} value @returns {value is string} */
function isLine(value) {
  return typeof value === 'string' && value !== '' && !NO_LINE.test(value);
}

/** @param {unknown} value ms */
function isRetry(value) {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MOST_RETRY_MS;
}
