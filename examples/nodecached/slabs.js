/*
 * The memory of a store: pages, chunks, and for each class a list of its items from newest to oldest. When no page is left, the
 * oldest item of the class makes room; a class without pages takes one from the class whose oldest item is oldest.
 */
import {
  CLASS_OF,
  CLASS_WORDS,
  CLASSES_AT,
  COUNT,
  EVICTED,
  EVICTIONS,
  EXPIRES,
  FREE,
  LINKED,
  layoutOf,
  META,
  NEWER,
  NEWEST,
  OLDER,
  OLDEST,
  PAGE_BYTES,
  PAGES,
  PAGES_MOVED,
  PAGES_USED,
  RECLAIMED,
  SIZES,
  USED_AT,
} from './layout.js';

/** Between attempts to move a page to a class that evicts: in evictions, a power of 2. */
const BALANCE_EVERY = 256;

export class Slabs {
  /**
   * @param {ArrayBufferLike} memory
   * @param {number} pages
   * @param {Int32Array} clock its first word is the time
   */
  constructor(memory, pages, clock) {
    const { ownersAt, tableAt, buckets, pagesAt } = layoutOf(pages);
    this.memory = memory;
    this.pages = pages;
    this.clock = clock;
    this.pagesAt = pagesAt;
    this.bytes = Buffer.from(memory);
    this.words = new Int32Array(memory);
    this.doubles = new Float64Array(memory, 0, memory.byteLength >> 3);
    this.owners = new Int32Array(memory, ownersAt, pages);
    this.table = new Int32Array(memory, tableAt, buckets);
    this.mask = buckets - 1;
    this.pinned = 0; // an item that must not make room, because it is being copied
  }

  /** @param {number} cls @returns {number} the first word of the class */
  classAt(cls) {
    return (CLASSES_AT >> 2) + cls * CLASS_WORDS;
  }

  /** @param {number} size in bytes @returns {number} a chunk, or 0 if there is no room; its META has its class */
  allocate(size) {
    const cls = CLASS_OF[(size + 7) >> 3];
    const at = this.classAt(cls);
    if (this.words[at + FREE] === 0 && !this.#makeRoom(cls, at)) return 0;
    const chunk = this.words[at + FREE];
    this.#unlinkFree(at, chunk);
    this.words[(chunk >> 2) + META] = cls << 16;
    return chunk;
  }

  /** @param {number} cls @param {number} at @returns {boolean} whether the class has a free chunk now */
  #makeRoom(cls, at) {
    const { words } = this;
    if (words[PAGES_USED] < this.pages) {
      this.#cut(words[PAGES_USED]++, cls);
      return true;
    }
    // The counter may wrap around: it is a word, also when it is negative.
    if ((words[at + EVICTED] & (BALANCE_EVERY - 1)) === BALANCE_EVERY - 1 && this.#balance(cls, at))
      return true;
    const oldest = words[at + OLDEST];
    const victim = oldest !== 0 && oldest === this.pinned ? words[(oldest >> 2) + NEWER] : oldest;
    if (victim === 0) return this.#movePage(this.#donor(cls), cls);
    words[at + EVICTED]++;
    this.#evict(victim);
    return true;
  }

  /** @param {number} item */
  #evict(item) {
    const expires = this.words[(item >> 2) + EXPIRES];
    const isGone = expires !== 0 && expires <= this.clock[0];
    this.doubles[isGone ? RECLAIMED : EVICTIONS]++;
    this.unlink(item);
  }

  /** Store knows how. @param {number} _item */
  unlink(_item) {}

