/*
 * What the streams of a drone subscribe to, and the request for it. Pure.
 */
import { partsOf } from '../formats/request.js';
import { hostOf, withQuery } from '../request.js';
import { placesOf } from './servers.js';
import { mapText, piece, templateOf, textPiece } from './template.js';

/** Where hubs are, by the standard. */
export const HUB_PATH = '/.well-known/mercure';

/** Text is what a hub has as events. */
const EVENTS = { headers: 'Accept: text/event-stream\r\n' };

/** @param {import('../params.js').Params} params @returns {string} */
function pathOf({ path }) {
  return path === '/' ? HUB_PATH : path;
}

/** @param {import('../params.js').Params} params @returns {string} the URL of the hub, without the scheme */
export function hubOf(params) {
  return `//${hostOf(params)}${pathOf(params)}`;
}

/** @param {import('../params.js').Params} params @returns {string[]} the URL of the hub at each server, by its first port */
export function hubsOf(params) {
  const scheme = params.tls ? 'https' : 'http';
  return placesOf(params).map((place) => `${scheme}:${hubOf({ ...params, ...place })}`);
}

/**
 * How tokens are made.
 * @param {import('../params.js').Params} params @returns {import('./tokens.js').Signer | null} null if none are
 */
export function signerFor(params) {
  const { tokenSecret: secret, tokenDialect: dialect, tokenTtl: ttlS, tokenClaims } = params;
  if (secret === '') return null;
  // The draft asks for an audience: the URL of the hub, by default.
  const audience = dialect === '0.x' ? {} : { aud: `https:${hubOf(params)}` };
  return { secret, dialect, ttlS, claims: { ...audience, ...(tokenClaims ? JSON.parse(tokenClaims) : {}) } };
}

/** @param {import('../params.js').Params} params @returns {import('../dial.js').Subscription | null} null without topics */
export function subscriptionOf(params) {
  const { topic, mercureLegacy, token, tokenSecret, tokenShared, first, step, format, wait } = params;
  if (topic.length === 0) return null;
  const { headers } = partsOf(params) ?? EVENTS;
  const topics = topic.map((text) => templateOf(text) ?? []);
  const name = mercureLegacy ? 'topic=' : 'match=';
  const matches = topics.flatMap((one, i) => [
    textPiece(i === 0 ? name : `&${name}`),
    ...mapText(one, encodeURIComponent),
  ]);
  const hasToken = token !== '' || tokenSecret !== '';
  const request = [
    textPiece(`GET ${withQuery(pathOf(params), '')}`),
    ...(format === 'poll' ? [textPiece('wait='), piece('wait', wait), textPiece('&')] : []),
    ...matches,
    textPiece(` HTTP/1.1\r\nHost: ${hostOf(params)}\r\n${headers}`),
    ...(hasToken ? [textPiece('Authorization: Bearer '), piece('token'), textPiece('\r\n')] : []),
    piece('cursor'),
    textPiece('\r\n'),
  ];
  return { request, topics, first, step, isTokenShared: token !== '' || tokenShared };
}
