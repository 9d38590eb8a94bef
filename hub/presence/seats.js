/*
 * Which streams a worker has. Those that it has opened are known by its own number and their ids. A stream that it took over from
 * another worker keeps the number and the id with which it was announced, because the id of its subscriber follows from them; here it
 * has another id, and a place in a map, about 60 bytes.
 */

/** @typedef {import('./table.js').Owner} Owner */
/** @typedef {{ owner: Owner, id: number }} Origin where a stream is listed */

export class Seat {
  constructor() {
    /** Of the streams that it has opened. @type {Owner | null} */
    this.owner = null;
    /** Of those that it took over: their ids by those that they have here. @type {Map<Owner, Map<number, number>>} */
    this.taken = new Map();
  }

  /** @param {number} id of a stream here, that was opened elsewhere @param {Origin} origin */
  take(id, origin) {
    const ids = this.taken.get(origin.owner) ?? new Map();
    this.taken.set(origin.owner, ids);
    ids.set(id, origin.id);
  }

  /** @param {number} id of a stream here @returns {Origin | null} null if it is not listed */
  find(id) {
    for (const [owner, ids] of this.taken) {
      const before = ids.get(id);
      if (before !== undefined) return { owner, id: before };
    }
    return this.owner?.tableOf(id) ? { owner: this.owner, id } : null;
  }

  /** The stream is not here any more. @param {number} id @returns {Origin | null} null if it is not listed */
  give(id) {
    for (const [owner, ids] of this.taken) {
      const before = ids.get(id);
      if (before === undefined) continue;
      ids.delete(id);
      if (ids.size === 0) this.taken.delete(owner);
      return { owner, id: before };
    }
    return this.owner?.tableOf(id) ? { owner: this.owner, id } : null;
  }
}

export class Seats {
  constructor() {
    /** By an object that stands for the worker. @type {Map<object, Seat>} */
    this.byWorker = new Map();
  }

  /** @param {object} worker @returns {Seat} */
  of(worker) {
    const known = this.byWorker.get(worker);
    if (known) return known;
    const seat = new Seat();
    this.byWorker.set(worker, seat);
    return seat;
  }

  /** @param {Owner} owner @returns {Set<number>} ids of its streams that other workers have */
  takenFrom(owner) {
    /** @type {Set<number>} */
    const ids = new Set();
    for (const { taken } of this.byWorker.values())
      for (const id of taken.get(owner)?.values() ?? []) ids.add(id);
    return ids;
  }
}
