/*
 * Writes commands for the native core into one buffer, so that a batch is one call. native/core/src/command.rs reads the
 * records: an operation (1 byte) and its operands. Numbers are little endian. A text is its length (32 bits) and its
 * bytes, a list is its count (16 bits) and its items, names are a text that consists of texts, an id is a double.
 */
import { CLOSE_REASONS } from '../lib/reasons.js';
import { LABELS, OPS } from '../native/protocol.js';
import { channelBytesOf, MESSAGE_BYTES } from './encodings.js';

/** Flags of a message. */
const HAS_ID = 1;
const HAS_TYPE = 2;
const HAS_RETRY = 4;
const HAS_TOPIC = 8;
/** Flags of a publication. */
const HAS_MESSAGE = 1;
const HAS_CURSOR = 2;
const FIRST_SIZE = 4096;
/** Characters of a text for which there is always room. */
const SHORT = 1024;
/** A buffer larger than this is not kept. */
const MOST_KEPT = 1_048_576;

/**
 * How a stream begins.
 * @typedef {object} Opening
 * @property {number} format encoding and framing
 * @property {string} head Latin-1: status line and header lines
 * @property {readonly import('./policy.js').Bytes[]} welcomes variants, used in turn
 * @property {readonly string[]} channels that it listens to
 * @property {number} [waitMs] how long a poll waits
 */

const NO_OPENING = { last: undefined, start: 0, end: 0 };

export class Commands {
  constructor() {
    this.buffer = Buffer.allocUnsafe(FIRST_SIZE);
    this.size = 0;
    /** What the messages in the buffer take: more than their records if they are short. */
    this.queuedBytes = 0;
    /** What is written as it is takes, in the same way. */
    this.rawBytes = 0;
    /** The last opening in the buffer, and its position. @type {{ last: Opening | undefined, start: number, end: number }} */
    this.opening = NO_OPENING;
  }

  /** @returns {Uint8Array} the records since the last call, valid until the next write */
  take() {
    const records = this.buffer.subarray(0, this.size);
    this.size = 0;
    this.queuedBytes = 0;
    this.rawBytes = 0;
    this.opening = NO_OPENING;
    if (records.length > MOST_KEPT) this.buffer = Buffer.allocUnsafe(FIRST_SIZE);
    return records;
  }

  /** @param {number} id of a connection that waits for a decision @param {Opening} opening */
  hold(id, opening) {
    this.open(opening);
    this.op(OPS.hold, id);
  }

  /**
   * From now on native holds heads like this one without asking.
   * @param {string} lines Latin-1, as native wrote them @param {Opening} opening
   */
  remember(lines, opening) {
    this.open(opening);
    this.u8(OPS.remember);
    this.latin1(lines);
  }

  /** @param {number} id @param {number} status */
  refuse(id, status) {
    this.op(OPS.refuse, id);
    this.u16(status);
  }

  /** @param {number} id @param {string} head Latin-1 lines without Date @param {Uint8Array} body */
  respond(id, head, body) {
    this.op(OPS.respond, id);
    this.latin1(head);
    this.bytes(body);
  }

  /** @param {number} id */
  pass(id) {
    this.op(OPS.pass, id);
  }

  /** @param {number} id @param {import('./encodings.js').Message} message */
  send(id, message) {
    this.op(OPS.send, id);
    this.message(message);
  }

  /** @param {number} id @param {import('./policy.js').Bytes} payload */
  write(id, payload) {
    this.op(OPS.write, id);
    this.rawBytes += this.payload(payload) + MESSAGE_BYTES;
  }

  /** @param {number} id @param {string} payload */
  reply(id, payload) {
    this.op(OPS.reply, id);
    this.rawBytes += this.payload(payload) + MESSAGE_BYTES;
  }

  /** @param {number} id */
  end(id) {
    this.op(OPS.end, id);
  }

  /** @param {number} id @param {import('./labels.js').Labels} labels */
  label(id, { subject = 0, token = 0, expiresAtMs = Number.POSITIVE_INFINITY }) {
    this.op(OPS.label, id);
    this.u32(subject);
    this.u32(token);
    this.double(expiresAtMs);
  }

  /** @param {string} channel @param {import('../lib/reasons.js').CloseReason} reason */
  endChannel(channel, reason) {
    this.u8(OPS.endChannel);
    this.u8(CLOSE_REASONS.indexOf(reason));
    this.utf8(channel);
  }

  /**
   * @param {import('../native/protocol.js').Label} kind @param {number} value
   * @param {import('../lib/reasons.js').CloseReason} reason
   */
  endLabelled(kind, value, reason) {
    this.u8(OPS.endLabelled);
    this.u8(CLOSE_REASONS.indexOf(reason));
    this.u8(LABELS[kind]);
    this.u32(value);
  }

  /** @param {number} id @param {string} tag '' for none */
  tag(id, tag) {
    this.op(OPS.tag, id);
    this.utf8(tag);
  }

  /** @param {import('../lib/reasons.js').CloseReason} reason */
  endUpdates(reason) {
    this.u8(OPS.endUpdates);
    this.u8(CLOSE_REASONS.indexOf(reason));
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    this.op(OPS.subscribe, id);
    this.utf8(channel);
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    this.op(OPS.unsubscribe, id);
    this.utf8(channel);
  }

