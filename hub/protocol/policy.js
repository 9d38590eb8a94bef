/*
 * Decides about the requests that a Hold asks about. A subscription becomes a stream, publications and whatever else has a body
 * are passed on to handler.js.
 *
 * Clients send the same heads over and over, and a Hold gives us the same headers object for the same head. So what a head asks for
 * is worked out once, and is used as long as its token is valid.
 */
import { WISH_HEADERS } from '../../lib/wishes.js';
import { HEADERS as ACCESS_HEADERS } from '../access/index.js';
import { FORMATS } from '../streams/formats.js';
import { LimitError } from '../streams/limits.js';
import { labelsOf } from '../streams/openings.js';
import { headersOf, placed, pollAnswer, textOf } from './beginnings.js';
import { NOSNIFF, requestErrorOf, resourceOf } from './protocol.js';

/** Headers that `decide` reads. */
export const HEADERS = [...ACCESS_HEADERS, ...WISH_HEADERS, 'last-event-id', 'if-none-match'];

/** @typedef {import('../index.js').Hub} Hub */
/** @typedef {import('../index.js').Subscriber} Subscriber */
/** @typedef {import('./protocol.js').Request} Request */

/**
 * As the policy of a Hold has them.
 * @typedef {{ hold: import('../streams/formats.js').Format['hold'], channels: readonly string[], headers: Record<string, string>, welcome?: string, waitMs?: number, tag?: string, labels?: import('../streams/core.js').Labels | undefined }} HoldDecision
 * @typedef {{ answer: import('../index.js').Answer }} AnswerDecision
 * @typedef {HoldDecision | AnswerDecision | { refuse: number, headers?: Record<string, string>, body?: string } | { pass: true }} Decision
 */

/**
 * @param {Hub} hub
 * @param {Request} request a head of the Hold
 * @param {number} id of the stream, if it is held
 * @returns {Decision | Promise<Decision | (() => Decision)>}
 */
export function decide(hub, request, id) {
  try {
    const decision = decisionOn(hub, request, id);
    if (!(decision instanceof Promise)) return decision;
    return decision.catch((/** @type {unknown} */ error) => refused(hub, request, error));
  } catch (error) {
    return refused(hub, request, error);
  }
}

/** @param {Hub} hub @param {Request} request @param {number} id @returns {Decision | Promise<Decision | (() => Decision)>} */
function decisionOn(hub, request, id) {
  const { method, target } = request;
  const resource = resourceOf(target, hub.path);
  if (resource !== 'stream') return resource === null ? { refuse: 404 } : toAnswer(hub, request);
  if (method === 'GET' || method === 'HEAD') return subscribe(hub, request, id);
  return method === 'POST' || method === 'QUERY' ? PASS : toAnswer(hub, request);
}

/** @type {{ pass: true }} */
const PASS = { pass: true };

/** @param {Hub} hub @param {Request} request @returns {AnswerDecision | Promise<AnswerDecision>} */
function toAnswer(hub, request) {
  const answer = hub.answer(request);
  return answer instanceof Promise ? answer.then(decided) : decided(answer);
}

/** @param {import('../index.js').Answer} answer @returns {AnswerDecision} */
function decided({ headers, ...answer }) {
  return { answer: { ...answer, headers: { ...NOSNIFF, ...headers } } };
}

/** @param {Hub} hub @param {Request} request @param {number} id @returns {Decision | Promise<() => Decision>} */
function subscribe(hub, request, id) {
  hub.core.limits?.open(request.address ?? '');
  const subscriber = hub.subscribers.of(request);
  if (subscriber instanceof Promise) return openLater(hub, request, subscriber, id);
  const opening = prepare(hub, subscriber);
  if (opening instanceof Promise)
    return opening.then((one) => () => heldOrRefused(hub, request, subscriber, one, id));
  return held(hub, request, subscriber, opening, id);
}

/** @param {Hub} hub @param {Subscriber} subscriber */
function prepare(hub, { cursor, place, format }) {
  return hub.core.prepare(cursor, place, FORMATS[format].script);
}

/** @param {Hub} hub @param {Request} request @param {Promise<Subscriber>} promise @param {number} id */
async function openLater(hub, request, promise, id) {
  const subscriber = await promise;
  const opening = await prepare(hub, subscriber);
  return () => heldOrRefused(hub, request, subscriber, opening, id);
}

/**
 * @param {Hub} hub @param {Request} request @param {Subscriber} subscriber
 * @param {import('../streams/openings.js').Opening} opening @param {number} id
 * @returns {Decision} to be carried out at once
 */
function heldOrRefused(hub, request, subscriber, opening, id) {
  try {
    return held(hub, request, subscriber, opening, id);
  } catch (error) {
    return refused(hub, request, error);
  }
}

/** @type {typeof heldOrRefused} throws a RequestError */
function held(hub, { method, address = '' }, subscriber, opening, id) {
  const { format, dialect, mayPublish } = subscriber;
  const { hold } = FORMATS[format];
  const { reported } = opening;
  if (method === 'HEAD') return { hold, headers: headersOf(subscriber, reported, undefined), channels: [] };
  if (format === 'poll') return polled(hub, address, subscriber, opening, id);
  const { place } = subscriber;
  const admission = hub.core.admit(place, address);
  try {
    const begun = opening.begin();
    const beginning = format === 'events' ? begun : placed(begun);
    const headers = headersOf(subscriber, reported, beginning.cursor);
    const welcome = textOf(subscriber, reported, beginning);
    const { isWhole } = beginning;
    if (!isWhole && format !== 'websocket') {
      hub.core.dismiss(admission);
      return { answer: { status: 200, headers, body: welcome } };
    }
    hub.core.enter(id, place, { format, dialect, address, mayPublish, admission });
    if (!isWhole) hub.core.endSoon(id);
    return { hold, headers, channels: place.channels, welcome, ...hub.core.marksOf(id, place) };
  } catch (error) {
    hub.core.dismiss(admission);
    throw error;
  }
}

/**
 * @param {Hub} hub @param {string} address @param {Subscriber} subscriber
 * @param {import('../streams/openings.js').Opening} opening @param {number} id
 * @returns {Decision} to be carried out at once
 * @throws {import('../../lib/router.js').RequestError}
 */
function polled(hub, address, subscriber, opening, id) {
  const answer = pollAnswer(subscriber, opening.reported, placed(opening.begin()));
  if (answer) return { answer };
  const { place, headers, waitMs, format } = subscriber;
  const admission = hub.core.admit(place, address, false);
  hub.core.enter(id, place, { ...subscriber, address, admission });
  const labels = labelsOf(place.session, Date.now());
  return { hold: FORMATS[format].hold, headers, channels: place.channels, waitMs, labels };
}

/** @param {Hub} hub @param {Request} request @param {unknown} error @returns {Decision} */
function refused(hub, request, error) {
  const known = requestErrorOf(error);
  if (!known) throw error;
  if (known instanceof LimitError) hub.core.counts[known.counter]++;
  const { status, message, headers } = known;
  const cors = hub.corsOf(request);
  return { refuse: status, headers: { ...NOSNIFF, ...headers, ...cors }, body: `${message}\n` };
}
