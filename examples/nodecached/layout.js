/*
 * Where everything is in the memory of a store: one ArrayBuffer, shared by threads if there are several.
 *
 *     ┌──────┬─────────┬────────────┬────────┬────────┬─────┐
 *     │ head │ classes │ hash table │ page 0 │ page 1 │ ... │   a page is 1 MB, cut into chunks of its class
 *     └──────┴─────────┴────────────┴────────┴────────┴─────┘
 *
 * A chunk has one item, or is free. Addresses are bytes from the start of the memory, and 0 means none.
 *
 *     ┌─────────────┬─────┬──────────────────────┬───────┬──────┐
 *     │ head, 44 B  │ key │ ' flags length\r\n'  │ value │ \r\n │   what `get` answers after 'VALUE ', as it is
 *     └─────────────┴─────┴──────────────────────┴───────┴──────┘
 */
export const PAGE_BYTES = 1 << 20;
export const MB = 1 << 20;

/** The 4-byte words of an item's head. */
export const CHAIN = 0; // next item in the same bucket of the hash table
export const NEWER = 1; // the item of its class that was used next after it; also links free chunks
export const OLDER = 2;
export const HASH = 3;
export const EXPIRES = 4; // seconds; 0: never
export const USED_AT = 5; // seconds
export const CAS = 6; // 8 bytes, a double: so are chunks aligned to 8
export const FLAGS = 8;
export const LENGTH = 9; // of the value
export const META = 10; // bytes: length of the key, length of the text after it, class, bits
export const HEAD_BYTES = 44;

/** Bits of an item. */
export const LINKED = 1 << 24;
export const FETCHED = 1 << 25;
export const STALE = 1 << 26; // `md` with I marked it
export const TOKEN_SENT = 1 << 27; // a client was told to renew it
export const BINARY_KEY = 1 << 28;

/** Words at the start of a store. */
export const LOCK = 0;
export const PAGES_USED = 1;
export const FLUSHED_AT = 2; // items used until then are gone from then on; 0: none
/** Doubles at the start of a store, from byte 16. */
export const LAST_CAS = 2;
export const FLUSHED_CAS = 3; // items with a lower one are gone
export const BYTES = 4;
export const ITEMS = 5;
export const TOTAL_ITEMS = 6;
export const EVICTIONS = 7;
export const RECLAIMED = 8;
export const GET_EXPIRED = 9;
export const GET_FLUSHED = 10;
export const PAGES_MOVED = 11;
/** Two words after them: the secret of the hash. */
export const SECRET = 24;

/** Words of a class. */
export const FREE = 0; // first free chunk
export const NEWEST = 1;
export const OLDEST = 2;
export const PAGES = 3;
export const COUNT = 4; // of items
export const EVICTED = 5;
export const CLASS_WORDS = 8;

const SMALLEST = 72;
const GROWTH = 1.25;

/** Bytes of a chunk, by class. Class 0 is not used, so that 0 can mean none. */
export const SIZES = [0];
for (let size = SMALLEST; size <= PAGE_BYTES / 2; size = (Math.ceil(size * GROWTH) + 7) & ~7)
  SIZES.push(size);
SIZES.push(PAGE_BYTES);

/** The smallest class for a number of bytes, by (bytes + 7) / 8. */
export const CLASS_OF = new Uint8Array(PAGE_BYTES / 8 + 1);
for (let eighths = 0, cls = 1; eighths < CLASS_OF.length; eighths++) {
  if (eighths * 8 > SIZES[cls]) cls++;
  CLASS_OF[eighths] = cls;
}

/** First byte of the words of class 0. */
export const CLASSES_AT = 128;
const OWNERS_AT = CLASSES_AT + SIZES.length * CLASS_WORDS * 4;
/** An item takes about this much at least, so that a bucket has about one. */
const BYTES_PER_BUCKET = 128;

/** Of one store: more, and addresses would not fit 31 bits. */
export const MOST_PAGES = 1983;

/** @param {number} pages at most MOST_PAGES @returns {{ ownersAt: number, tableAt: number, buckets: number, pagesAt: number, bytes: number }} */
export function layoutOf(pages) {
  const buckets = 2 ** Math.ceil(Math.log2((pages * PAGE_BYTES) / BYTES_PER_BUCKET));
  const tableAt = (OWNERS_AT + pages * 4 + 63) & ~63;
  const pagesAt = tableAt + buckets * 4;
  return { ownersAt: OWNERS_AT, tableAt, buckets, pagesAt, bytes: pagesAt + pages * PAGE_BYTES };
}