  /**
   * @param {readonly string[]} channels
   * @param {import('./encodings.js').Message | null} message
   * @param {string | undefined} cursor
   * @param {number} token stands for it when native reports how many streams it reached; 0 if nobody wants to know
   */
  publish(channels, message, cursor, token) {
    this.u8(OPS.publish);
    this.u32(token);
    this.u8((message ? HAS_MESSAGE : 0) | (cursor === undefined ? 0 : HAS_CURSOR));
    this.names(channels);
    if (cursor !== undefined) this.utf8(cursor);
    if (!message) return;
    this.queuedBytes += channelBytesOf(channels);
    this.message(message);
  }

  /** @param {number} periodMs */
  drain(periodMs) {
    this.u8(OPS.drain);
    this.u32(periodMs);
  }

  /** Consecutive streams that begin alike share one record. @param {Opening} opening */
  open(opening) {
    const { last, start, end } = this.opening;
    if (last && isSame(last, opening)) return;
    const { format, head, welcomes, channels, waitMs } = opening;
    const from = this.size;
    this.u8(OPS.opening);
    this.u8(format);
    this.latin1(head);
    this.u16(welcomes.length);
    for (const welcome of welcomes) this.payload(welcome);
    this.u16(channels.length);
    for (const channel of channels) this.utf8(channel);
    if (waitMs !== undefined) this.u32(waitMs);
    if (this.buffer.subarray(start, end).equals(this.buffer.subarray(from, this.size))) this.size = from;
    else this.opening = { last: opening, start: from, end: this.size };
  }

  /** @param {import('./encodings.js').Message} message */
  message({ id, type, retry, topic, data }) {
    this.u8(
      (id === undefined ? 0 : HAS_ID) |
        (type === undefined ? 0 : HAS_TYPE) |
        (retry === undefined ? 0 : HAS_RETRY) |
        (topic === undefined ? 0 : HAS_TOPIC),
    );
    const idBytes = id === undefined ? 0 : this.utf8(id);
    const typeBytes = type === undefined ? 0 : this.utf8(type);
    if (retry !== undefined) this.u32(retry);
    const topicBytes = topic === undefined ? 0 : this.utf8(topic);
    this.queuedBytes += idBytes + typeBytes + topicBytes + this.utf8(data) + MESSAGE_BYTES;
  }

  /** @param {number} op @param {number} id */
  op(op, id) {
    this.room(9);
    this.buffer[this.size] = op;
    this.size = this.buffer.writeDoubleLE(id, this.size + 1);
  }

  /** @param {number} value */
  u8(value) {
    this.room(1);
    this.buffer[this.size++] = value;
  }

  /** @param {number} value */
  u16(value) {
    this.room(2);
    this.size = this.buffer.writeUInt16LE(value, this.size);
  }

  /** @param {number} value */
  u32(value) {
    this.room(4);
    this.size = this.buffer.writeUInt32LE(value, this.size);
  }

  /** @param {number} value */
  double(value) {
    this.room(8);
    this.size = this.buffer.writeDoubleLE(value, this.size);
  }

  /** @param {readonly string[]} names */
  names(names) {
    this.u32(0);
    const start = this.size;
    for (const name of names) this.utf8(name);
    this.buffer.writeUInt32LE(this.size - start, start - 4);
  }

  /** @param {import('./policy.js').Bytes} payload @returns {number} its bytes */
  payload(payload) {
    if (typeof payload === 'string') return this.utf8(payload);
    this.bytes(payload);
    return payload.length;
  }

  /** @param {Uint8Array} bytes */
  bytes(bytes) {
    this.u32(bytes.length);
    this.room(bytes.length);
    this.buffer.set(bytes, this.size);
    this.size += bytes.length;
  }

  /** @param {string} text */
  latin1(text) {
    this.u32(text.length);
    this.room(text.length);
    this.size += this.buffer.write(text, this.size, 'latin1');
  }

  /** @param {string} text @returns {number} its bytes */
  utf8(text) {
    this.room(4 + (text.length > SHORT ? Buffer.byteLength(text) : 3 * text.length));
    const bytes = this.buffer.write(text, this.size + 4, 'utf8');
    this.buffer.writeUInt32LE(bytes, this.size);
    this.size += 4 + bytes;
    return bytes;
  }

  /** @param {number} bytes that are about to be written */
  room(bytes) {
    if (this.size + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.size + bytes));
    this.buffer.copy(larger, 0, 0, this.size);
    this.buffer = larger;
  }
}

/** @param {Opening} one @param {Opening} other @returns {boolean} whether they are known to begin alike without looking at bytes, which can change */
function isSame(one, other) {
  if (one === other) return true; // then nobody changes its bytes
  const isAlike = one.format === other.format && one.head === other.head && one.waitMs === other.waitMs;
  return isAlike && areSame(one.welcomes, other.welcomes) && areSame(one.channels, other.channels);
}

/** @param {readonly unknown[]} some @param {readonly unknown[]} others @returns {boolean} whether they are the same texts */
function areSame(some, others) {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++)
    if (some[i] !== others[i] || typeof some[i] !== 'string') return false;
  return true;
}
