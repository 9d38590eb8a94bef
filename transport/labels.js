/*
 * Labels of streams held in JS: whose they are, and when they end.
 */
import { performance } from 'node:perf_hooks';

/** The shortest time until the next search. */
const SEARCH_EVERY_MS = 250;
/** The longest time a timer can have. */
const FOREVER_MS = 0x7fffffff;

/**
 * What an application says about a stream. `subject` and `token` are 32-bit numbers, by which streams can be ended; 0 is none.
 * At `expiresAtMs` (since 1970) the stream ends; Infinity is never.
 * @typedef {{ subject?: number, token?: number, expiresAtMs?: number }} Labels
 */

/** @template {object} T */
export class LabelTable {
  /** @param {(things: T[]) => void} onExpiry called with those whose time is over, once each */
  constructor(onExpiry) {
    this.onExpiry = onExpiry;
    /** Times are those of `performance.now`. @type {Map<T, { subject: number, token: number, dueMs: number }>} */
    this.labels = new Map();
    /** When the timer fires. */
    this.nextMs = Number.POSITIVE_INFINITY;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.search = this.search.bind(this);
  }

  /** Replaces the labels of a thing. @param {T} thing @param {Labels} labels */
  set(thing, { subject = 0, token = 0, expiresAtMs = Number.POSITIVE_INFINITY }) {
    // Translated once: what happens to the clock later doesn't matter.
    const dueMs = performance.now() + expiresAtMs - Date.now();
    if (subject === 0 && token === 0 && dueMs === Number.POSITIVE_INFINITY) return this.delete(thing);
    this.labels.set(thing, { subject, token, dueMs });
    this.searchAt(dueMs);
  }

  /** @param {T} thing */
  delete(thing) {
    if (!this.labels.delete(thing) || this.labels.size > 0) return;
    clearTimeout(this.timer);
    this.nextMs = Number.POSITIVE_INFINITY;
  }

  /** @param {import('../native/protocol.js').Label} kind @param {number} value @returns {T[]} all with this label */
  with(kind, value) {
    return [...this.labels].filter(([, labels]) => labels[kind] === value).map(([thing]) => thing);
  }

  /** @param {number} dueMs */
  searchAt(dueMs) {
    if (dueMs >= this.nextMs) return;
    clearTimeout(this.timer);
    this.nextMs = dueMs;
    const waitMs = Math.max(SEARCH_EVERY_MS, Math.min(dueMs - performance.now(), FOREVER_MS));
    this.timer = setTimeout(this.search, waitMs).unref();
  }

  search() {
    const nowMs = performance.now();
    const over = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [thing, { dueMs }] of this.labels) {
      if (dueMs <= nowMs) over.push(thing);
      else nextMs = Math.min(nextMs, dueMs);
    }
    for (const thing of over) this.labels.delete(thing);
    this.nextMs = Number.POSITIVE_INFINITY;
    this.searchAt(nextMs);
    this.onExpiry(over);
  }
}
