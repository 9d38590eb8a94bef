/*
 * Limits of every broker, and the size of a publication, which they are compared with.
 */

/** Most bytes that one `read` returns, unless a single publication is larger. */
export const READ_BYTES = 1_048_576;
/** Most topics whose last publication is kept beyond retention, and most bytes of those publications. */
export const MOST_CACHED_TOPICS = 100_000;
export const MOST_CACHED_BYTES = 268_435_456;
/** Roughly what a publication needs besides its texts. */
const OVERHEAD_BYTES = 64;

/** @param {import('./index.js').Draft} draft @returns {number} bytes */
export function sizeOf({ topics, data, id, type }) {
  let bytes = OVERHEAD_BYTES + Buffer.byteLength(data);
  for (const topic of topics) bytes += Buffer.byteLength(topic);
  if (id !== undefined) bytes += Buffer.byteLength(id);
  if (type !== undefined) bytes += Buffer.byteLength(type);
  return bytes;
}
