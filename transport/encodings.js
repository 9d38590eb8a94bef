/*
 * How messages are written to a stream. An encoding turns a message into a payload; a framing wraps the payload for the
 * connection. The native core has the same two tables (native/core/src/framing.rs); for streams held in JS, node:http
 * does the framing.
 */
import { types } from 'node:util';
import { shown } from '../lib/shown.js';
import { badArgument, checkKeys, LINE_BREAK, whole } from './checks.js';

/** @typedef {import('../native/protocol.js').Encoding} Encoding */

/**
 * @typedef {object} Message
 * @property {string} [id] the event's id, which clients send back as Last-Event-ID
 * @property {string} [type] the event's type
 * @property {number} [retry] ms after which clients reconnect
 * @property {string} [topic] what it is about: JSON says so
 * @property {string} data
 */

/**
 * A message as an application gives it: bytes are text in UTF-8.
 * @typedef {Omit<Message, 'data'> & { data: string | Uint8Array }} GivenMessage
 */

/**
 * @typedef {object} EncodingRow
 * @property {string} contentType
 * @property {string} ping default payload of a ping
 * @property {(message: Message) => string} encode
 */

/** @type {Record<Encoding, EncodingRow>} */
export const ENCODERS = {
  text: { contentType: 'text/plain; charset=utf-8', ping: 'ping', encode: ({ data }) => data },
  events: { contentType: 'text/event-stream', ping: ': ping\n\n', encode: eventOf },
  // This ping is used as long as a stream has no cursor.
  updates: { contentType: 'text/event-stream', ping: ':\n\n', encode: eventOf },
  json: { contentType: 'application/x-ndjson', ping: '\n', encode: lineOf },
  jsonUpdates: { contentType: 'application/x-ndjson', ping: '\n', encode: lineOf },
};

/** What a message takes besides its text while it waits; native/core/src/queue.rs has the same constant. */
export const MESSAGE_BYTES = 256;
/** What a channel takes besides its name, from the second one of a publication on; also there. */
const CHANNEL_BYTES = 64;
const FIELDS = ['id', 'type', 'retry', 'topic', 'data'];
const LONE_SURROGATE = /\p{Cs}/u;
const RETRY = whole(1, 2 ** 31 - 1);

/**
 * @param {{ text: string, events: string }} given by the application
 * @returns {Record<Encoding, Buffer>} payload of a ping, for each encoding, in the order of their numbers
 */
export function pingsOf(given) {
  const rows = Object.entries(ENCODERS).map(([encoding, { ping }]) => {
    const payload = encoding in given ? given[/** @type {'text' | 'events'} */ (encoding)] : ping;
    return [encoding, Buffer.from(payload)];
  });
  return Object.fromEntries(rows);
}

/** A message for streams held in JS: encoded once for each encoding in use. */
export class Encoded {
  /** @param {Message} message */
  constructor(message) {
    this.message = message;
    /** @type {Map<EncodingRow['encode'], Buffer>} some encodings write messages in the same way */
    this.payloads = new Map();
  }

  /** @param {Encoding} encoding @returns {Buffer} */
  in(encoding) {
    const { encode } = ENCODERS[encoding];
    const known = this.payloads.get(encode);
    if (known) return known;
    const payload = Buffer.from(encode(this.message));
    this.payloads.set(encode, payload);
    return payload;
  }
}

/**
 * Server-Sent Events, with their fields in the order of Mercure.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 * @param {Message} message
 * @returns {string}
 */
function eventOf({ id, type, retry, data }) {
  const typeLine = type === undefined ? '' : `event: ${type}\n`;
  const retryLine = retry === undefined ? '' : `retry: ${retry}\n`;
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `${typeLine}${retryLine}${idLine}data: ${data.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;
}

/**
 * A message as a JSON object, byte for byte what native/core/src/framing.rs writes.
 * @param {Message} message
 * @returns {string}
 */
export function jsonOf({ id, type, topic, data }) {
  return JSON.stringify({ id, type, topic, data: wellFormed(data) });
}

/** NDJSON. @param {Message} message @returns {string} */
function lineOf(message) {
  return `${jsonOf(message)}\n`;
}

/** JSON.stringify would escape half a surrogate pair, which can't be sent as UTF-8. @param {string} text */
function wellFormed(text) {
  return LONE_SURROGATE.test(text) ? Buffer.from(text).toString() : text;
}

/**
 * The ping of streams of updates: an event that has only an id, so it changes the last event id of a client, and nothing else.
 * @param {string} cursor
 */
export function cursorPing(cursor) {
  return Buffer.from(`id: ${cursor}\n\n`);
}

/**
 * @param {string | Uint8Array | GivenMessage} given what an application published
 * @returns {Message} which does not change if the application changes its own
 * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT
 */
export function messageOf(given) {
  if (typeof given === 'string') return { data: given };
  if (types.isUint8Array(given)) return { data: textOf(given) };
  if (typeof given !== 'object' || given === null)
    throw badArgument(
      `a message must be a string, bytes or an object { id, type, retry, topic, data }, not ${shown(given)}`,
    );
  checkKeys('a message', given, FIELDS);
  const { id, type, retry, topic, data } = given;
  if (typeof data !== 'string' && !types.isUint8Array(data))
    throw badArgument(`the data of a message must be a string or bytes, not ${shown(data)}`);
  checkField('id', id);
  checkField('type', type);
  checkField('topic', topic);
  if (retry !== undefined && !RETRY.accepts(retry))
    throw badArgument(`the retry of a message must be ${RETRY.expected} (ms), not ${shown(retry)}`);
  return { id, type, retry, topic, data: textOf(data) };
}

/** @param {string | Uint8Array} data @returns {string} */
function textOf(data) {
  if (typeof data === 'string') return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
}

/** @param {string} name @param {unknown} value */
function checkField(name, value) {
  if (value === undefined) return;
  if (typeof value !== 'string')
    throw badArgument(`the ${name} of a message must be a string, not ${shown(value)}`);
  if (LINE_BREAK.test(value))
    throw badArgument(`the ${name} of a message must be one line without NUL, not ${JSON.stringify(value)}`);
}

/**
 * @param {Message} message
 * @returns {number} bytes that it takes while it waits
 */
export function queuedBytesOf({ id = '', type = '', topic = '', data }) {
  return [id, type, topic, data].reduce((bytes, text) => bytes + Buffer.byteLength(text), MESSAGE_BYTES);
}

/** @param {readonly string[]} channels of a publication @returns {number} bytes that they add to it while it waits */
export function channelBytesOf(channels) {
  let bytes = 0;
  for (let i = 1; i < channels.length; i++) bytes += Buffer.byteLength(channels[i]) + CHANNEL_BYTES;
  return bytes;
}

/**
 * @param {number} bytes of a payload
 * @param {boolean} isChunked then each chunk also has its size in hex and two line ends
 * @returns {number} bytes on the wire
 */
export function framedBytes(bytes, isChunked) {
  return isChunked && bytes > 0 ? bytes + bytes.toString(16).length + 4 : bytes;
}
