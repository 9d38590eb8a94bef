/*
 * Publications as Server-Sent Events, for replays. Live ones are encoded by the transport, byte for byte alike
 * (test/hub.protocol.test.js compares them).
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */

/** @typedef {import('../../broker/index.js').Publication} Publication */

/**
 * @param {Publication} publication
 * @param {string} id its own, or its cursor
 * @returns {string}
 */
export function eventOf({ type, retry, data }, id) {
  const typeLine = type === undefined ? '' : `event: ${type}\n`;
  const retryLine = retry === undefined ? '' : `retry: ${retry}\n`;
  return `${typeLine}${retryLine}id: ${id}\ndata: ${data.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;
}

/**
 * How a replay is written: a publication with its id, and a position, which may be nothing.
 * @typedef {object} Script
 * @property {'event' | 'line'} name
 * @property {(publication: Publication, id: string) => string} textOf
 * @property {(cursor: string, retryMs?: number) => string} positionOf
 */

/**
 * A block that moves the last event id of a client without an event.
 * @param {string} cursor
 * @param {number} [retryMs] also tells the client how long to wait before it reconnects
 * @returns {string}
 */
export function positionOf(cursor, retryMs) {
  return retryMs === undefined ? `id: ${cursor}\n\n` : `retry: ${retryMs}\nid: ${cursor}\n\n`;
}

/** @type {Script} */
export const EVENTS = { name: 'event', textOf: eventOf, positionOf };
