/*
 * The subscription API: who is subscribed to what, for those whose token grants the path of the request as a topic.
 *
 *     draft-08   …/subscriptions    …/subscriptions/{match_type}/{match}    …/subscriptions/{match_type}/{match}/{subscriber}
 *     0.x        …/subscriptions    …/subscriptions/{topic}                 …/subscriptions/{topic}/{subscriber}
 *
 * Where the two have the same form, the dialect is that of the token.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { codeOf, messageOf } from '../../lib/errors.js';
import { RequestError } from '../../lib/router.js';
import { keysOfMatch, keysOfTopic, pathOf, withContext } from '../presence/texts.js';
import { nothingThere } from './protocol.js';
import { pairsOf, queryOf } from './query.js';

const CONTENT_TYPES = { draft: 'application/json', legacy: 'application/ld+json' };
const NONE = 'earliest';
/** A quoted tag, which may be weak. RFC 9110, section 8.8.3. */
const TAG = /^(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const RETRY_AFTER_S = '1';
/** Headers of every answer about subscriptions. Only the client may keep one, and has to ask whether it still holds. */
const HEADERS = {
  'Cache-Control': 'private, must-revalidate, max-age=0',
  Vary: 'Authorization, Cookie',
  'X-Content-Type-Options': 'nosniff',
};

/** @typedef {import('../index.js').Hub} Hub */
/** @typedef {import('../index.js').Answer} Answer */
/** @typedef {import('../access/grants.js').Dialect} Dialect */
/** @typedef {import('./protocol.js').Request} Request */
/** @typedef {import('../presence/local.js').Listing} Listing */
/** @typedef {import('../streams/cursor.js').Cursors} Cursors */

/**
 * What a path asks for.
 * @typedef {object} Asked
 * @property {Dialect} dialect
 * @property {string} path as templates make it, whatever the client has encoded
 * @property {string[] | null} keys of selectors; null for all
 * @property {string} subscriber '' for all
 */

/**
 * @param {Hub} hub
 * @param {Request} request whose path is that of the API
 * @returns {Promise<Answer>}
 * @throws {RequestError} 400, 401, 403, 404, 503
 */
export async function answerSubscriptions(hub, request) {
  const { presence } = hub.core;
  if (!presence) throw nothingThere();
  const asked = await askedBy(hub, request);
  const { dialect, keys, subscriber } = asked;
  const { cursors } = hub.core.order; // if it ends meanwhile, nobody can mistake the cursor of the list for one of the next order
  const unless = sequencesIn(request.headers['if-none-match'], cursors);
  const listing = await presence.list({ dialect, keys, subscriber, unless }).catch(unavailable);
  if (listing.state === 'long')
    throw new RequestError(503, 'there are too many subscriptions to list: ask for those of one topic');
  if (subscriber !== '' && listing.count === 0) throw new RequestError(404, 'there is no such subscription');
  const answer = answerOf(hub, cursors, asked, listing);
  await endOfTurn(); // copying a long list took a while, and so does sending it
  const cors = hub.corsOf(request);
  const Vary = [HEADERS.Vary, cors.Vary].filter(Boolean).join(', ');
  return { ...answer, headers: { ...answer.headers, ...cors, Vary } };
}

/** @param {Hub} hub @param {Request} request @returns {Promise<Asked>} if its token allows it */
async function askedBy(hub, request) {
  const segments = segmentsOf(request.target, hub.path);
  const withQuery = { ...request, query: pairsOf(queryOf(request.target)) };
  const session = await hub.accessTo(withQuery);
  const access = await hub.opened;
  if (!session) throw access.insufficient(withQuery, null); // even if everybody may subscribe
  const asked = askedIn(segments, session.dialect, hub);
  if (session.subscribe.some((grant) => grant.matches(asked.path))) return asked;
  throw access.insufficient(withQuery, session);
}

/** @param {string} target @param {string} hubPath @returns {string[]} what follows /subscriptions, decoded */
function segmentsOf(target, hubPath) {
  const [path] = target.slice(`${hubPath}/subscriptions`.length).split(/[?#]/, 1);
  if (path === '') return [];
  return path.slice(1).split('/').map(decoded);
}

/** @param {string} segment @returns {string} */
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new RequestError(400, 'a part of the path is not valid UTF-8 in percent-encoding');
  }
}

/** @param {string[]} segments @param {Dialect} own of the token @param {Hub} hub @returns {Asked} */
function askedIn(segments, own, { path: hubPath, rules }) {
  const path = pathOf(hubPath, segments);
  const dialect =
    { 1: /** @type {const} */ ('legacy'), 3: /** @type {const} */ ('draft') }[segments.length] ?? own;
  const isKnown =
    segments.length <= 3 && !segments.includes('') && (dialect === 'draft' || rules.isLegacyAllowed);
  if (!isKnown) throw nothingThere();
  if (segments.length === 0) return { dialect, path, keys: null, subscriber: '' };
  if (dialect === 'legacy') {
    const [topic, subscriber = ''] = segments;
    return { dialect, path, keys: keysOfTopic(topic), subscriber };
  }
  const [type, match, subscriber = ''] = segments;
  const keys = keysOfMatch(type, match);
  if (!keys) throw new RequestError(400, 'this match type is unknown: use exact or urlpattern');
  return { dialect, path, keys, subscriber };
}

/** @param {string | undefined} header If-None-Match @param {Cursors} cursors @returns {number[] | '*'} for which the client has an answer */
function sequencesIn(header, cursors) {
  if (header === undefined) return [];
  if (header.trim() === '*') return '*';
  return header.split(',').flatMap((part) => {
    const id = TAG.exec(part.trim())?.[1];
    if (id === NONE) return [0];
    return (id !== undefined && cursors.read(id)) || [];
  });
}

/** @param {Hub} hub @param {Cursors} cursors @param {Asked} asked @param {Listing} listing @returns {Answer} */
function answerOf(hub, cursors, { dialect, path, subscriber }, { sequence, state, parts }) {
  const type = CONTENT_TYPES[dialect];
  const lastId = sequence === 0 ? NONE : cursors.of(sequence);
  const headers = {
    ...HEADERS,
    ETag: `"${lastId}"`,
    Link: `<${hub.path}>; rel="mercure"; last-event-id="${lastId}"; type="mercure"; content-type="${type}"`,
  };
  if (state === 'same') return { status: 304, headers };
  const body = subscriber === '' ? listOf(dialect, path, lastId, parts) : single(dialect, lastId, parts);
  return { status: 200, headers: { ...headers, 'Content-Type': type }, body };
}

/** @param {Dialect} dialect @param {string} path @param {string} lastId @param {Buffer[]} parts @returns {Buffer} */
function listOf(dialect, path, lastId, parts) {
  const id = JSON.stringify(path);
  const start =
    dialect === 'draft'
      ? `{"id":${id},"type":"subscriptions","subscriptions":[`
      : withContext(`{"id":${id},"type":"Subscriptions","lastEventID":"${lastId}","subscriptions":[`);
  return Buffer.concat([Buffer.from(start), ...parts, Buffer.from(']}\n')]);
}

/** @param {Dialect} dialect @param {string} lastId @param {Buffer[]} parts one object @returns {string} */
function single(dialect, lastId, parts) {
  const json = Buffer.concat(parts).toString();
  return `${dialect === 'draft' ? json : withContext(`{"lastEventID":"${lastId}",${json.slice(1)}`)}\n`;
}

/** @param {unknown} error @returns {never} */
function unavailable(error) {
  if (codeOf(error) !== 'BUSY') throw error;
  throw new RequestError(503, messageOf(error), { 'Retry-After': RETRY_AFTER_S });
}
