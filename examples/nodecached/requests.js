/*
 * Runs the requests of one thread: finds the command of each line. Classic commands are in classic.js, meta commands in meta.js.
 */
import { ERROR } from './answers.js';
import { CLASSIC } from './classic.js';
import { COUNTER } from './counters.js';
import { get, resumeGet } from './gets.js';
import { keyedHash } from './hash.js';
import { Item } from './items.js';
import { SECRET } from './layout.js';
import { Line } from './line.js';
import { META } from './meta/index.js';
import { Output } from './output.js';

/** @typedef {import('./connection.js').Connection} Connection */

/** A command: may set the connection's `need` if its value hasn't arrived. @typedef {(requests: Requests, connection: Connection) => void} Command */

const G = 103;
const E = 101;
const T = 116;
const SPACE = 32;
const LONGEST_NAME = 16;
/** What a connection may do before others have their turn: about so many microseconds. A request or a key of get counts as one. */
const TURN = 2000;

export class Requests {
  /**
   * @param {import('./store.js').Store[]} stores
   * @param {import('./counters.js').Shared} shared
   * @param {number} thread
   * @param {import('./options.js').Options} options
   */
  constructor(stores, shared, thread, options) {
    this.stores = stores;
    this.shared = shared;
    this.counters = shared.rows[thread];
    this.options = options;
    // The same in all stores and threads.
    this.secret = stores[0].words[SECRET];
    this.secret2 = stores[0].words[SECRET + 1];
    this.line = new Line();
    this.item = new Item();
    this.isQuiet = false;
    this.end = 0; // of what has arrived
    this.at = 0; // after the request that runs
    this.left = 0; // of the turn
    this.output = new Output((bytes) => {
      this.counters[COUNTER.bytes_written] += bytes;
      this.left -= bytes >> 10; // large answers take time to copy
    });
  }

  /**
   * Runs all requests that are complete, until the connection is blocked or ends.
   * @param {Connection} connection @param {Buffer} bytes @param {number} start @param {number} end
   * @returns {number} where the first one starts that has not run
   */
  run(connection, bytes, start, end) {
    this.end = end;
    this.at = start;
    this.left = TURN;
    while (this.at < end && !connection.isBlocked && !connection.isWaiting && !connection.isClosing) {
      if (connection.swallow > 0) this.#swallow(connection);
      else if (connection.getting > 0) this.#resume(connection, bytes);
      else if (!this.one(connection, bytes)) break;
    }
    return this.at;
  }

  /** @param {Connection} connection @param {number} cost of what was done: 1 for a plain request */
  spend(connection, cost) {
    this.left -= cost;
    if (this.left <= 0) connection.isWaiting = true;
  }

  /** @param {Connection} connection */
  #swallow(connection) {
    const skipped = Math.min(connection.swallow, this.end - this.at);
    connection.swallow -= skipped;
    this.at += skipped;
  }

  /** A get that was interrupted: what is left of its line starts with a key. @param {Connection} connection @param {Buffer} bytes */
  #resume(connection, bytes) {
    this.line.read(bytes, this.at, this.end);
    this.at = this.line.next;
    resumeGet(this, connection);
  }

  /** @param {Connection} connection @param {Buffer} bytes @returns {boolean} false if it is not complete */
  one(connection, bytes) {
    const { line, at } = this;
    if (!line.read(bytes, at, this.end)) return false;
    this.at = line.next;
    this.isQuiet = false;
    if (bytes[at] === G && bytes[at + 1] === E && bytes[at + 2] === T && bytes[at + 3] === SPACE) {
      get(this, connection, at + 4);
    } else {
      line.split();
      this.command()(this, connection);
    }
    if (connection.need === 0) {
      this.spend(connection, 1 + ((line.next - at) >> 10)); // long lines take time to scan
      return true;
    }
    this.at = at;
    return false;
  }

  /** @returns {Command} of the line */
  command() {
    const { line } = this;
    const length = line.count > 0 ? line.lengthOf(0) : 0;
    if (length < 2 || length > LONGEST_NAME) return unknown;
    const name = line.text(0);
    return (length === 2 ? META.get(name) : CLASSIC.get(name)) ?? unknown;
  }

  /** Answers, unless the client asked not to. @param {Uint8Array} answer */
  answer(answer) {
    if (!this.isQuiet) this.output.put(answer);
  }

  /** @param {Uint8Array} bytes @param {number} start @param {number} end @returns {number} */
  hash(bytes, start, end) {
    return keyedHash(this.secret, this.secret2, bytes, start, end);
  }

  /** @param {number} hash of a key @returns {import('./store.js').Store} which has it */
  storeOf(hash) {
    return this.stores.length === 1 ? this.stores[0] : this.stores[(hash >>> 20) % this.stores.length];
  }

  /** @returns {number} */
  get now() {
    return this.shared.words[0];
  }

  /** @param {keyof typeof COUNTER} name */
  count(name) {
    this.counters[COUNTER[name]]++;
  }
}

/** @type {Command} */
function unknown(requests, connection) {
  const { line } = requests;
  if (line.text(line.count - 1).startsWith('HTTP/') && !/^[acdgimst]/.test(line.text(0)))
    connection.isClosing = true;
  else requests.output.put(ERROR);
}
