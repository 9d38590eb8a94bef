/*
 * Presence as a hub sees it that has no other processes: the one of the same process.
 */
import { Presence } from './index.js';

/**
 * @typedef {object} HubPresence
 * @property {boolean} isFull whether no more streams may enter
 * @property {(id: number, text: string) => void} enter
 * @property {(id: number) => void} leave
 * @property {(query: import('./messages.js').Query) => Promise<Listing>} list rejects with a HoldfastError if it fails or takes too long
 *
 * @typedef {import('./messages.js').Found & { parts: Buffer[] }} Listing JSON objects with commas between them
 */

/** @implements {HubPresence} */
export class LocalPresence {
  /** @param {Presence} presence */
  constructor(presence) {
    this.presence = presence;
  }

  /**
   * @param {object} options
   * @param {import('../../broker/index.js').Broker} options.broker
   * @param {string} options.path of the hub
   * @param {number} options.maxPresenceBytes
   * @param {(error: unknown) => void} options.onError
   */
  static open({ broker, path, maxPresenceBytes: mostBytes, onError }) {
    return new LocalPresence(new Presence({ broker, path, mostBytes, onError }));
  }

  get isFull() {
    return this.presence.isFull;
  }

  /** @param {number} id @param {string} text */
  enter(id, text) {
    this.presence.enter(this, id, text);
  }

  /** @param {number} id */
  leave(id) {
    this.presence.leave(this, id);
  }

  /** @param {import('./messages.js').Query} query @returns {Promise<Listing>} */
  async list(query) {
    /** @type {Buffer[]} */
    const parts = [];
    const found = await this.presence.list(query, (part) => void parts.push(Buffer.from(part)));
    return { ...found, parts };
  }
}
