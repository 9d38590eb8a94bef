/*
 * How a request with a token, or without one, is refused. RFC 6750, section 3, and RFC 9728, section 5.1.
 */
import { RequestError } from '../../lib/router.js';

const RETRY_AFTER_S = '1';

/**
 * What is wrong with a token. Clients learn only that it is not valid; the message is for the operator, and never contains
 * anything of the token. Errors of this kind are made once and thrown often, so their stacks say nothing.
 */
export class TokenError extends Error {}

/** Too many tokens wait for verification, or the keys can't be fetched now. */
export class BusyError extends Error {}

/** The answer to a request that is refused: `status`, `headers` with the challenge, and a message for the client. */
export class AccessError extends RequestError {}

/** Why a request is refused: its status, the error code of RFC 6750, and what the client is told. */
// biome-ignore format: a table reads best with one row per line
const REFUSALS = {
  missing:      { status: 401, code: '', message: 'this needs an access token' },
  malformed:    { status: 400, code: 'invalid_request', message: 'the access token must be sent once, as Authorization: Bearer TOKEN or as a cookie' },
  origin:       { status: 400, code: 'invalid_request', message: 'publishing with a cookie needs an Origin that is listed in publish-origins' },
  invalid:      { status: 401, code: 'invalid_token', message: 'the access token is not valid' },
  insufficient: { status: 403, code: 'insufficient_scope', message: 'the access token does not allow this' },
};

/** @typedef {keyof typeof REFUSALS} Refusal */

/**
 * @param {Refusal} refusal
 * @param {string} metadataUrl of the protected resource metadata; '' if unknown
 * @param {number} [status] if it is not the usual one
 * @returns {AccessError}
 */
export function refusal(refusal, metadataUrl, status = REFUSALS[refusal].status) {
  const { code, message } = REFUSALS[refusal];
  return new AccessError(status, message, { 'WWW-Authenticate': challengeOf(code, metadataUrl) });
}

/** @returns {AccessError} 503 */
export function unavailable() {
  return new AccessError(503, "tokens can't be checked now", { 'Retry-After': RETRY_AFTER_S });
}

/** @param {string} code @param {string} metadataUrl @returns {string} 'Bearer error="invalid_token", resource_metadata="…"' */
function challengeOf(code, metadataUrl) {
  const parameters = [
    ...(code ? [`error="${code}"`] : []),
    ...(metadataUrl ? [`resource_metadata="${metadataUrl}"`] : []),
  ];
  return ['Bearer', parameters.join(', ')].filter(Boolean).join(' ');
}
