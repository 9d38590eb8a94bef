/*
 * Connections that leave JS for the native core, to become streams there. While streams move to another process they wait, because
 * what is said of them must reach the process that has them.
 */
import { codeOf } from '../lib/errors.js';
import { formatByte } from '../native/protocol.js';
import { stopReading } from './adopt.js';
import { withCode } from './bind.js';
import { closed, overCapacity } from './failures.js';
import { relayedId } from './relayed.js';

/** How soon an adoption is retried if too many are in progress, or streams are moving. */
const BUSY_MS = 5;
/** How often `pause` looks whether all adoptions have come to an end: for a second. */
const MOST_WAITS = 200;
/** Errors of a process, or a system, that may open no more. */
const NO_DESCRIPTORS = ['EMFILE', 'ENFILE'];

/** @typedef {{ token: number, format: number, channels: string[], relayed: number, opening: string }} How */
/** @typedef {{ resolve: (id: number) => void, reject: (error: Error) => void }} Adoption */
/** @typedef {Pick<import('./shards.js').Shards, 'core' | 'isDraining' | 'flush' | 'nextToken'>} Shards */

export class Adoptions {
  /** @param {Shards} shards */
  constructor(shards) {
    this.shards = shards;
    this.isPaused = false;
    /** Those that native has not answered yet. @type {Map<number, Adoption>} by token */
    this.waiting = new Map();
  }

  /**
   * Takes over a connection on which everything has been written.
   * @param {import('./adopt.js').HandledSocket} socket destroyed once native has a copy of the descriptor
   * @param {import('../native/protocol.js').Format} encoding
   * @param {boolean} isChunked
   * @param {readonly string[]} channels
   * @param {string} [opening] Latin-1, written first
   * @returns {Promise<number>} its id
   * @throws {import('../lib/errors.js').HoldfastError} OVER_CAPACITY, CLOSED, CLIENT_GONE
   */
  async adopt(socket, encoding, isChunked, channels, opening = '') {
    const token = this.shards.nextToken();
    try {
      const how = {
        token,
        format: formatByte(encoding, isChunked),
        channels: [...channels],
        relayed: relayedId(socket),
        opening,
      };
      await this.give(stopReading(socket), how);
    } catch (error) {
      socket.resume();
      throw error;
    }
    const adopted = new Promise((resolve, reject) => this.waiting.set(token, { resolve, reject }));
    socket.destroy();
    return adopted;
  }

  /** @param {() => number} fd @param {How} how */
  async give(fd, how) {
    for (;;) {
      if (this.shards.isDraining) throw closed();
      this.shards.flush(); // earlier commands must reach native first
      const refused = this.isPaused ? 'busy' : this.tryToGive(fd(), how);
      if (refused === 'full') throw overCapacity('every shard is full');
      if (refused === '') return;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }

  /** @param {number} fd @param {How} how */
  tryToGive(fd, { token, format, channels, relayed, opening }) {
    try {
      return withCode('dup', () => this.shards.core.adopt(fd, token, format, channels, relayed, opening));
    } catch (error) {
      if (NO_DESCRIPTORS.includes(codeOf(error))) throw overCapacity('no file descriptor is left');
      throw error;
    }
  }

  /** @param {Float64Array | readonly number[]} adopted token, id, token…; the id is negative if it was refused */
  settle(adopted) {
    for (let i = 0; i < adopted.length; i += 2) this.settleOne(adopted[i], adopted[i + 1]);
  }

  /** @param {number} token @param {number} id negative if it was refused */
  settleOne(token, id) {
    const adoption = this.waiting.get(token);
    this.waiting.delete(token);
    if (id >= 0) adoption?.resolve(id);
    else
      adoption?.reject(
        overCapacity('the shard has filled up in the meantime, and the connection was closed'),
      );
  }

  /** From now on no response becomes a stream. @returns {Promise<void>} once native has answered, and the application has said what its streams are */
  async pause() {
    this.isPaused = true;
    for (let i = 0; i < MOST_WAITS && this.waiting.size > 0; i++)
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    await new Promise((resolve) => setImmediate(resolve));
  }

  resume() {
    this.isPaused = false;
  }

  /** The Hold was closed. */
  stop() {
    for (const { reject } of this.waiting.values()) reject(closed());
    this.waiting.clear();
  }
}
