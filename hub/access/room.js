/*
 * A bound for the bytes of what waits.
 */
import { BusyError } from './refusals.js';

const BUSY = new BusyError('too many tokens wait for verification');

export class Room {
  /** @param {number} mostBytes */
  constructor(mostBytes) {
    this.mostBytes = mostBytes;
    this.bytes = 0;
  }

  /**
   * @template T
   * @param {number} bytes that are needed until the work is done
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   * @throws {BusyError} rejects with it if there is no room
   */
  async during(bytes, work) {
    if (this.bytes + bytes > this.mostBytes) throw BUSY;
    this.bytes += bytes;
    try {
      return await work();
    } finally {
      this.bytes -= bytes;
    }
  }
}
