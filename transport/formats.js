/*
 * Names of what an application can hold, for those who like constants more than strings. Those of a hub are its own business.
 */

export const FORMATS = Object.freeze({
  text: 'text',
  events: 'events',
  ndjson: 'ndjson',
  poll: 'poll',
  websocket: 'websocket',
});
