/*
 * A bounded map whose entries expire. When it is full, the oldest entries go, except those that were used since they were last
 * looked at (second chance).
 */

/**
 * @template Value
 * @typedef {{ value: Value, until: number, bytes: number, isUsed: boolean }} Entry `until` in seconds since the shelf was made:
 *   a small number needs no object of its own
 */

/** @template Value */
export class Shelf {
  /** @param {{ mostBytes: number, now: () => number }} options now: ms, as Date.now */
  constructor({ mostBytes, now }) {
    this.mostBytes = mostBytes;
    this.now = now;
    this.sinceMs = now();
    this.bytes = 0;
    /** @type {Map<string, Entry<Value>>} */
    this.entries = new Map();
  }

  get size() {
    return this.entries.size;
  }

  /** @param {string} key @returns {Value | undefined} */
  get(key) {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    if (this.seconds() >= entry.until) return void this.delete(key, entry);
    entry.isUsed = true;
    return entry.value;
  }

  /** @param {string} key @param {Value} value @param {number} lifeMs @param {number} bytes about what it takes */
  set(key, value, lifeMs, bytes) {
    const known = this.entries.get(key);
    if (known) this.delete(key, known);
    const until = Math.floor(this.seconds() + lifeMs / 1000);
    this.entries.set(key, { value, until, bytes, isUsed: false });
    this.bytes += bytes;
    if (this.bytes > this.mostBytes) this.shrink();
  }

  /** @param {(value: Value) => boolean} isWanted */
  deleteWhere(isWanted) {
    for (const [key, entry] of this.entries) if (isWanted(entry.value)) this.delete(key, entry);
  }

  clear() {
    this.entries.clear();
    this.bytes = 0;
  }

  shrink() {
    const seconds = this.seconds();
    for (const [key, entry] of this.entries) {
      this.delete(key, entry);
      if (entry.isUsed && seconds < entry.until) this.keep(key, entry);
      if (this.bytes <= this.mostBytes) return;
    }
  }

  /** @param {string} key @param {Entry<Value>} entry becomes the youngest; it stays for another round only if it is used again */
  keep(key, entry) {
    entry.isUsed = false;
    this.entries.set(key, entry);
    this.bytes += entry.bytes;
  }

  /** @param {string} key @param {Entry<Value>} entry */
  delete(key, entry) {
    this.entries.delete(key);
    this.bytes -= entry.bytes;
  }

  seconds() {
    return (this.now() - this.sinceMs) / 1000;
  }
}
