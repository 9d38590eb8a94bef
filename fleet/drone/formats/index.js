/*
 * What the plain dialer needs for formats other than text and Server-Sent Events.
 */
import { LinesAnswer } from './lines.js';
import { PollAnswer } from './poll.js';
import { WebSocketAnswer } from './websocket.js';

export { FORMAT_PARAMS, FORMATS } from './params.js';
export { acceptOf, newKey, pong, withKey } from './websocket.js';

/** @type {Partial<Record<import('../params.js').Format, new (how: import('./messages.js').How) => import('../answer.js').Answer>>} */
const ANSWERS = { ndjson: LinesAnswer, poll: PollAnswer, websocket: WebSocketAnswer };

/** @param {import('../dial.js').Target} target @returns {import('../answer.js').Answer | null} null for text and events */
export function answerOf({ format, isStrict, allowsMessages, subscription }) {
  const Answer = ANSWERS[format];
  const isOfHub = subscription !== null;
  return Answer ? new Answer({ isStrict, allowsMessages: allowsMessages || isOfHub, isOfHub }) : null;
}
