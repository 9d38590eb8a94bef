/*
 * The streams of other nodes, as they tell us (hub/nodes). They announce them themselves; their end is announced here only if they die.
 */
import { Node } from './node.js';
import { subscriptionsIn } from './texts.js';

/** What an empty table of a worker takes, about. */
const OWNER_BYTES = 1024;
/** A text of `textOf`: the dialect, and lines with the key of a selector and perhaps a payload. */
const FORM = formOf('', '');
/** Of one whose subscriptions have changed, and may be none now. */
const NUMBERED_FORM = formOf('\\d{1,15}:', '\\d{1,15}');
const EMPTY_FORM = /^[80]\d{1,15}:$/;

/** @typedef {import('./index.js').Presence} Presence */
/** @typedef {import('./announcements.js').Burial} Burial */
/** @typedef {import('./announcements.js').Change} Change */
/** @typedef {import('./table.js').Owner} Owner */

export class Others {
  /** @param {Presence} presence */
  constructor(presence) {
    this.presence = presence;
    /** By id. @type {Map<string, Node>} */
    this.nodes = new Map();
  }

  /**
   * From now on the whole table of a node comes. What we had stays until then.
   * @param {string} id @param {number} life @param {Uint8Array} key of its subscribers
   * @returns {Node}
   */
  begin(id, life, key) {
    const node = this.nodes.get(id) ?? new Node({ id, life, key });
    this.nodes.set(id, node);
    node.life = life;
    for (const owner of node.owners.values()) owner.begin();
    return node;
  }

  /** The whole table has come: the rest of what we had is gone. @param {Node} node */
  end(node) {
    for (const owner of [...node.owners.values()]) {
      this.presence.discount(owner.tables.splice(1));
      if (owner.table.size === 0) this.removeOwner(owner);
    }
    this.presence.checkRoom();
  }

  /**
   * @param {Node} node @param {number} number of the worker @param {number} id @param {string} text that is one of a stream
   * @returns {boolean} false if there is no room for it
   */
  enter(node, number, id, text) {
    const { presence } = this;
    const known = node.owners.get(number);
    if (known?.table.get(id) === text) return true;
    const kept = known?.tableOf(id)?.take(id);
    if (kept !== undefined) presence.account(kept, -1);
    if (presence.bytes >= presence.mostBytes) return false;
    const shared = presence.shared(text);
    if (!known) presence.bytes += OWNER_BYTES;
    node.owner(number).table.add(id, shared);
    presence.account(shared, 1);
    presence.checkRoom();
    return true;
  }

  /** @param {Node} node @param {number} number @param {number} id */
  leave(node, number, id) {
    const text = node.owners.get(number)?.tableOf(id)?.take(id);
    if (text === undefined) return;
    this.presence.account(text, -1);
    this.presence.checkRoom();
  }

  /** All streams of a worker have ended. @param {Node} node @param {number} number */
  retire(node, number) {
    const owner = node.owners.get(number);
    if (owner) this.removeOwner(owner);
    this.presence.checkRoom();
  }

  /** @param {Owner} owner */
  removeOwner({ node, number, tables }) {
    node.owners.delete(number);
    this.presence.bytes -= OWNER_BYTES;
    this.presence.discount(tables);
  }

  /** The streams of a node are not on the list any more. Somebody else announces their end. @param {string} id */
  forget(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    this.nodes.delete(id);
    for (const owner of node.owners.values()) {
      this.presence.bytes -= OWNER_BYTES;
      this.presence.discount(owner.tables);
    }
    this.presence.checkRoom();
  }

  /** It is dead: the end of its streams is announced. @param {string} id @returns {Burial | null} null if it had no streams */
  bury(id) {
    const node = this.nodes.get(id);
    this.forget(id);
    return node && node.owners.size > 0 ? this.presence.announcements.bury(endsOf(node)) : null;
  }
}

/** @param {Node} node @returns {Generator<Change>} in the life that all who survive it know */
function* endsOf(node) {
  for (const owner of node.owners.values())
    for (const [id, text, table] of owner.streams())
      yield { owner, id, text, life: node.life, table, isActive: false };
}

/** What is announced and listed is made of it. @param {string} text @returns {boolean} whether it is as `textOf` makes it */
export function isTextOfStream(text) {
  if (![FORM, NUMBERED_FORM, EMPTY_FORM].some((form) => form.test(text)) || !text.isWellFormed())
    return false;
  if (!text.includes('\t')) return true;
  try {
    for (const { payload } of subscriptionsIn(text)) if (payload !== '') JSON.parse(payload);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} head after the dialect @param {string} number of a line */
function formOf(head, number) {
  const line = `${number}(?:\\*|[=~%][^\\n\\t]*)(?:\\t[^\\n]*)?`;
  return new RegExp(`^[80]${head}${line}(?:\\n${line})*$`);
}
