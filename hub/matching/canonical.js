/*
 * Brings fixed text of a URL pattern into the form that the URL parser gives to the same component of a topic:
 * https://urlpattern.spec.whatwg.org/#canon-encoding-callbacks. The parser is Node's own: a component is set in a dummy URL.
 */
import { resolve } from './address.js';
import { PatternError } from './tokens.js';

/** @typedef {import('./split.js').Component} Component */

/** Its scheme is not special, as the standard says: quotes in a search are not encoded, backslashes are no slashes. */
const DUMMY = 'dummy://dummy.invalid';

/** A part of a URL would keep all of it in memory. @param {string} text @param {string} value */
const same = (text, value) => (text === value ? value : text);

/** @param {string} value */
function protocol(value) {
  if (!/^[a-z][a-z0-9+.-]*$/i.test(value)) throw new PatternError('the scheme is not valid');
  return value.toLowerCase();
}

/** @param {string} value what follows a slash, `?`, `#` or backslash is ignored, as the standard says */
function hostname(value) {
  const [host] = value.split(/[/?#\\]/, 1);
  const url = /[:@]/.test(host) ? null : resolve(`https://${host}/`);
  if (!url) throw new PatternError('the host is not valid');
  return same(url.hostname, value);
}

/** @param {string} value */
function ipv6(value) {
  if (!/^[0-9a-f[\]:]*$/i.test(value)) throw new PatternError('the host is not valid');
  return value.toLowerCase();
}

/** @param {string} value what follows the digits is ignored, as the standard says */
function port(value) {
  const digits = /^[0-9]+/.exec(value)?.[0] ?? '';
  if (digits === '' || Number(digits) > 65_535) throw new PatternError('the port is not valid');
  return String(Number(digits));
}

/**
 * Node 20 makes '' of `/..`.
 * @param {string} value may be a piece that does not start with a slash: the dash keeps `.` and `..` from being segments
 */
function pathname(value) {
  const isWhole = value[0] === '/';
  const url = new URL(DUMMY);
  url.pathname = isWhole ? value : `/-${value}`;
  if (isWhole) return same(url.pathname || '/', value);
  if (url.pathname.length < 2) throw new PatternError('the path leads above a group');
  return same(url.pathname.slice(2), value);
}

/** @param {string} value of a URL whose scheme is not special, such as urn:a:b. Two slashes must not become an authority */
function opaque(value) {
  return value.startsWith('//')
    ? new URL(`data:-${value}`).pathname.slice(1)
    : new URL(`data:${value}`).pathname;
}

/**
 * @param {'username' | 'password' | 'search' | 'hash'} name
 * @param {string} sign that precedes it in the URL, and is not part of it
 * @returns {(value: string) => string}
 */
const setter = (name, sign) => (value) => {
  const url = new URL(DUMMY);
  url[name] = sign + value;
  return same(url[name].slice(sign.length), value);
};

/** @type {Record<Component | 'ipv6' | 'opaque', (value: string) => string>} */
export const CANONICAL = {
  protocol,
  username: setter('username', ''),
  password: setter('password', ''),
  hostname,
  ipv6,
  port,
  pathname,
  opaque,
  search: setter('search', '?'),
  hash: setter('hash', '#'),
};
