/*
 * Cursors: positions in the order of a hub, as clients see them. A cursor is an encrypted block that contains the epoch and
 * the sequence, so it tells a client nothing, needs no index, and every node with the key of the hub can read it.
 *
 *     '#' + base64url(AES-128(epoch u32, sequence u48, check))      23 characters
 *
 * Publishers can't choose ids that begin with '#', so a cursor never collides with theirs.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';

const CHECK = Buffer.from('cursor');
const BLOCK_BYTES = 16;
const PATTERN = /^#[\w-]{22}$/;

export class Cursors {
  /** @param {{ epoch: number, key: Uint8Array }} hub of 32 bits, and 16 bytes */
  constructor({ epoch, key }) {
    this.epoch = epoch;
    // A block cipher without chaining has no state, so one object can encrypt every block.
    this.encrypt = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    this.decrypt = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    this.last = { sequence: -1, text: '' };
  }

  /** @param {number} sequence @returns {string} */
  of(sequence) {
    if (this.last.sequence === sequence) return this.last.text;
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    block.writeUInt32BE(this.epoch, 0);
    block.writeUIntBE(sequence, 4, 6);
    CHECK.copy(block, 10);
    const text = `#${this.encrypt.update(block).toString('base64url')}`;
    this.last = { sequence, text };
    return text;
  }

  /** @param {string} text @returns {number | undefined} the sequence; undefined if it is no cursor of this epoch */
  read(text) {
    if (!PATTERN.test(text)) return undefined;
    const block = this.decrypt.update(Buffer.from(text.slice(1), 'base64url'));
    const isOurs = block.length === BLOCK_BYTES && block.readUInt32BE(0) === this.epoch;
    return isOurs && CHECK.equals(block.subarray(10)) ? block.readUIntBE(4, 6) : undefined;
  }
}
