/*
 * A node as presence knows it: this server or another one, with the streams of its workers.
 */
import { randomBytes } from 'node:crypto';
import { Subscribers } from './subscribers.js';
import { Owner } from './table.js';

const ID_BYTES = 16;

export class Node {
  /**
   * @param {object} [options] by default those of a new node
   * @param {string} [options.id]
   * @param {number} [options.life] counts how often it was announced: others take a node that is away for too long for dead
   * @param {Uint8Array} [options.key] of its subscribers
   */
  constructor({ id = newNodeId(), life = 1, key } = {}) {
    this.id = id;
    this.life = life;
    this.subscribers = new Subscribers(key);
    /** By number. @type {Map<number, Owner>} */
    this.owners = new Map();
  }

  /** @param {number} number of a worker @returns {Owner} */
  owner(number) {
    const known = this.owners.get(number);
    if (known) return known;
    const owner = new Owner(this, number);
    this.owners.set(number, owner);
    return owner;
  }

  /** @returns {Generator<import('./lists.js').Stream>} those that are there when it comes to them */
  *streams() {
    for (const owner of this.owners.values())
      for (const [id, text] of owner.streams()) yield { owner, id, text };
  }
}

/** @returns {string} 22 letters, digits, - and _ */
export function newNodeId() {
  return randomBytes(ID_BYTES).toString('base64url');
}
