/*
 * Streams that move to another worker, of this process or of the one that takes over from it. They stay on the list, with the same ids
 * of subscribers, and nobody is told.
 */

/** @typedef {import('./announcements.js').Change} Change */
/** @typedef {import('./index.js').Presence} Presence */
/** @typedef {import('./seats.js').Origin} Origin */

/**
 * A stream that goes to another process: its id there; the number of the worker and the id with which it is listed; `isNew`: its
 * beginning is not announced yet.
 * @typedef {[id: number, owner: number, before: number, text: string, isNew?: 1]} Entry
 */

export class Moves {
  /** @param {Presence} presence */
  constructor(presence) {
    this.presence = presence;
    /** Streams that went to another process so far. */
    this.exported = 0;
  }

  /** @param {object} from @param {object} to @param {readonly number[]} ids old and new in turn, also of streams that never entered */
  move(from, to, ids) {
    const { seats } = this.presence;
    const [source, target] = [seats.of(from), seats.of(to)];
    for (let i = 0; i < ids.length; i += 2) {
      const origin = source.give(ids[i]);
      if (origin) target.take(ids[i + 1], origin);
    }
  }

  /** @param {object} from a worker @param {readonly number[]} ids as for `move` @param {object} heir stands for the other process @returns {Entry[]} */
  export(from, ids, heir) {
    const { seats } = this.presence;
    const [source, target] = [seats.of(from), seats.of(heir)];
    /** @type {Entry[]} */
    const entries = [];
    for (let i = 0; i < ids.length; i += 2) {
      const origin = source.give(ids[i]);
      const text = origin?.owner.tableOf(origin.id)?.get(origin.id);
      if (!origin || text === undefined) continue;
      target.take(++this.exported, origin); // the ids of its workers may be equal
      entries.push([ids[i + 1], origin.owner.number, origin.id, text]);
    }
    this.withdraw(entries);
    return entries;
  }

  /** Beginnings that wait to be announced are announced there, before the ends. @param {readonly Entry[]} entries */
  withdraw(entries) {
    const { announcements } = this.presence;
    if (announcements.waiting === 0) return;
    const byName = new Map(entries.map((entry) => [`${entry[1]} ${entry[2]}`, entry]));
    announcements.withdraw(({ owner, id }) => {
      const entry = byName.get(`${owner.number} ${id}`);
      if (entry) entry[4] = 1;
      return entry !== undefined;
    });
  }

  /** @param {object} to a worker @param {readonly Entry[]} entries */
  import(to, entries) {
    const { presence } = this;
    const seat = presence.seats.of(to);
    for (const [id, number, before, text, isNew] of entries) {
      const isKnown = presence.node.owners.has(number);
      const owner = presence.node.owner(number);
      if (!isKnown) owner.isOrphan = true;
      const shared = presence.shared(text);
      owner.table.add(before, shared);
      seat.take(id, { owner, id: before });
      if (isNew) presence.changed(owner, owner.table, before, shared, true);
      else presence.account(shared, 1);
    }
    presence.checkRoom();
  }
}
