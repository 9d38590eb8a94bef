/*
 * What the plain dialer needs for formats other than text and Server-Sent Events.
 */
import { Pings } from '../pings.js';
import { LinesAnswer } from './lines.js';
import { PollAnswer } from './poll.js';
import { acceptOf, newKey, pong, WebSocketAnswer } from './websocket.js';

/** How far ahead a ping may be that a message replaces, in intervals. */
const SLACK = 1.05;

export { FORMAT_PARAMS, FORMATS } from './params.js';
export { requestOf } from './request.js';

/** @typedef {import('../dial.plain.js').PlainDialer} PlainDialer */
/** @typedef {import('../dial.plain.js').StreamSocket} StreamSocket */
/** @typedef {import('../stream.js').Stream} Stream */

/** @type {Partial<Record<import('../params.js').Format, new (how: import('./messages.js').How) => import('../answer.js').Answer>>} */
const ANSWERS = { ndjson: LinesAnswer, poll: PollAnswer, websocket: WebSocketAnswer };

/** @param {import('../dial.js').Target} target @returns {import('../answer.js').Answer | null} null for text and events */
export function answerOf({ format, isStrict, allowsMessages, subscription }) {
  const Answer = ANSWERS[format];
  const isOfHub = subscription !== null;
  return Answer ? new Answer({ isStrict, allowsMessages: allowsMessages || isOfHub, isOfHub }) : null;
}

/** Of WebSockets, until the server has answered. @type {WeakMap<Stream, string>} */
const keys = new WeakMap();

/**
 * A stream is about to send its request. A poll is open as long as it waits for its answer: from when that has been sent. Of a hub, it
 * first has to know where it is.
 * @param {PlainDialer} dialer @param {StreamSocket} socket @param {Stream} stream @param {string} request
 * @returns {string} what it sends
 */
export function begin(dialer, socket, stream, request) {
  const { format, security } = stream.target;
  if (format === 'websocket') {
    const key = newKey();
    keys.set(stream, key);
    return `${request.slice(0, -2)}Sec-WebSocket-Key: ${key}\r\n\r\n`;
  }
  if (format !== 'poll') return request;
  stream.pings = new Pings(0);
  if (hasNoPlace(dialer, stream)) return request;
  stream.answer.isOpen = true;
  socket.on(security ? 'secureConnect' : 'connect', () => {
    if (!stream.hasEnded) dialer.welcome(socket, stream);
  });
  return request;
}

/** @param {PlainDialer} dialer @param {StreamSocket} socket @param {Stream} stream @param {import('../answer.js').Event} event */
export function note(dialer, socket, stream, event) {
  if (event.what === 'asked') socket.write(pong(event.payload));
  else if (event.what === 'accept') {
    const isRight = event.accept === acceptOf(keys.get(stream) ?? '');
    keys.delete(stream);
    if (!isRight) dialer.end(socket, 'unexpected', event.accept);
  } else if (event.what === 'answered') {
    if (!event.goesOn) dialer.end(socket, 'closed');
    else if (hasNoPlace(dialer, stream)) dialer.end(socket, 'unexpected', 'an answer without a cursor');
    else socket.write(dialer.subscribers.requestFor(stream.target, stream.place), 'latin1');
  }
}

/** @param {PlainDialer} dialer @param {Stream} stream whether it subscribes to topics and does not know where it is in their publications */
function hasNoPlace(dialer, { place }) {
  return dialer.subscribers.at(place)?.cursor === '';
}

/**
 * If the server has idle pings, a message takes the place of the next one, and is late if that is overdue. Close to a ping, nobody
 * here knows which was first for the server: then the next one may come an interval early.
 * @param {import('../stream.js').Stream} stream
 * @returns {number[]} latenesses in ms, as those of a ping
 */
export function noteMessage({ pings, target }) {
  if (!target.idlePings || target.format === 'websocket') return [];
  const nowMs = performance.now();
  if (pings.dueMs < nowMs) return pings.note(nowMs);
  if (pings.dueMs - nowMs <= SLACK * pings.intervalMs) pings.dueMs += pings.intervalMs;
  return [];
}
