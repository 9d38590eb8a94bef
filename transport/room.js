/*
 * Room for new connections of a door: it counts all of them, and knows those that carry no stream. When there is no room for
 * another one, one that only waits for its client is cut. The native core does the same (native/core/src/shard/room.rs).
 */
import { performance } from 'node:perf_hooks';
import { destroySocket, IDLE, kState, LINGER_MS } from './doorsocket.js';
import { expendable, Newcomers } from './newcomers.js';

/** @typedef {import('./doorsocket.js').DoorSocket} DoorSocket */

export class Room {
  /**
   * @param {Pick<import('./options.js').Settings, 'maxHeadsPerAddress' | 'proxies'>} settings
   * @param {number} connectionLimit
   * @param {import('./tally.js').Tally} tally updated here
   */
  constructor({ maxHeadsPerAddress, proxies }, connectionLimit, tally) {
    this.connectionLimit = connectionLimit;
    this.tally = tally;
    /** Streams included. */
    this.connections = 0;
    /** @type {Set<DoorSocket>} connections that carry no stream and were not passed on */
    this.outside = new Set();
    /** Those of them that have not sent a request yet. */
    this.newcomers = new Newcomers(maxHeadsPerAddress, proxies);
    /** Those that were answered, and may be waiting for another request, the oldest first. @type {Map<DoorSocket, { sinceMs: number }>} */
    this.answered = new Map();
    this.isClosing = false;
    this.onEmpty = () => {};
  }

  /** A new connection. Another one is cut if there are too many. @param {DoorSocket} socket */
  enter(socket) {
    this.connections++;
    this.tally.counts.connections++;
    this.outside.add(socket);
    this.newcomers.add(socket);
    const crowded = this.newcomers.oldestOfCrowd(socket);
    if (crowded) this.cut(crowded);
    else if (this.connections > this.connectionLimit) this.makeRoom(socket);
  }

  /** Cuts one that was answered, or else one without a head. @param {DoorSocket} newest cut if nobody else may be yet */
  makeRoom(newest) {
    this.cut(expendable(this.answered) ?? this.newcomers.oldest() ?? newest);
  }

  /** Closes a connection without an answer, or without waiting until its client has read one. @param {DoorSocket} socket */
  cut(socket) {
    this.noteRequest(socket);
    this.tally.counts.cut++;
    socket.destroy();
  }

  /** It does not wait for its client any more. @param {DoorSocket} socket */
  noteRequest(socket) {
    this.newcomers.delete(socket);
    this.answered.delete(socket);
  }

  /** From now on it waits for its client. @param {DoorSocket} socket */
  noteAnswer(socket) {
    this.newcomers.delete(socket);
    this.answered.set(socket, { sinceMs: performance.now() });
  }

  /** @param {DoorSocket} socket that has closed or was passed on */
  leave(socket) {
    this.noteRequest(socket);
    this.outside.delete(socket);
    this.connections--;
    this.tally.counts.connections--;
    if (this.connections === 0) this.onEmpty();
  }

  /**
   * Closes connections that wait for a request now, and soon all that carry no stream.
   * @returns {Promise<void>} resolves when the last connection is gone, not counting those that were passed on
   */
  async close() {
    this.isClosing = true;
    const empty = new Promise((resolve) => {
      this.onEmpty = () => resolve(undefined);
      if (this.connections === 0) this.onEmpty();
    });
    for (const socket of this.outside) if (socket[kState] === IDLE) socket.destroy();
    const cut = setTimeout(() => this.outside.forEach(destroySocket), LINGER_MS);
    await empty;
    clearTimeout(cut);
  }
}
