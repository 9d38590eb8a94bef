/*
 * The numbers that JS and the native core share. Whoever changes them also changes native/core/src/command.rs and
 * framing.rs, and increments PROTOCOL, so that an addon built from older code is not loaded.
 */

export const PROTOCOL = 12;

/** Operations of the records that transport/commands.js writes. */
export const OPS = {
  hold: 1,
  refuse: 2,
  respond: 3,
  pass: 4,
  send: 5,
  end: 6,
  subscribe: 7,
  unsubscribe: 8,
  publish: 9,
  drain: 10,
  opening: 11,
  remember: 12,
  write: 13,
  label: 14,
  endChannel: 15,
  endLabelled: 16,
  endUpdates: 17,
  tag: 18,
  reply: 19,
};

/** How a message is written. Those of updates are for streams of a hub; pings of `updates` contain the cursor. */
export const ENCODINGS = { text: 0, events: 1, updates: 2, json: 3, jsonUpdates: 4 };

/** How a payload is wrapped on the connection. */
export const FRAMINGS = { raw: 0, chunked: 1, websocket: 2, poll: 3 };

/**
 * What a stream can be: an encoding, and perhaps a framing. Without one, it is a response of HTTP that does not end.
 * @type {Record<Format, { encoding: Encoding, framing?: 'websocket' | 'poll' }>}
 */
export const FORMATS = {
  text: { encoding: 'text' },
  events: { encoding: 'events' },
  updates: { encoding: 'updates' },
  ndjson: { encoding: 'json' },
  ndjsonUpdates: { encoding: 'jsonUpdates' },
  poll: { encoding: 'json', framing: 'poll' },
  pollUpdates: { encoding: 'jsonUpdates', framing: 'poll' },
  websocket: { encoding: 'text', framing: 'websocket' },
  websocketUpdates: { encoding: 'jsonUpdates', framing: 'websocket' },
};

/** Labels by which streams can be ended. */
export const LABELS = { subject: 0, token: 1 };

/** @typedef {keyof typeof ENCODINGS} Encoding */
/** @typedef {'text' | 'events' | 'updates' | 'ndjson' | 'ndjsonUpdates' | 'poll' | 'pollUpdates' | 'websocket' | 'websocketUpdates'} Format */
/** @typedef {keyof typeof LABELS} Label */

/**
 * @param {Format} format
 * @param {boolean} isChunked whether its response would be chunked
 * @returns {number} one byte that contains encoding and framing
 */
export function formatByte(format, isChunked) {
  const { encoding, framing = isChunked ? 'chunked' : 'raw' } = FORMATS[format];
  return ENCODINGS[encoding] | (FRAMINGS[framing] << 4);
}

/** @param {Format} format @returns {boolean} whether its streams are those of a hub */
export function isOfUpdates(format) {
  return format.toLowerCase().endsWith('updates');
}

/** @param {Format} format @returns {boolean} whether it is one answer, not a stream */
export function isPoll(format) {
  return FORMATS[format].framing === 'poll';
}

/** @param {Format} format @returns {boolean} */
export function isWebSocket(format) {
  return FORMATS[format].framing === 'websocket';
}
