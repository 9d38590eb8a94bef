/*
 * Ids of subscribers: UUIDs of version 4 (RFC 9562, section 5.4), which are made from the number of a stream when they are needed
 * instead of being kept. Without the key, which belongs to a node and lives as long as it, nobody can tell one from random, or guess
 * another. Nodes of one hub know each other's keys.
 */
import { createCipheriv, randomBytes } from 'node:crypto';

export const KEY_BYTES = 16;
const TWO_32 = 2 ** 32;

export class Subscribers {
  /** @param {Uint8Array} [key] 16 bytes, of the node that has the streams; by default a new one */
  constructor(key = randomBytes(KEY_BYTES)) {
    this.key = key;
    // A block cipher without chaining has no state, so one object can encrypt every block.
    this.cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    this.block = Buffer.alloc(KEY_BYTES);
  }

  /** @param {number} owner a number of 32 bits @param {number} id of one of its streams, at most 53 bits @returns {string} 'urn:uuid:…' */
  of(owner, id) {
    this.block.writeUInt32BE(owner, 0);
    this.block.writeUInt32BE(Math.floor(id / TWO_32), 4);
    this.block.writeUInt32BE(id % TWO_32, 8);
    const bytes = this.cipher.update(this.block);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = bytes.toString('hex');
    return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}
