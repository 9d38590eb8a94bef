/*
 * The consecutive publications of a store, in blocks: appended at one end, dropped at the other. Everything is done within a
 * transaction of the caller.
 */
import { HoldfastError } from '../../lib/errors.js';
import { READ_BYTES } from '../limits.js';
import { BLOCK_HEAD, framesOf, makeBlock, timeOf } from './frames.js';

/**
 * A block is one entry of LMDB. If it has at most this many bytes, it fits into one page of 4096 bytes, so every free page can take
 * it and the file does not get fragmented. A single publication may be larger.
 */
const BLOCK_BYTES = 4064;
/** What a publication counts for besides its frame, so that --history-bytes means about the same as in memory. */
const OVERHEAD_BYTES = 56;

/** @typedef {import('./frames.js').Frame} Frame */

/**
 * @typedef {object} State as it is stored after each transaction
 * @property {number} first sequence of the oldest publication
 * @property {number} last sequence of the last one
 * @property {number} bytes of all between
 *
 * @typedef {object} Head the block with the oldest publication
 * @property {number} sequence of its first publication; those below `first` are dropped
 * @property {number} at
 * @property {Buffer} block
 * @property {Frame[]} frames
 *
 * @typedef {{ sequence: number, at: number, frames: Uint8Array<ArrayBuffer> }} Part consecutive publications, as frames
 */

export class Log {
  /** @param {import('lmdb').Database<Buffer, number>} blocks @param {State} state */
  constructor(blocks, state) {
    this.blocks = blocks;
    this.state = state;
    /** @type {Head | null} null until it is needed */
    this.head = null;
  }

  /** @param {number} at @param {readonly Uint8Array[]} frames @returns {number} the sequence of the first of them */
  push(at, frames) {
    const first = this.state.last + 1;
    for (let start = 0, end = 0; start < frames.length; start = end) {
      let bytes = BLOCK_HEAD;
      while (end < frames.length && (end === start || bytes + frames[end].length <= BLOCK_BYTES))
        bytes += frames[end++].length;
      this.blocks.put(first + start, makeBlock(at, frames.slice(start, end)));
    }
    for (const frame of frames) this.state.bytes += sizeOfFrame(frame.length);
    this.state.last += frames.length;
    return first;
  }

  /** @returns {Head | null} null if nothing is stored */
  oldest() {
    const { first, last } = this.state;
    if (first > last) return null;
    if (!this.head) {
      const { sequence, block: shared } = this.find(first);
      const block = Buffer.from(shared); // LMDB may reuse the memory
      this.head = { sequence, at: timeOf(block), block, frames: [...framesOf(block, BLOCK_HEAD)] };
    }
    return this.head;
  }

  /** @param {number} wanted a stored sequence @returns {{ sequence: number, block: Buffer }} the block with it, and its first one */
  find(wanted) {
    const [found] = this.blocks.getRange({ start: wanted, reverse: true, limit: 1 });
    if (!found) throw new HoldfastError('STORE', `the stored publication ${wanted} is missing`);
    return { sequence: found.key, block: found.value };
  }

  /** Drops the oldest publication. @returns {{ id: string | undefined, at: number, bytes: Uint8Array }} its frame */
  shift() {
    const { sequence, at, block, frames } = /** @type {Head} */ (this.oldest());
    const index = this.state.first - sequence;
    const { start, end, id } = frames[index];
    this.state.first++;
    this.state.bytes -= sizeOfFrame(end - start);
    if (index === frames.length - 1) {
      this.blocks.remove(sequence);
      this.head = null;
    }
    return { id, at, bytes: block.subarray(start, end) };
  }

  /** @param {number} after @param {number} most @returns {Part[]} as `read` of the broker */
  range(after, most) {
    const from = Math.max(after + 1, this.state.first);
    /** @type {Part[]} */
    const parts = [];
    const left = { count: most, bytes: READ_BYTES, isFirst: true };
    if (from > this.state.last || most <= 0) return parts;
    for (const { key, value } of this.blocks.getRange({ start: this.find(from).sequence })) {
      const part = cut(key, value, from, left);
      if (part.frames.length > 0) parts.push(part);
      if (left.count <= 0 || left.bytes <= 0) break;
    }
    return parts;
  }

  /** @param {number} sequence @returns {Part} of one publication */
  get(sequence) {
    const found = this.find(sequence);
    return cut(found.sequence, found.block, sequence, { count: 1, bytes: READ_BYTES, isFirst: true });
  }
}

/**
 * @param {number} key sequence of the first publication in the block
 * @param {Uint8Array} block
 * @param {number} from the first sequence that is wanted
 * @param {{ count: number, bytes: number, isFirst: boolean }} left how much may be read; what is read is subtracted
 * @returns {Part}
 */
export function cut(key, block, from, left) {
  let sequence = key;
  let start = -1;
  let end = -1;
  for (const frame of framesOf(block, BLOCK_HEAD)) {
    if (sequence++ < from) continue;
    left.bytes -= sizeOfFrame(frame.end - frame.start);
    if (left.bytes < 0 && !left.isFirst) break;
    left.isFirst = false;
    if (start < 0) start = frame.start;
    end = frame.end;
    if (--left.count === 0) break;
  }
  const frames = start < 0 ? new Uint8Array(0) : new Uint8Array(block.subarray(start, end));
  return { sequence: Math.max(key, from), at: timeOf(block), frames };
}

/** @param {number} length of a frame @returns {number} what it counts for */
export function sizeOfFrame(length) {
  return length + OVERHEAD_BYTES;
}
