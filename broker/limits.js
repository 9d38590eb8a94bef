/*
 * Limits of every broker, and the size of a publication, which they are compared with.
 */

/** Most bytes that one `read` returns, unless a single publication is larger. */
export const READ_BYTES = 1_048_576;
/** Publications go from process to process in messages of at most this size, unless a single one is larger. */
export const MESSAGE_BYTES = 262_144;
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

/**
 * @template {import('./index.js').Draft} T
 * @param {readonly T[]} publications
 * @param {number} mostBytes of a slice; a single publication may be larger
 * @returns {{ slice: readonly T[], bytes: number }[]} all of them, in order
 */
export function slicesOf(publications, mostBytes) {
  const slices = [];
  let start = 0;
  let bytes = 0;
  for (const [index, publication] of publications.entries()) {
    const size = sizeOf(publication);
    if (index > start && bytes + size > mostBytes) {
      slices.push({ slice: publications.slice(start, index), bytes });
      start = index;
      bytes = 0;
    }
    bytes += size;
  }
  if (start < publications.length) slices.push({ slice: publications.slice(start), bytes });
  return slices;
}
