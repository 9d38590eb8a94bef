/*
 * What a stream of the hub can be.
 */
import { EVENTS } from './events.js';
import { LINES } from './lines.js';

/**
 * @typedef {object} Format
 * @property {'updates' | 'ndjsonUpdates' | 'pollUpdates' | 'websocketUpdates'} hold what the Hold calls it
 * @property {import('./events.js').Script} script of what it gets first
 * @property {boolean} isListed whether presence has it: polls come and go
 */

/** @typedef {'events' | 'ndjson' | 'poll' | 'websocket'} FormatName */

/** @type {Readonly<Record<FormatName, Format>>} */
export const FORMATS = Object.freeze({
  events: { hold: 'updates', script: EVENTS, isListed: true },
  ndjson: { hold: 'ndjsonUpdates', script: LINES, isListed: true },
  poll: { hold: 'pollUpdates', script: LINES, isListed: false },
  websocket: { hold: 'websocketUpdates', script: LINES, isListed: true },
});
