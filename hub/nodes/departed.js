/*
 * Nodes that are gone, because they have stopped or were taken for dead. Those may come back.
 */
import { MOST_IDS } from './messages.js';

/** @typedef {import('../presence/announcements.js').Burial} Burial */

/**
 * @typedef {object} Gone
 * @property {number} life that it had
 * @property {Burial | null} burial the ends of its streams, which are announced here; null if it had none, or others have announced them
 * @property {boolean} isAnnounced whether some may have been announced
 */

export class Departed {
  constructor() {
    /** By id, those that left last at the end. @type {Map<string, Gone>} */
    this.nodes = new Map();
  }

  /** @param {string} id */
  has(id) {
    return this.nodes.has(id);
  }

  /** @param {string} id @param {Gone} gone */
  add(id, gone) {
    this.nodes.delete(id);
    this.nodes.set(id, gone);
    if (this.nodes.size <= MOST_IDS) return;
    const [oldest] = this.nodes.keys();
    this.nodes.delete(oldest);
  }

  /**
   * A node that is gone is alive: what was not announced yet of the end of its streams never is.
   * @param {string} id @param {number} life that it has now
   * @returns {boolean} false if it has to announce its streams again first
   */
  mayReturn(id, life) {
    const gone = this.nodes.get(id);
    if (!gone) return true;
    if (gone.burial) {
      gone.isAnnounced ||= gone.burial.isBegun;
      gone.burial.isCancelled = true;
      gone.burial = null;
    }
    if (life <= gone.life && gone.isAnnounced) return false;
    this.nodes.delete(id);
    return true;
  }

  /** @returns {[id: string, life: number][]} */
  list() {
    return [...this.nodes].map(([id, { life }]) => [id, life]);
  }
}
