/*
 * The primary's side of the workers' presence.
 */

/** @typedef {import('./index.js').Presence} Presence */
/** @typedef {import('./messages.js').ToHub} ToHub */
/** @typedef {(message: ToHub) => Promise<void>} Send resolves when the kernel has taken the message */

export class PresenceServer {
  /** @param {Presence} presence */
  constructor(presence) {
    this.presence = presence;
    /** @type {Map<object, Send>} by an object that stands for the worker */
    this.workers = new Map();
    presence.onFull = () => this.tellRoom();
  }

  /** Subscriptions that are listed. */
  get count() {
    return this.presence.count;
  }

  /** @param {object} worker @param {Send} send */
  add(worker, send) {
    this.workers.set(worker, send);
    if (this.presence.isFull) void send({ type: 'room', isFull: true });
  }

  /** @param {object} worker died */
  remove(worker) {
    this.workers.delete(worker);
    this.presence.retire(worker);
  }

  /** @param {object} worker @returns what to do with its messages */
  handlersOf(worker) {
    return {
      /** @param {import('./messages.js').Attendance} message */
      attendance: ({ entered, left }) => {
        if (!this.workers.has(worker)) return; // it died, and its last messages came after that
        for (const [id, text] of entered) this.presence.enter(worker, id, text);
        for (const id of left) this.presence.leave(worker, id);
      },
      /** @param {import('./messages.js').List} message */
      list: (message) => void this.list(worker, message),
    };
  }

  /** @param {object} worker @param {import('./messages.js').List} message */
  async list(worker, { id, query }) {
    const send = async (/** @type {ToHub} */ message) => this.workers.get(worker)?.(message);
    const found = await this.presence.list(query, (part) => send({ type: 'listed', id, part }));
    await send({ type: 'listed', id, found });
  }

  tellRoom() {
    const { isFull } = this.presence;
    for (const send of this.workers.values()) void send({ type: 'room', isFull });
  }
}
