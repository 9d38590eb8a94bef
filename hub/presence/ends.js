/*
 * The end of all streams of a worker at once, because it died. Those that other workers took over from it stay, and so does its number.
 */
import { Owner, Table } from './table.js';

/** @typedef {import('./announcements.js').Change} Change */

export class Ends {
  /** @param {import('./index.js').Presence} presence */
  constructor(presence) {
    this.presence = presence;
  }

  /** @param {object} worker */
  retire(worker) {
    const { seats } = this.presence;
    const seat = seats.byWorker.get(worker);
    if (!seat) return;
    seats.byWorker.delete(worker);
    for (const [owner, ids] of seat.taken) this.endSome(owner, ids.values());
    if (seat.owner) this.retireOwner(seat.owner);
    this.presence.checkRoom();
  }

  /** The worker that has opened its streams died. @param {Owner} owner */
  retireOwner(owner) {
    const { presence } = this;
    owner.isOrphan = true;
    const elsewhere = presence.seats.takenFrom(owner);
    if (elsewhere.size > 0) {
      const ids = [...owner.streams()].map(([id]) => id);
      const ended = ids.filter((id) => !elsewhere.has(id));
      return this.endSome(owner, ended);
    }
    this.removeOwner(owner);
    presence.discount(owner.tables);
    presence.announcements.addSeries(endsOf(owner));
  }

  /** @param {Owner} owner @param {Iterable<number>} ids of streams that have ended */
  endSome(owner, ids) {
    const { presence } = this;
    const ended = new Owner(owner.node, owner.number);
    for (const id of ids) {
      const table = owner.tableOf(id);
      const text = table?.take(id);
      if (!table || text === undefined) continue;
      presence.account(text, -1);
      presence.watcher.left(owner.number, id);
      if (ended.table.life !== table.life) ended.tables.unshift(new Table(table.life));
      ended.table.add(id, text);
    }
    presence.announcements.addSeries(endsOf(ended));
    this.checkOwner(owner);
  }

  /** An owner whose worker is gone is removed with its last stream. @param {Owner} owner */
  checkOwner(owner) {
    if (owner.isOrphan && owner.tables.every(({ size }) => size === 0)) this.removeOwner(owner);
  }

  /** @param {Owner} owner */
  removeOwner(owner) {
    const { presence } = this;
    presence.since.delete(owner);
    if (presence.node.owners.delete(owner.number)) presence.watcher.retired(owner.number);
  }
}

/** @param {Owner} owner @returns {Generator<Change>} */
function* endsOf(owner) {
  for (const [id, text, table] of owner.streams())
    yield { owner, id, text, life: table.life, table, isActive: false };
}
