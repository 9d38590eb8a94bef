/*
 * Which dialect a token is in, and whether its registered claims let it in. Pure. RFC 9068, section 4; RFC 8725.
 *
 * The claims decide about the dialect, never the request, so nobody can choose the laxer rules for a token:
 *
 *     has authorization_details      draft-08; the claim of 0.x is ignored
 *     typ is at+jwt                  the rules of draft-08 for typ, exp and aud, even if its only claim is that of 0.x
 *     has mercure                    0.x, if it is accepted (--mercure-legacy on)
 *     anything else                  refused: it was made for something else
 *
 * exp is checked without a tolerance, because streams end at exp. nbf may be a few seconds ahead: the clock of the issuer is
 * not ours, and issuers set nbf to now.
 */
import { hasLegacyGrants } from './grants.js';
import { TokenError } from './refusals.js';

const AHEAD_MS = 5000;
const ACCESS_TOKEN = 'at+jwt';
/** What a token of 0.x may call itself. An ID token or a logout token must not pass for one. */
const LEGACY_TYPES = ['', 'jwt', ACCESS_TOKEN];

const NO_TYPE = new TokenError('its typ is not at+jwt');
const STRANGE_TYPE = new TokenError('its typ is neither JWT nor at+jwt');
const NO_GRANTS = new TokenError('it has no claims of Mercure');
const NO_EXPIRY = new TokenError('it has no exp');
const EXPIRED = new TokenError('it has expired');
const EARLY = new TokenError('it is not valid yet');
const BAD_TIME = new TokenError('its exp or nbf is not a number');
const OTHER_ISSUER = new TokenError('it is of another issuer');
const OTHER_AUDIENCE = new TokenError('it is for another audience');

/** @typedef {import('./grants.js').Dialect} Dialect */
/** @typedef {Record<string, unknown>} Claims */

/**
 * @typedef {object} Rules
 * @property {string} issuer that every token must have; '' for any
 * @property {string} audience that every token must have; '' for the URL of the hub, in draft-08 only
 * @property {boolean} isLegacyAllowed
 *
 * @typedef {object} Facts
 * @property {Dialect} dialect
 * @property {number} expiresAtMs Infinity if never
 * @property {readonly string[] | null} audiences one of which must be the URL of the hub; null if that was checked, or needn't be
 */

/**
 * @param {string} typ of the header, as `parseJws` gives it
 * @param {Claims} claims
 * @param {Rules} rules
 * @param {number} nowMs
 * @returns {Facts}
 * @throws {TokenError}
 */
export function checkClaims(typ, claims, rules, nowMs) {
  const isAccessToken = typ === ACCESS_TOKEN;
  const dialect = dialectOf(isAccessToken, claims, rules.isLegacyAllowed);
  if (dialect === 'draft' && !isAccessToken) throw NO_TYPE;
  if (!isAccessToken && !LEGACY_TYPES.includes(typ)) throw STRANGE_TYPE;
  const expiresAtMs = expiryOf(claims, nowMs);
  if (isAccessToken && expiresAtMs === Number.POSITIVE_INFINITY) throw NO_EXPIRY;
  if (rules.issuer && claims.iss !== rules.issuer) throw OTHER_ISSUER;
  return { dialect, expiresAtMs, audiences: audiencesOf(claims, rules, isAccessToken) };
}

/** @param {boolean} isAccessToken @param {Claims} claims @param {boolean} isLegacyAllowed @returns {Dialect} */
function dialectOf(isAccessToken, claims, isLegacyAllowed) {
  if (claims.authorization_details !== undefined) return 'draft';
  if (isLegacyAllowed && hasLegacyGrants(claims)) return 'legacy';
  if (isAccessToken) return 'draft'; // it grants nothing
  throw NO_GRANTS;
}

/** @param {Claims} claims @param {number} nowMs @returns {number} */
function expiryOf({ exp, nbf }, nowMs) {
  if (!isTimeOrNothing(exp) || !isTimeOrNothing(nbf)) throw BAD_TIME;
  if (nbf !== undefined && nbf * 1000 > nowMs + AHEAD_MS) throw EARLY;
  if (exp === undefined) return Number.POSITIVE_INFINITY;
  if (exp * 1000 <= nowMs) throw EXPIRED;
  return exp * 1000;
}

/** @param {unknown} value @returns {value is number | undefined} */
function isTimeOrNothing(value) {
  return value === undefined || (typeof value === 'number' && Number.isFinite(value));
}

/** @param {Claims} claims @param {Rules} rules @param {boolean} isAccessToken @returns {readonly string[] | null} */
function audiencesOf({ aud }, { audience }, isAccessToken) {
  if (!audience && !isAccessToken) return null;
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((one) => typeof one === 'string')) throw OTHER_AUDIENCE;
  if (!audience) return audiences;
  if (!audiences.includes(audience)) throw OTHER_AUDIENCE;
  return null;
}
