/*
 * Queries and forms as names and values, by the rules of the URL standard, except that bytes which are not valid UTF-8 are an
 * error instead of U+FFFD. https://url.spec.whatwg.org/#urlencoded-parsing
 */
import { RequestError } from '../../lib/router.js';

/** @typedef {[name: string, value: string]} Pair */

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const ESCAPE = /%[0-9a-f]{2}/i;
const ODD_ESCAPE = /%(?![0-9a-f]{2})/i;
const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * @param {string} text 'a=1&b=2'; each character is a byte
 * @returns {Pair[]} a name without a value has an empty one
 * @throws {RequestError} 400
 */
export function pairsOf(text) {
  return text
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      return equals < 0
        ? [decoded(part), '']
        : [decoded(part.slice(0, equals)), decoded(part.slice(equals + 1))];
    });
}

/** @param {string} target such as '/path?a=1' @returns {string} its query, '' if there is none */
export function queryOf(target) {
  const mark = target.indexOf('?');
  if (mark < 0) return '';
  const hash = target.indexOf('#', mark);
  return target.slice(mark + 1, hash < 0 ? undefined : hash);
}

/** @param {readonly Pair[]} pairs @param {string} name @returns {string | undefined} of the first one */
export function valueIn(pairs, name) {
  return pairs.find(([found]) => found === name)?.[1];
}

/** @param {readonly Pair[]} pairs @param {string} name @returns {string[]} */
export function valuesIn(pairs, name) {
  return pairs.filter(([found]) => found === name).map(([, value]) => value);
}

/** @param {string} part @returns {string} */
function decoded(part) {
  const text = part.includes('+') ? part.replaceAll('+', ' ') : part;
  const isAscii = !BEYOND_ASCII.test(text);
  if (isAscii && !ESCAPE.test(text)) return text;
  try {
    if (isAscii && !ODD_ESCAPE.test(text)) return decodeURIComponent(text); // which is as strict, and fast
    const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    return strict.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new RequestError(400, 'a name or value of the query or form is not valid UTF-8');
  }
}
