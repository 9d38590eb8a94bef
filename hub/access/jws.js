/*
 * The compact form of a signed token: three parts in base64url, separated by dots. Strict: no padding, no other characters, no
 * bits that are left over, so that a token has one spelling only. Pure. RFC 7515, sections 3.1 and 7.1.
 */
import { isUtf8 } from 'node:buffer';
import { TokenError } from './refusals.js';

/** The longest token; a request head can't have more by default. */
export const MOST_TOKEN_BYTES = 16_384;

/** Almost all tokens of an issuer have the same header. @type {Map<string, Header>} */
const headers = new Map();
const MOST_HEADERS = 64;
const MOST_HEADER_LENGTH = 256;

const MALFORMED = new TokenError('it is not a signed token');
const TOO_LONG = new TokenError(`it has more than ${MOST_TOKEN_BYTES} bytes`);
const CRITICAL = new TokenError('its header has "crit"');

/**
 * @typedef {object} Header only what we read; whatever names a key or brings one (jku, jwk, x5u, x5c) is not
 * @property {string} alg
 * @property {string} [kid]
 * @property {string} typ without 'application/', in lower case; '' if there is none
 *
 * @typedef {object} Jws
 * @property {Header} header
 * @property {Record<string, unknown>} claims not verified yet
 * @property {string} signed what the signature is of
 * @property {Buffer} signature
 */

/** @param {string} token @returns {Jws} @throws {TokenError} */
export function parseJws(token) {
  if (token.length > MOST_TOKEN_BYTES) throw TOO_LONG;
  const first = token.indexOf('.');
  const last = token.lastIndexOf('.');
  if (first < 0 || last <= first || last === token.length - 1) throw MALFORMED;
  return {
    header: headerIn(token.slice(0, first)),
    claims: objectOf(token.slice(first + 1, last)), // a dot in it is not base64url
    signed: token.slice(0, last),
    signature: bytesOf(token.slice(last + 1)),
  };
}

/** @param {string} part @returns {Header} */
function headerIn(part) {
  const known = headers.get(part);
  if (known) return known;
  const header = headerOf(objectOf(part));
  if (headers.size >= MOST_HEADERS) headers.clear();
  if (part.length <= MOST_HEADER_LENGTH) headers.set(Buffer.from(part).toString(), header); // a slice would keep the token
  return header;
}

/** @param {Record<string, unknown>} fields @returns {Header} */
function headerOf({ alg, kid, typ, crit }) {
  if (crit !== undefined) throw CRITICAL; // we know no extension
  if (typeof alg !== 'string' || !isTextOrNothing(kid) || !isTextOrNothing(typ)) throw MALFORMED;
  return { alg, kid, typ: (typ ?? '').toLowerCase().replace(/^application\//, '') };
}

/** @param {unknown} value @returns {value is string | undefined} */
function isTextOrNothing(value) {
  return value === undefined || typeof value === 'string';
}

/** @param {string} part @returns {Record<string, unknown>} */
function objectOf(part) {
  const bytes = bytesOf(part);
  if (!isUtf8(bytes)) throw MALFORMED;
  const value = parsedJson(bytes.toString());
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw MALFORMED;
  return /** @type {Record<string, unknown>} */ (value);
}

/** @param {string} text @returns {unknown} */
function parsedJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw MALFORMED;
  }
}

/** @param {string} part @returns {Buffer} */
function bytesOf(part) {
  const bytes = Buffer.from(part, 'base64url'); // skips what it doesn't know
  if (bytes.length === 0 || bytes.toString('base64url') !== part) throw MALFORMED;
  return bytes;
}
