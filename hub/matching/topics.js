/*
 * What a publisher may send, and what a subscriber may ask for: characters, lengths, and the namespace that belongs to the hub.
 * Each check returns '' or what is wrong, in words for the body of a response. Nothing here echoes what was given.
 */
import { resolve } from './address.js';

/** Limits of lengths are bytes of UTF-8. */
export const LIMITS = Object.freeze({
  selectorsPerStream: 100,
  selectorBytes: 4096,
  topicsPerPublication: 1000,
  topicBytes: 4096,
  idBytes: 1024,
  typeBytes: 1024,
});

/** @typedef {{ readonly [K in keyof typeof LIMITS]: number }} Limits */

/** Cc is C0, DEL and C1. Cs is half of a surrogate pair: not UTF-8. Cf is invisible: zero-width, right-to-left. */
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}]/u;
/** Percent-encoded letters, digits, and - . _ ~, which mean the same when they are not encoded (RFC 3986, 6.2.2.2). */
const UNRESERVED = /%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/gi;

/**
 * @param {string} topic
 * @param {string} baseUrl of the hub
 * @returns {string} '' or what is wrong, for a 400
 */
export function checkTopic(topic, baseUrl) {
  if (topic === '') return 'a topic must not be empty';
  if (FORBIDDEN.test(topic)) return 'a topic must not contain control or format characters';
  if (topic === '*') return 'the topic * is reserved: it selects all topics';
  if (isReserved(topic, baseUrl)) return "the topic is in the hub's own namespace";
  return '';
}

/** @param {string} id @returns {string} '' or what is wrong, for a 400 */
export function checkId(id) {
  if (FORBIDDEN.test(id)) return 'an id must not contain control or format characters';
  const name = id.trim(); // as clients send it in a header
  if (name.startsWith('#')) return 'ids that start with # are made by the hub';
  if (name === 'earliest') return "the id 'earliest' is reserved";
  return '';
}

/** @param {string} type @returns {string} '' or what is wrong, for a 400 */
export function checkType(type) {
  if (FORBIDDEN.test(type)) return 'a type must not contain control or format characters';
  if (type === 'mercure') return "the type 'mercure' is reserved";
  return '';
}

/** @param {string} data @returns {string} '' or what is wrong, for a 400 */
export function checkData(data) {
  return data.isWellFormed() ? '' : 'data must be valid UTF-8';
}

/** @param {string} value of a selector @param {Limits} [limits] @returns {string} '' or what is wrong, for a 400 */
export function checkSelector(value, limits = LIMITS) {
  if (exceeds(value, limits.selectorBytes))
    return `a selector must not be longer than ${limits.selectorBytes} bytes`;
  if (FORBIDDEN.test(value)) return 'a selector must not contain control or format characters';
  return '';
}

/**
 * @param {{ topics: readonly string[], id?: string, type?: string }} draft
 * @param {Limits} [limits]
 * @returns {string} '' or which limit it exceeds, for a 413
 */
export function checkSizes({ topics, id = '', type = '' }, limits = LIMITS) {
  if (topics.length > limits.topicsPerPublication)
    return `a publication must not have more than ${limits.topicsPerPublication} topics`;
  if (topics.some((topic) => exceeds(topic, limits.topicBytes)))
    return `a topic must not be longer than ${limits.topicBytes} bytes`;
  if (exceeds(id, limits.idBytes)) return `an id must not be longer than ${limits.idBytes} bytes`;
  if (exceeds(type, limits.typeBytes)) return `a type must not be longer than ${limits.typeBytes} bytes`;
  return '';
}

/** @param {string} text @param {number} bytes of UTF-8 */
function exceeds(text, bytes) {
  return text.length * 3 > bytes && Buffer.byteLength(text) > bytes;
}

/**
 * Whether a topic, as a URL, has the path of the hub or one below it, whatever its scheme and host. The URL parser removes
 * dot segments and turns backslashes; the rest of the disguises are percent-encoded characters that need not be.
 * @param {string} topic @param {string} baseUrl
 */
function isReserved(topic, baseUrl) {
  const url = resolve(topic, baseUrl);
  if (!url) return false;
  const path = decodeUnreserved(url.pathname);
  const own = reservedPath(baseUrl);
  return path === own || path.startsWith(`${own}/`);
}

/** @type {{ baseUrl: string, path: string }} of the last hub asked about: there is hardly ever another */
let last = { baseUrl: '', path: '' };

/** @param {string} baseUrl @returns {string} the path of the hub without a slash at the end; one at the root has its subscriptions */
function reservedPath(baseUrl) {
  if (last.baseUrl === baseUrl) return last.path;
  const path = decodeUnreserved(new URL(baseUrl).pathname).replace(/\/+$/, '') || '/subscriptions';
  last = { baseUrl, path };
  return path;
}

/** @param {string} path */
function decodeUnreserved(path) {
  return path.includes('%') ? path.replace(UNRESERVED, decodeURIComponent) : path;
}
