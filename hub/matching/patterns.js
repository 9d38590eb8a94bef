/*
 * URL patterns: https://urlpattern.spec.whatwg.org, with the same answers as Node 24 gives, on all versions of Node and in linear time.
 * `ignoreCase` is never set. What differs:
 *
 *   regular expressions     are refused, except for those that say the same as :name or *
 *   the base URL            is only used for relative patterns. Node resolves `urn:*` against it, and gets urn:/.well-known/*
 *   foo:////a               starts with two slashes, as topics do. Node takes what follows for a host, and forgets it
 */
import { CANONICAL } from './canonical.js';
import { compile, fits } from './component.js';
import { split } from './split.js';

/**
 * @typedef {import('./split.js').Component} Component
 * @typedef {import('./split.js').Components} Components
 * @typedef {import('./component.js').Compiled} Compiled
 * @typedef {import('./parts.js').Syntax} Syntax
 */

/** The special schemes, with their default ports. */
const PORTS = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ws', '80'],
  ['wss', '443'],
  ['ftp', '21'],
  ['file', ''],
]);
/** What a relative pattern takes from the base: all of these before the first that it has itself. @type {Component[]} */
const INHERITED = ['protocol', 'hostname', 'port', 'pathname', 'search', 'hash'];

/** @param {(text: string) => string} canonical @param {string} [delimiter] @param {string} [prefix] @returns {Syntax} */
const syntax = (canonical, delimiter = '', prefix = '') => ({ canonical, delimiter, prefix });

const SYNTAX = {
  protocol: syntax(CANONICAL.protocol),
  username: syntax(CANONICAL.username),
  password: syntax(CANONICAL.password),
  hostname: syntax(CANONICAL.hostname, '.'),
  ipv6: syntax(CANONICAL.ipv6, '.'),
  port: syntax(CANONICAL.port),
  pathname: syntax(CANONICAL.pathname, '/', '/'),
  opaque: syntax(CANONICAL.opaque),
  search: syntax(CANONICAL.search),
  hash: syntax(CANONICAL.hash),
};

/** Compiled: what each component has to be. */
export class UrlPattern {
  /**
   * @param {string} value
   * @param {string} baseUrl of the hub, for patterns that are relative
   * @throws {import('./tokens.js').PatternError}
   */
  constructor(value, baseUrl) {
    const components = componentsOf(value, baseUrl);
    const of = (/** @type {Component} */ name, chosen = SYNTAX[name]) =>
      compile(components[name] ?? '*', chosen);
    this.protocol = of('protocol');
    const isSpecial = matchesSpecial(this.protocol);
    this.username = of('username');
    this.password = of('password');
    this.hostname = of('hostname', isIpv6(components.hostname) ? SYNTAX.ipv6 : SYNTAX.hostname);
    this.port = of('port');
    this.pathname = of('pathname', isSpecial ? SYNTAX.pathname : SYNTAX.opaque);
    this.search = of('search');
    this.hash = of('hash');
  }

  /** @param {URL} url @returns {boolean} */
  matches(url) {
    return (
      fits(this.pathname, url.pathname) &&
      fits(this.hostname, url.hostname) &&
      fits(this.protocol, url.protocol.slice(0, -1)) &&
      fits(this.port, url.port) &&
      fits(this.search, url.search.slice(1)) &&
      fits(this.hash, url.hash.slice(1)) &&
      fits(this.username, url.username) &&
      fits(this.password, url.password)
    );
  }
}

/** @param {string} value @param {string} baseUrl @returns {Components} */
function componentsOf(value, baseUrl) {
  const given = split(value, (protocol) => matchesSpecial(compile(protocol, SYNTAX.protocol)));
  given.search = given.search?.replace(/^\?/, '');
  given.hash = given.hash?.replace(/^#/, '');
  if (given.protocol === undefined) inherit(given, new URL(baseUrl));
  if (given.protocol && PORTS.get(given.protocol) === given.port) given.port = '';
  return given;
}

/** @param {Components} given changed @param {URL} base */
function inherit(given, base) {
  for (const name of INHERITED) {
    if (given[name] !== undefined) break;
    given[name] = quote(name === 'protocol' ? base.protocol.slice(0, -1) : base[name].replace(/^[?#]/, ''));
  }
  if (!isAbsolute(given.pathname ?? ''))
    given.pathname = quote(base.pathname.slice(0, base.pathname.lastIndexOf('/') + 1)) + given.pathname;
}

/** @param {string} pathname */
function isAbsolute(pathname) {
  return /^[\\{]?\//.test(pathname);
}

/** @param {string} [hostname] */
function isIpv6(hostname = '') {
  return /^(?:\[.|[\\{]\[)/u.test(hostname);
}

/** @param {Compiled} protocol */
function matchesSpecial(protocol) {
  if (typeof protocol === 'string') return PORTS.has(protocol);
  return [...PORTS.keys()].some((scheme) => fits(protocol, scheme));
}

/** @param {string} text @returns {string} a pattern that matches it and nothing else */
function quote(text) {
  return text.replace(/[+*?:{}()\\]/g, '\\$&');
}
