/*
 * Writes commands to the native core into one buffer, so that a batch is one call. The records are those of
 * native/core/src/command.rs.
 */

/** The operations. */
const OP = {
  hold: 1,
  refuse: 2,
  pass: 3,
  send: 4,
  close: 5,
  subscribe: 6,
  unsubscribe: 7,
  publish: 8,
  drain: 9,
  opening: 10,
  standing: 11,
};
/** The bits of a format. */
const EVENTS = 1;
const CHUNKED = 2;
const FIRST_SIZE = 4096;
/** A buffer that grew beyond this is not kept. */
const MOST_KEPT = 1_048_576;

/**
 * A message in the two forms it can have on a stream.
 * @typedef {{ text: string, events: string }} Payload
 */

/**
 * How a stream begins.
 * @typedef {object} Opening
 * @property {number} format its bits
 * @property {Uint8Array} bytes the response head and the welcome
 * @property {readonly string[]} channels what it listens to
 */

export class Commands {
  constructor() {
    this.buffer = Buffer.allocUnsafe(FIRST_SIZE);
    this.size = 0;
    /** How much of that is whole records. */
    this.whole = 0;
    /** @type {Opening | undefined} that of the streams that are held next */
    this.opening = undefined;
  }

  /** @returns {Uint8Array} what was written since the last time, valid until the next write */
  take() {
    const records = this.buffer.subarray(0, this.size);
    this.size = 0;
    this.whole = 0;
    this.opening = undefined;
    if (records.length > MOST_KEPT) this.buffer = Buffer.allocUnsafe(FIRST_SIZE);
    return records;
  }

  /** Takes back what was written of a record that then could not be: native would read on from the middle of it. */
  undo() {
    this.size = this.whole;
    this.opening = undefined;
  }

  /** What stands here is whole records. */
  end() {
    this.whole = this.size;
  }

  /**
   * How a stream begins is said once for all in a row that begin alike.
   * @param {number} id @param {Opening} opening
   */
  hold(id, opening) {
    if (!this.opening || !isAlike(this.opening, opening)) {
      const { format, bytes, channels } = opening;
      this.u8(OP.opening);
      this.u8(format);
      this.bytes(bytes);
      this.count(channels.length);
      for (const channel of channels) this.utf8(channel);
      this.opening = { format, bytes, channels: [...channels] };
    }
    this.op(OP.hold, id);
    this.end();
  }

  /**
   * Heads that are written down so are held without asking, for a second.
   * @param {string} lines Latin-1, as native wrote them @param {Omit<Opening, 'bytes'> & { all: readonly Uint8Array[] }} openings
   */
  standing(lines, { format, all, channels }) {
    this.u8(OP.standing);
    this.latin1(lines);
    this.u8(format);
    this.count(channels.length);
    for (const channel of channels) this.utf8(channel);
    this.count(all.length);
    for (const bytes of all) this.bytes(bytes);
    this.end();
  }

  /** @param {number} id @param {string} response Latin-1, whole */
  refuse(id, response) {
    this.op(OP.refuse, id);
    this.latin1(response);
    this.end();
  }

  /** @param {number} id */
  pass(id) {
    this.op(OP.pass, id);
    this.end();
  }

  /** @param {number} id @param {Payload} payload */
  send(id, payload) {
    this.op(OP.send, id);
    this.payload(payload);
    this.end();
  }

  /** @param {number} id */
  close(id) {
    this.op(OP.close, id);
    this.end();
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    this.op(OP.subscribe, id);
    this.utf8(channel);
    this.end();
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    this.op(OP.unsubscribe, id);
    this.utf8(channel);
    this.end();
  }

  /** @param {string} channel @param {Payload} payload */
  publish(channel, payload) {
    this.u8(OP.publish);
    this.utf8(channel);
    this.payload(payload);
    this.end();
  }

  /** @param {number} periodMs */
  drain(periodMs) {
    this.u8(OP.drain);
    this.u32(periodMs);
    this.end();
  }

  /** @param {number} op @param {number} id */
  op(op, id) {
    this.room(9);
    this.buffer[this.size] = op;
    this.size = this.buffer.writeDoubleLE(id, this.size + 1);
  }

  /** @param {Payload} payload */
  payload({ text, events }) {
    this.utf8(text);
    this.utf8(events);
  }

  /**
   * @param {number} value of texts that follow
   * @throws {RangeError} past 65,535: what is not counted native would take for records
   */
  count(value) {
    this.room(2);
    this.size = this.buffer.writeUInt16LE(value, this.size);
  }

  /** @param {number} value */
  u8(value) {
    this.room(1);
    this.buffer[this.size++] = value;
  }

  /** @param {number} value */
  u32(value) {
    this.room(4);
    this.size = this.buffer.writeUInt32LE(value, this.size);
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

  /** @param {string} text */
  utf8(text) {
    const bytes = Buffer.byteLength(text);
    this.u32(bytes);
    this.room(bytes);
    this.size += this.buffer.write(text, this.size, 'utf8');
  }

  /** @param {number} bytes that are about to be written */
  room(bytes) {
    if (this.size + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.size + bytes));
    this.buffer.copy(larger, 0, 0, this.size);
    this.buffer = larger;
  }
}

/** @param {boolean} isEvents @param {boolean} isChunked @returns {number} */
export function formatBits(isEvents, isChunked) {
  return (isEvents ? EVENTS : 0) | (isChunked ? CHUNKED : 0);
}

/** @param {Opening} one @param {Opening} other */
function isAlike(one, other) {
  return (
    one.bytes === other.bytes &&
    one.format === other.format &&
    one.channels.length === other.channels.length &&
    one.channels.every((channel, i) => channel === other.channels[i])
  );
}
