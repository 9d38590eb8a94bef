/*
 * The numbers that JS and the native core share. Whoever changes them also changes native/core/src/command.rs and
 * framing.rs, and increments PROTOCOL, so that an addon built from older code is not loaded.
 */

export const PROTOCOL = 8;

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
};

/** How a message is written. `updates` are events whose pings contain the cursor. */
export const ENCODINGS = { text: 0, events: 1, updates: 2 };

/** How a payload is wrapped on the connection. */
export const FRAMINGS = { raw: 0, chunked: 1 };

/** Labels by which streams can be ended. */
export const LABELS = { subject: 0, token: 1 };

/** @typedef {keyof typeof ENCODINGS} Encoding */
/** @typedef {keyof typeof LABELS} Label */
/** @typedef {keyof typeof FRAMINGS} Framing */

/**
 * @param {Encoding} encoding
 * @param {boolean} isChunked
 * @returns {number} one byte that contains both
 */
export function formatOf(encoding, isChunked) {
  return ENCODINGS[encoding] | ((isChunked ? FRAMINGS.chunked : FRAMINGS.raw) << 4);
}
