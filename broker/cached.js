/*
 * Which publication is the last of each cached topic. It only knows sequences and sizes; the broker keeps the publications.
 */
import { MOST_CACHED_BYTES, MOST_CACHED_TOPICS } from './limits.js';

/** @typedef {{ topics: number, bytes: number }} Pin how many topics need a publication, and its size */

export class Cached {
  /**
   * @param {(topic: string) => boolean} isCached
   * @param {{ mostTopics?: number, mostBytes?: number }} [limits]
   */
  constructor(isCached, { mostTopics = MOST_CACHED_TOPICS, mostBytes = MOST_CACHED_BYTES } = {}) {
    this.isCached = isCached;
    this.mostTopics = mostTopics;
    this.mostBytes = mostBytes;
    this.bytes = 0;
    /** @type {Map<string, number>} sequence by topic; the one published to longest ago is the first */
    this.topics = new Map();
    /** @type {Map<number, Pin>} by sequence, ascending */
    this.pins = new Map();
  }

  /**
   * A publication is now the last one of its cached topics.
   * @param {{ topics: readonly string[], sequence: number }} publication newer than all before
   * @param {number} bytes
   * @returns {number[]} sequences of those that are not the last of any cached topic any more
   */
  note({ topics, sequence }, bytes) {
    /** @type {number[]} */
    const released = [];
    for (const topic of topics) {
      if (this.topics.get(topic) === sequence || !this.isCached(topic)) continue;
      this.forget(topic, released);
      this.pin(topic, sequence, bytes);
    }
    while (this.topics.size > this.mostTopics || this.bytes > this.mostBytes) {
      const [oldest] = this.topics.keys();
      this.forget(oldest, released);
    }
    return released;
  }

  /** @param {string} topic @param {number} sequence @param {number} bytes */
  pin(topic, sequence, bytes) {
    this.topics.set(topic, sequence);
    const pin = this.pins.get(sequence);
    if (pin) return void pin.topics++;
    this.pins.set(sequence, { topics: 1, bytes });
    this.bytes += bytes;
  }

  /** @param {string} topic @param {number[]} released */
  forget(topic, released) {
    const sequence = this.topics.get(topic);
    const pin = sequence !== undefined && this.pins.get(sequence);
    if (sequence === undefined || !pin) return;
    this.topics.delete(topic);
    if (--pin.topics > 0) return;
    this.pins.delete(sequence);
    this.bytes -= pin.bytes;
    released.push(sequence);
  }

  /** @param {number} sequence */
  has(sequence) {
    return this.pins.has(sequence);
  }

  /** @returns {number[]} ascending */
  sequences() {
    return [...this.pins.keys()];
  }
}
