/*
 * Revocations on their way to all nodes. Each ends its own streams and says so. All nodes keep those of the last minutes, for nodes that
 * were away.
 */
import { randomBytes } from 'node:crypto';
import { MOST_IDS } from './messages.js';

/** How long they are kept, and how much of them. */
const KEEP_MS = 600_000;
const MOST_KEPT_CHARACTERS = 4_194_304;
/** Of a message. */
const MOST_CHARACTERS = 65_536;
const ID_BYTES = 16;

/** @typedef {import('../revocations.js').Revocation} Revocation */
/** @typedef {{ id: string, list: Revocation[] }} Group what goes in one message */
/** @typedef {Group & { size: number, atMs: number }} KeptGroup */

export class Kept {
  /** @param {() => number} now in ms */
  constructor(now) {
    this.now = now;
    /** By id, oldest first. @type {Map<string, KeptGroup>} */
    this.groups = new Map();
    this.size = 0;
  }

  /** @param {Group} group @returns {boolean} false if it is known */
  add({ id, list }) {
    if (this.groups.has(id)) return false;
    const size = sizeOf(list);
    this.groups.set(id, { id, list, size, atMs: this.now() });
    this.size += size;
    this.trim();
    return true;
  }

  trim() {
    for (const [id, { size, atMs }] of this.groups) {
      const isOld = this.now() - atMs > KEEP_MS;
      if (!isOld && this.size <= MOST_KEPT_CHARACTERS && this.groups.size <= MOST_IDS) return;
      this.groups.delete(id);
      this.size -= size;
    }
  }

  /** @returns {string[]} at most MOST_IDS */
  ids() {
    this.trim();
    return [...this.groups.keys()];
  }

  /** @param {readonly string[]} ids that somebody has @returns {Group[]} the others */
  without(ids) {
    this.trim();
    const known = new Set(ids);
    return [...this.groups.values()].filter(({ id }) => !known.has(id));
  }

  /** @param {readonly string[]} ids @returns {Group[]} those that we have */
  those(ids) {
    return ids.flatMap((id) => this.groups.get(id) ?? []);
  }
}

/** @param {readonly Revocation[]} list @returns {Group[]} that fit into one message each */
export function groupsOf(list) {
  /** @type {Group[]} */
  const groups = [];
  let size = Number.POSITIVE_INFINITY;
  for (const one of list) {
    const more = sizeOf([one]);
    if (size + more > MOST_CHARACTERS) {
      groups.push({ id: randomBytes(ID_BYTES).toString('base64url'), list: [] });
      size = 0;
    }
    groups[groups.length - 1].list.push(one);
    size += more;
  }
  return groups;
}

/** @param {readonly Revocation[]} list @returns {number} characters, about */
function sizeOf(list) {
  let size = 0;
  for (const one of list) for (const value of Object.values(one)) size += String(value).length + 16;
  return size;
}