  /** Cuts a page into free chunks. @param {number} page @param {number} cls */
  #cut(page, cls) {
    const size = SIZES[cls];
    const at = this.classAt(cls);
    this.owners[page] = cls;
    this.words[at + PAGES]++;
    const start = this.pagesAt + page * PAGE_BYTES;
    for (let chunk = start + (Math.floor(PAGE_BYTES / size) - 1) * size; chunk >= start; chunk -= size) {
      this.words[(chunk >> 2) + META] = cls << 16;
      this.linkFree(at, chunk);
    }
  }

  /** @param {number} at of the class @param {number} chunk */
  linkFree(at, chunk) {
    const { words } = this;
    const first = words[at + FREE];
    words[(chunk >> 2) + OLDER] = first;
    words[(chunk >> 2) + NEWER] = 0;
    if (first !== 0) words[(first >> 2) + NEWER] = chunk;
    words[at + FREE] = chunk;
  }

  /** @param {number} at of the class @param {number} chunk */
  #unlinkFree(at, chunk) {
    const { words } = this;
    const next = words[(chunk >> 2) + OLDER];
    const previous = words[(chunk >> 2) + NEWER];
    if (next !== 0) words[(next >> 2) + NEWER] = previous;
    if (previous !== 0) words[(previous >> 2) + OLDER] = next;
    else words[at + FREE] = next;
  }

  /** @param {number} at of the class @param {number} item which becomes the newest */
  linkNewest(at, item) {
    const { words } = this;
    const second = words[at + NEWEST];
    words[(item >> 2) + OLDER] = second;
    words[(item >> 2) + NEWER] = 0;
    if (second !== 0) words[(second >> 2) + NEWER] = item;
    else words[at + OLDEST] = item;
    words[at + NEWEST] = item;
    words[at + COUNT]++;
  }

  /** @param {number} at of the class @param {number} item */
  unlinkUsed(at, item) {
    const { words } = this;
    const older = words[(item >> 2) + OLDER];
    const newer = words[(item >> 2) + NEWER];
    if (older !== 0) words[(older >> 2) + NEWER] = newer;
    else words[at + OLDEST] = newer;
    if (newer !== 0) words[(newer >> 2) + OLDER] = older;
    else words[at + NEWEST] = older;
    words[at + COUNT]--;
  }

  /** An item was used: it is the newest of its class now. @param {number} item */
  use(item) {
    const { words } = this;
    words[(item >> 2) + USED_AT] = this.clock[0];
    if (words[(item >> 2) + NEWER] === 0) return;
    const at = this.classAt((words[(item >> 2) + META] >> 16) & 255);
    this.unlinkUsed(at, item);
    this.linkNewest(at, item);
  }

  /** @param {number} cls that needs a page @returns {number} the item that has waited longest in another class, or 0 */
  #donor(cls) {
    let found = 0;
    for (let other = 1; other < SIZES.length; other++) {
      const oldest = other === cls ? 0 : this.words[this.classAt(other) + OLDEST];
      if (oldest === 0 || this.#pageOf(oldest) === this.#pageOf(this.pinned)) continue;
      if (found === 0 || this.#usedAt(oldest) < this.#usedAt(found)) found = oldest;
    }
    return found || this.#emptyDonor(cls);
  }

  /** @param {number} cls @returns {number} a free chunk of another class that has a page but no item, or 0 */
  #emptyDonor(cls) {
    for (let other = 1; other < SIZES.length; other++) {
      const free = other === cls ? 0 : this.words[this.classAt(other) + FREE];
      if (free !== 0 && this.#pageOf(free) !== this.#pageOf(this.pinned)) return free;
    }
    return 0;
  }

  /** Takes a page from another class if its oldest item is much older. @param {number} cls @param {number} at @returns {boolean} */
  #balance(cls, at) {
    this.words[at + EVICTED]++;
    const donor = this.#donor(cls);
    const own = this.words[at + OLDEST];
    if (donor === 0 || own === 0) return false;
    const now = this.clock[0];
    return now - this.#usedAt(donor) > 2 * (now - this.#usedAt(own)) + 1 && this.#movePage(donor, cls);
  }

  /** @param {number} item */
  #usedAt(item) {
    return this.words[(item >> 2) + USED_AT];
  }

  /** @param {number} chunk @returns {number} -1 for none */
  #pageOf(chunk) {
    return chunk === 0 ? -1 : Math.floor((chunk - this.pagesAt) / PAGE_BYTES);
  }

  /** Empties a page, and cuts it for another class. @param {number} chunk on the page, or 0 @param {number} cls @returns {boolean} */
  #movePage(chunk, cls) {
    if (chunk === 0) return false;
    const page = this.#pageOf(chunk);
    const from = this.classAt(this.owners[page]);
    const size = SIZES[this.owners[page]];
    const start = this.pagesAt + page * PAGE_BYTES;
    for (let each = start; each + size <= start + PAGE_BYTES; each += size) {
      if (this.words[(each >> 2) + META] & LINKED) this.#evict(each);
      this.#unlinkFree(from, each);
    }
    this.words[from + PAGES]--;
    this.doubles[PAGES_MOVED]++;
    this.#cut(page, cls);
    return true;
  }
}
