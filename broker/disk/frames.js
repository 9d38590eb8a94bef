/*
 * How publications are stored. A frame is one publication; a block is a run of consecutive frames that were stored at the same
 * time, so its key, the sequence of the first one, is enough. Pure.
 *
 *     block   version u8, at f64, frames
 *     frame   bytes of what follows u32, flags u8, [id], number of topics, topics, [type], [retry], data
 *
 * Numbers are little-endian. Texts are UTF-8 with their length in front, except the data, which is the rest. Lengths and `retry`
 * have 7 bits per byte, lowest first; the highest bit says that more follow.
 */
import { HoldfastError } from '../../lib/errors.js';

const BLOCK_VERSION = 1;
export const BLOCK_HEAD = 9;
const PRIVATE = 1;
const HAS_ID = 2;
const HAS_TYPE = 4;
const HAS_RETRY = 8;
/** Most bytes of a frame besides its texts, without those for each topic. */
const MOST_HEAD = 40;

/** @typedef {import('../index.js').Draft} Draft */
/** @typedef {import('../index.js').Publication} Publication */

/** @typedef {{ start: number, end: number, id: string | undefined }} Frame where it is, and the publisher's id */

/** Drafts are written here first. */
let scratch = Buffer.allocUnsafe(65_536);

/** @param {readonly Draft[]} drafts @returns {Uint8Array<ArrayBuffer>} their frames, in memory of their own */
export function encodeFrames(drafts) {
  let at = 0;
  for (const draft of drafts) {
    makeRoom(at, mostBytes(draft));
    at = writeFrame(draft, at);
  }
  return new Uint8Array(scratch.subarray(0, at));
}

/** @param {Draft} draft @returns {number} bytes that it needs at most */
function mostBytes({ topics, data, id, type }) {
  let chars = data.length + (id?.length ?? 0) + (type?.length ?? 0);
  for (const topic of topics) chars += topic.length + 2;
  return MOST_HEAD + 3 * chars;
}

/** @param {number} used @param {number} needed */
function makeRoom(used, needed) {
  if (used + needed <= scratch.length) return;
  const larger = Buffer.allocUnsafe(2 * (used + needed));
  scratch.copy(larger, 0, 0, used);
  scratch = larger;
}

/** @param {Draft} draft @param {number} start @returns {number} where it ends */
function writeFrame({ topics, data, private: isPrivate, id, type, retry }, start) {
  let at = start + 4;
  scratch[at++] =
    (isPrivate ? PRIVATE : 0) |
    (id === undefined ? 0 : HAS_ID) |
    (type === undefined ? 0 : HAS_TYPE) |
    (retry === undefined ? 0 : HAS_RETRY);
  if (id !== undefined) at = writeText(id, at);
  at = writeNumber(topics.length, at);
  for (const topic of topics) at = writeText(topic, at);
  if (type !== undefined) at = writeText(type, at);
  if (retry !== undefined) at = writeNumber(retry, at);
  at += scratch.write(data, at);
  scratch.writeUInt32LE(at - start - 4, start);
  return at;
}

/** @param {string} text @param {number} at @returns {number} where it ends */
function writeText(text, at) {
  const start = writeNumber(Buffer.byteLength(text), at);
  return start + scratch.write(text, start);
}

/** @param {number} value below 2^32 @param {number} start @returns {number} where it ends */
function writeNumber(value, start) {
  let at = start;
  let rest = value;
  for (; rest > 127; rest >>>= 7) scratch[at++] = (rest & 127) | 128;
  scratch[at++] = rest;
  return at;
}

/** Reads values one after another. */
class Reader {
  /** @param {Uint8Array} bytes @param {number} at @param {number} end */
  constructor(bytes, at, end) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = at;
    this.end = end;
  }

  /** @returns {number} */
  byte() {
    if (this.at >= this.end) throw damaged();
    return this.buffer[this.at++];
  }

  /** @returns {number} */
  number() {
    let value = 0;
    let part = 128;
    for (let shift = 0; part > 127; shift += 7) {
      part = this.byte();
      if (shift > 28) throw damaged();
      value |= (part & 127) << shift;
    }
    return value >>> 0;
  }

  /** @param {number} [length] @returns {string} */
  text(length = this.number()) {
    const end = this.at + length;
    if (end > this.end) throw damaged();
    const text = this.buffer.toString('utf8', this.at, end);
    this.at = end;
    return text;
  }
}

/** @param {Uint8Array} bytes frames @param {number} [from] where the first one starts @returns {Generator<Frame>} */
export function* framesOf(bytes, from = 0) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = from; start < bytes.length; ) {
    if (start + 5 > bytes.length) throw damaged();
    const end = start + 4 + view.getUint32(start, true);
    if (end > bytes.length) throw damaged();
    const hasId = bytes[start + 4] & HAS_ID;
    yield { start, end, id: hasId ? new Reader(bytes, start + 5, end).text() : undefined };
    start = end;
  }
}

/** @param {Uint8Array} bytes @param {Frame} frame in it @param {number} sequence @param {number} at @returns {Publication} */
export function decodeFrame(bytes, { start, end }, sequence, at) {
  const reader = new Reader(bytes, start + 4, end);
  const flags = reader.byte();
  const id = flags & HAS_ID ? reader.text() : undefined;
  const topics = Array.from({ length: reader.number() }, () => reader.text());
  const type = flags & HAS_TYPE ? reader.text() : undefined;
  const retry = flags & HAS_RETRY ? reader.number() : undefined;
  const data = reader.text(end - reader.at);
  return { sequence, at, topics, data, private: (flags & PRIVATE) !== 0, id, type, retry };
}

/** @param {number} at ms since 1970 @param {readonly Uint8Array[]} frames @returns {Buffer} a block */
export function makeBlock(at, frames) {
  const head = Buffer.alloc(BLOCK_HEAD);
  head[0] = BLOCK_VERSION;
  head.writeDoubleLE(at, 1);
  return Buffer.concat([head, ...frames]);
}

/** @param {Uint8Array} block @returns {number} its `at` */
export function timeOf(block) {
  if (block.length < BLOCK_HEAD || block[0] !== BLOCK_VERSION) throw damaged();
  return new DataView(block.buffer, block.byteOffset).getFloat64(1, true);
}

function damaged() {
  return new HoldfastError('STORE', 'a stored publication is damaged');
}
