/*
 * Keys of LMDB are short, and publishers' ids may be long.
 */
import { hash } from 'node:crypto';

/** LMDB allows 1978 bytes. */
const MOST_BYTES = 500;
const TEXT = Buffer.from([0]);
const HASH = Buffer.from([1]);

/** @param {string} text @returns {Buffer} a key of its own, whatever the text is */
export function keyOf(text) {
  const bytes = Buffer.from(text);
  if (bytes.length <= MOST_BYTES) return Buffer.concat([TEXT, bytes]);
  return Buffer.concat([HASH, hash('sha256', bytes, 'buffer')]);
}
