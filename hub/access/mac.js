/*
 * HMAC-SHA-256 with one key, many times (RFC 2104): the hash of the key and the hash of the key and the text. createHmac does the
 * same, but makes objects that take twice as long as the hashes.
 */
import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const HASH_BYTES = 32;
const INNER = 0x36;
const OUTER = 0x5c;

export class Mac {
  /** @param {Buffer} key */
  constructor(key) {
    const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
    /** The key, and room for a text. */
    this.inner = padded(short, INNER, 0);
    this.outer = padded(short, OUTER, HASH_BYTES);
  }

  /** @param {string} text each character is a byte @returns {Buffer} */
  of(text) {
    const end = BLOCK_BYTES + text.length;
    if (this.inner.length < end) this.inner = Buffer.concat([this.inner], 2 * end);
    this.inner.write(text, BLOCK_BYTES, 'latin1');
    this.outer.write(hash('sha256', this.inner.subarray(0, end), 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', this.outer, 'buffer');
  }
}

/** @param {Buffer} key @param {number} mask @param {number} more bytes after it @returns {Buffer} */
function padded(key, mask, more) {
  const block = Buffer.alloc(BLOCK_BYTES + more);
  key.copy(block);
  for (let i = 0; i < BLOCK_BYTES; i++) block[i] ^= mask;
  return block;
}
