/*
 * Where the token of a request is: the Authorization header, then, in 0.x, the query, then a cookie. Pure. RFC 6750, section 2.
 */

const SCHEME = 'bearer ';
/** The cookie and the parameter of 0.x. */
const LEGACY_COOKIE = 'mercureAuthorization';
const LEGACY_PARAMETER = 'authorization';

/**
 * @typedef {object} Presented
 * @property {string} token
 * @property {boolean} isAmbient whether a browser sends it by itself, whatever page makes the request
 */

/** What was sent where a token belongs is none. */
export const MALFORMED = 'malformed';

/**
 * @param {import('./index.js').Request} request
 * @param {{ cookie: string, isLegacy: boolean }} how
 * @returns {Presented | typeof MALFORMED | null} null if there is none
 */
export function presentedIn({ headers, query = [] }, { cookie, isLegacy }) {
  const { authorization } = headers;
  if (authorization !== undefined) return bearerIn(authorization);
  const fromQuery = isLegacy ? parameterIn(query) : null;
  if (fromQuery) return fromQuery;
  const sent = headers.cookie;
  if (sent === undefined) return null;
  const token = cookieIn(sent, cookie) || (isLegacy ? cookieIn(sent, LEGACY_COOKIE) : '');
  return token ? { token, isAmbient: true } : null;
}

/** @param {string} header several are joined by ', ' @returns {Presented | typeof MALFORMED} */
function bearerIn(header) {
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return MALFORMED;
  const token = header.slice(SCHEME.length).trim();
  if (token === '' || token.includes(' ') || token.includes(',')) return MALFORMED;
  return { token, isAmbient: false };
}

/** @param {NonNullable<import('./index.js').Request['query']>} query @returns {Presented | typeof MALFORMED | null} */
function parameterIn(query) {
  const values = query.filter(([name]) => name === LEGACY_PARAMETER);
  if (values.length === 0) return null;
  const [[, token]] = values;
  return values.length > 1 || token === '' ? MALFORMED : { token, isAmbient: false };
}

/**
 * @param {string} header
 * @param {string} name
 * @returns {string} the value of the first cookie with this name, which browsers take from the most specific path; '' for none
 */
function cookieIn(header, name) {
  const found = header.split(';').find((pair) => pair.trimStart().startsWith(`${name}=`));
  if (found === undefined) return '';
  const value = found.slice(found.indexOf('=') + 1).trim();
  return /^".*"$/.test(value) ? value.slice(1, -1) : value;
}

/** @param {import('./index.js').Request['headers']} headers @returns {string} of the page that made the request; '' if unknown */
export function originOf({ origin, referer }) {
  if (origin !== undefined) return origin;
  if (referer === undefined || !URL.canParse(referer)) return '';
  const { protocol, host } = new URL(referer);
  return `${protocol}//${host}`;
}
