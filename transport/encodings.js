/*
 * How messages are written to a stream. An encoding turns a message into a payload; a framing wraps the payload for the
 * connection. The native core has the same two tables (native/core/src/framing.rs); for streams held in JS, node:http
 * does the framing.
 */
import { types } from 'node:util';
import { badArgument, checkKeys, shown } from './checks.js';

/** @typedef {import('../native/protocol.js').Encoding} Encoding */

/**
 * @typedef {object} Message
 * @property {string} [id] the event's id, which clients send back as Last-Event-ID
 * @property {string} [type] the event's type
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
};

/** What a message takes besides its text while it waits; native/core/src/queue.rs has the same constant. */
export const MESSAGE_BYTES = 256;
const FIELDS = ['id', 'type', 'data'];
/** Characters that a line of an event can't contain. */
const LINE_BREAK = /[\r\n\0]/;

/** A message for streams held in JS: encoded once for each encoding in use. */
export class Encoded {
  /** @param {Message} message */
  constructor(message) {
    this.message = message;
    /** @type {Partial<Record<Encoding, Buffer>>} */
    this.payloads = {};
  }

  /** @param {Encoding} encoding @returns {Buffer} */
  in(encoding) {
    this.payloads[encoding] ??= Buffer.from(ENCODERS[encoding].encode(this.message));
    return this.payloads[encoding];
  }
}

/**
 * Server-Sent Events. https://html.spec.whatwg.org/multipage/server-sent-events.html
 * @param {Message} message
 * @returns {string}
 */
function eventOf({ id, type, data }) {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const typeLine = type === undefined ? '' : `event: ${type}\n`;
  return `${idLine}${typeLine}data: ${data.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;
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
      `a message must be a string, bytes or an object { id, type, data }, not ${shown(given)}`,
    );
  checkKeys('a message', given, FIELDS);
  const { id, type, data } = given;
  if (typeof data !== 'string' && !types.isUint8Array(data))
    throw badArgument(`the data of a message must be a string or bytes, not ${shown(data)}`);
  checkField('id', id);
  checkField('type', type);
  return { id, type, data: textOf(data) };
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
export function queuedBytesOf({ id = '', type = '', data }) {
  return Buffer.byteLength(id) + Buffer.byteLength(type) + Buffer.byteLength(data) + MESSAGE_BYTES;
}

/**
 * @param {number} bytes of a payload
 * @param {boolean} isChunked then each chunk also has its size in hex and two line ends
 * @returns {number} bytes on the wire
 */
export function framedBytes(bytes, isChunked) {
  return isChunked && bytes > 0 ? bytes + bytes.toString(16).length + 4 : bytes;
}
