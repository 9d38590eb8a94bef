/*
 * Who may use the admin port.
 *
 * Without --admin-token it is for this machine: it listens on loopback, and everybody there may use it. The danger are web pages in
 * a browser on this machine. A page whose own name was made to resolve to 127.0.0.1 (DNS rebinding) sends that name as Host, so other names
 * are refused. A page of another origin can send requests, but not read answers; browsers say so in Origin and Sec-Fetch-Site, and
 * whatever changes something is refused then. Buttons of our own page also send X-Holdfast, which other origins can't without
 * a permission (CORS) that is never given. A proxy here that passes on requests from elsewhere adds one of PROXY_HEADERS: then a
 * token is required.
 *
 * With --admin-token, everything but /healthz, /readyz and the login needs it, from this machine too:
 * - `Authorization: Bearer`: no page has the token, and no browser adds it by itself. So neither the Host nor the origin matters.
 * - A cookie, which the login gives for the token. Browsers add it by themselves, but only for the name at which somebody logged in, so
 *   rebinding another name gets nothing, and the Host need not be known. SameSite=Strict keeps it from pages of other sites; those of the
 *   same site (another port of this host) are refused by the origin, as above. It also goes to other ports of this host: it has a
 *   value made from the token, not the token, and it ends.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { PROXY_HEADERS } from '../lib/local.js';
import { RequestError } from '../lib/router.js';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {'local' | 'bearer' | 'session'} Way how a request was let in */

/** The names of loopback. */
const OWN_NAME = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;
/** Sec-Fetch-Site of requests that no other page made. */
const OWN_SITES = ['same-origin', 'none'];
/** What needs no token: probes, and where one can be given. */
const PROBES = ['/healthz', '/readyz'];
const ENTRANCES = ['/', '/login'];
const SESSION_S = 12 * 3600;
/** A wrong token is answered after this time, and so many at once. A right one never waits, so nobody can be locked out. */
const WRONG_MS = 1000;
const MOST_WRONG = 16;
/** Of the same name: another path or host of the same site may have set one. */
const MOST_COOKIES = 4;

export class Access {
  /** @param {{ host: string, token: string }} options `token` is '' for none */
  constructor({ host, token }) {
    this.token = token;
    this.ownHost = host.includes(':') ? `[${host}]` : host;
    /** Known once the port is open; servers on other ports of this host have other cookies. */
    this.cookie = 'holdfast-admin';
    this.key = createHmac('sha256', 'holdfast admin session').update(token).digest();
    /** Wrong tokens that wait for their answer. */
    this.wrong = 0;
  }

  /** @param {number} port */
  useCookieOf(port) {
    this.cookie = `holdfast-admin-${port}`;
  }

  /**
   * Every request passes here first.
   * @param {IncomingMessage} request
   * @throws {RequestError} 401, 403, 429
   */
  async check(request) {
    const [path] = (request.url ?? '').split('?', 1);
    if (![...PROBES, ...ENTRANCES].includes(path) && request.headers['sec-fetch-mode'] !== 'navigate')
      this.checkSite(request);
    if (!this.token) return this.checkLocal(request, path);
    if (PROBES.includes(path) || this.wayOf(request)) return;
    if (bearerOf(request) !== undefined) await this.slowDown();
    else if (ENTRANCES.includes(path)) return;
    throw new RequestError(401, 'the admin port needs the token of --admin-token (Authorization: Bearer)', {
      'WWW-Authenticate': 'Bearer realm="holdfast"',
    });
  }

  /** @param {IncomingMessage} request @returns {Way | null} null if it has no right token */
  wayOf(request) {
    if (!this.token) return 'local';
    const given = bearerOf(request);
    if (given !== undefined) return this.isToken(given) ? 'bearer' : null;
    return this.sessionEndMs(request) > Date.now() ? 'session' : null;
  }

  /** @param {string} given */
  isToken(given) {
    return isSame(given, this.token);
  }

