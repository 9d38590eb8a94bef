/*
 * Cursors: positions in the order of a hub, as clients see them. A cursor is an encrypted block that contains the epoch and
 * the sequence, so it tells a client nothing, needs no index, and every node with the key of the hub can read it.
 *
 *     '#' + base64url(AES-128(epoch u32, sequence u48, check))      23 characters
 *
 * Publishers can't choose ids that begin with '#', so a cursor never collides with theirs.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { BoundedMap } from '../../lib/boundedmap.js';

const CHECK = Buffer.from('cursor');
const BLOCK_BYTES = 16;
const SEQUENCE_AT = 4;
const SEQUENCE_BYTES = 6;
const CHECK_AT = 10;
const BEYOND = 2 ** 48;
/** Blocks that are encrypted together: sequences that follow each other are usually needed one after the other. */
const TOGETHER = 256;
const PATTERN = /^#[\w-]{22}$/;
/** Cursors that are kept: clients that come back together were cut off at much the same places. */
const MOST_KEPT = 4096;

export class Cursors {
  /** @param {{ epoch: number, key: Uint8Array }} hub of 32 bits, and 16 bytes */
  constructor({ epoch, key }) {
    this.epoch = epoch;
    // A block cipher without chaining has no state, so one object can encrypt every block.
    this.encrypt = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    this.decrypt = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    this.blocks = Buffer.alloc(TOGETHER * BLOCK_BYTES);
    for (let at = 0; at < this.blocks.length; at += BLOCK_BYTES) {
      this.blocks.writeUInt32BE(epoch, at);
      CHECK.copy(this.blocks, at + CHECK_AT);
    }
    /** The encrypted blocks of the sequences from `first` on. @type {Buffer} */
    this.run = Buffer.alloc(0);
    this.first = -TOGETHER;
    /** The sequence of the last one that was made alone. */
    this.last = -1;
    /** Those that were made alone, by sequence. @type {BoundedMap<number, string>} */
    this.made = new BoundedMap(MOST_KEPT);
    /** The sequences of those that were read. @type {BoundedMap<string, number>} */
    this.known = new BoundedMap(MOST_KEPT);
  }

  /** @param {number} sequence @returns {string} */
  of(sequence) {
    if (sequence >= this.first && sequence < this.first + TOGETHER) return this.inRun(sequence);
    const made = this.made.get(sequence);
    if (made !== undefined) return made;
    if (sequence === this.last + 1 || sequence === this.first + TOGETHER) return this.beginRun(sequence);
    this.last = sequence;
    const text = textOf(this.encrypted(sequence, 1));
    this.made.set(sequence, text);
    return text;
  }

  /** @param {number} sequence @returns {string} */
  inRun(sequence) {
    const begin = (sequence - this.first) * BLOCK_BYTES;
    return textOf(this.run, begin, begin + BLOCK_BYTES);
  }

  /** @param {number} sequence @returns {string} */
  beginRun(sequence) {
    this.first = sequence;
    this.run = this.encrypted(sequence, TOGETHER);
    return this.inRun(sequence);
  }

  /** @param {number} sequence of the first @param {number} count @returns {Buffer} */
  encrypted(sequence, count) {
    for (let i = 0; i < count; i++)
      this.blocks.writeUIntBE((sequence + i) % BEYOND, i * BLOCK_BYTES + SEQUENCE_AT, SEQUENCE_BYTES);
    return this.encrypt.update(this.blocks.subarray(0, count * BLOCK_BYTES));
  }

  /** @param {string} text @returns {number | undefined} the sequence; undefined if it is no cursor of this epoch */
  read(text) {
    const known = this.known.get(text);
    if (known !== undefined) return known;
    const sequence = this.decrypted(text);
    if (sequence !== undefined) this.known.set(text, sequence);
    return sequence;
  }

  /** @param {string} text @returns {number | undefined} */
  decrypted(text) {
    if (!PATTERN.test(text)) return undefined;
    const block = this.decrypt.update(Buffer.from(text.slice(1), 'base64url'));
    const isOurs = block.length === BLOCK_BYTES && block.readUInt32BE(0) === this.epoch;
    return isOurs && CHECK.equals(block.subarray(CHECK_AT))
      ? block.readUIntBE(SEQUENCE_AT, SEQUENCE_BYTES)
      : undefined;
  }
}

/** @param {Buffer} blocks @param {number} [begin] @param {number} [end] of one of them @returns {string} */
function textOf(blocks, begin, end) {
  return `#${blocks.toString('base64url', begin, end)}`;
}