  /** Answers to wrong tokens take a while. @returns {Promise<void>} @throws {RequestError} 429 */
  async slowDown() {
    if (this.wrong >= MOST_WRONG)
      throw new RequestError(429, 'too many wrong tokens: try again later', { 'Retry-After': '1' });
    this.wrong++;
    await new Promise((resolve) => setTimeout(resolve, WRONG_MS));
    this.wrong--;
  }

  /** @param {IncomingMessage} request with the right token @returns {string} the value of Set-Cookie */
  sessionFor({ headers }) {
    const endS = Math.floor(Date.now() / 1000) + SESSION_S;
    const isTls = headers['x-forwarded-proto'] === 'https'; // a proxy says so; a lie only locks out the liar
    const value = `${endS}.${this.signatureOf(endS)}`;
    return `${this.cookie}=${value}; Path=/; Max-Age=${SESSION_S}; HttpOnly; SameSite=Strict${isTls ? '; Secure' : ''}`;
  }

  /** @param {IncomingMessage} request @returns {number} when its session ends, in ms since 1970; 0 if it has none */
  sessionEndMs({ headers }) {
    const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
    for (const [, value = ''] of pairs.filter(([name]) => name === this.cookie).slice(0, MOST_COOKIES)) {
      const [, endS, signature] = /^(\d{1,12})\.([\w-]{43})$/.exec(value) ?? [];
      if (endS && isSame(signature, this.signatureOf(Number(endS)))) return Number(endS) * 1000;
    }
    return 0;
  }

  /** @param {number} endS */
  signatureOf(endS) {
    return createHmac('sha256', this.key).update(String(endS)).digest('base64url');
  }

  /** @param {IncomingMessage} request @param {string} path @throws {RequestError} 403 */
  checkLocal(request, path) {
    this.checkHost(request);
    const header = PROXY_HEADERS.find((name) => request.headers[name] !== undefined);
    if (header && !PROBES.includes(path))
      throw new RequestError(403, `got the header ${header} of a proxy: start the server with --admin-token`);
  }

  /** @param {IncomingMessage} request @throws {RequestError} 403 */
  checkHost({ headersDistinct: { host = [] } }) {
    const [name = ''] = host;
    const isOwn = OWN_NAME.test(name) || name.replace(/:\d+$/, '') === this.ownHost;
    if (host.length === 1 && isOwn) return;
    const given = host.length === 0 ? 'no Host' : `Host: ${host.join(', ')}`;
    throw new RequestError(403, `got ${given}: expected localhost, 127.0.0.1 or [::1]`);
  }

  /** Refuses to publish for web pages, our own one too. @param {IncomingMessage} request @throws {RequestError} 403 */
  checkNoPage(request) {
    if (this.wayOf(request) === 'bearer') return;
    if (request.headers.origin === undefined && isOwnSite(request)) return;
    throw new RequestError(403, 'requests from web pages are refused');
  }

  /** Pages of other origins can't read answers, but could keep the server busy. @param {IncomingMessage} request @throws {RequestError} 403 */
  checkSite(request) {
    if (this.wayOf(request) !== 'bearer' && !isOwnSite(request))
      throw new RequestError(403, 'requests from other web pages are refused');
  }

  /** Only our own page, and programs, may do this. @param {IncomingMessage} request @throws {RequestError} 403 */
  checkOwnPage(request) {
    if (this.wayOf(request) === 'bearer') return;
    const { origin, host } = request.headers;
    const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
    if (!isOwn || !isOwnSite(request))
      throw new RequestError(403, 'requests from other web pages are refused');
    if (request.headers['x-holdfast'] !== '1')
      throw new RequestError(403, 'expected the header X-Holdfast: 1');
  }
}

/** @param {IncomingMessage} request */
function isOwnSite({ headers }) {
  return OWN_SITES.includes(String(headers['sec-fetch-site'] ?? 'none'));
}

/** @param {IncomingMessage} request @returns {string | undefined} undefined if it has no token */
function bearerOf({ headers: { authorization = '' } }) {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
}

/** In constant time. @param {string} given @param {string} expected */
function isSame(given, expected) {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one, other);
}
