/*
 * What nodes tell each other without storing it: core NATS, over the connection of the broker. Messages are JSON. A message may be
 * lost, and whatever arrives may be from anybody: a listener has to check it, and nothing that it does gets further than this file.
 */
import { HoldfastError, messageOf } from '../../lib/errors.js';

/** The largest message that is read. NATS allows 1 MB by default. */
const MOST_MESSAGE_BYTES = 1_048_576;
/** What may be on its way to the server; above it, messages are dropped as if they had been lost. */
const MOST_UNSENT_BYTES = 16_777_216;
/** From here on we ask the server how far it is. */
const ASK_BYTES = 262_144;

/** @typedef {import('@nats-io/transport-node').Msg} Msg */
/** @typedef {{ nc: import('@nats-io/transport-node').NatsConnection, isConnected: boolean, listeners: (() => void)[] }} Link */
/** @typedef {(object: unknown, reply: (object: object) => void) => void} Listener `reply` answers a request; it does nothing if the message was none */

export class Bus {
  /** @param {{ link: Link, prefix: string }} options `prefix` of all subjects */
  constructor({ link, prefix }) {
    this.link = link;
    this.prefix = prefix;
    /** Called with what is wrong with a message, or with this node's rights. @type {(line: string) => void} */
    this.onProblem = () => {};
    /** Called before the connection is closed. @type {(() => Promise<void> | void)[]} */
    this.closers = [];
    this.unsentBytes = 0;
    this.isAsking = false;
    this.isClosed = false;
  }

  get isConnected() {
    return this.link.isConnected && !this.isClosed;
  }

  /** The largest message that can be sent. */
  get mostBytes() {
    return Math.min(this.link.nc.info?.max_payload ?? MOST_MESSAGE_BYTES, MOST_MESSAGE_BYTES);
  }

  /** @param {() => void} listener called whenever it is connected again */
  onConnect(listener) {
    this.link.listeners.push(listener);
  }

  /** @param {() => Promise<void> | void} listener called before it is closed, when messages can still be sent */
  onClose(listener) {
    this.closers.push(listener);
  }

  /** @param {string} name @param {object} object @returns {boolean} false if it was dropped */
  publish(name, object) {
    return this.send(this.subjectOf(name), object);
  }

  /** @param {string} name @param {Listener} listener */
  subscribe(name, listener) {
    this.link.nc.subscribe(this.subjectOf(name), {
      callback: (error, message) => {
        if (error) this.onProblem(`messages of other nodes can't be received: ${messageOf(error)}`);
        else this.received(message, listener);
      },
    });
  }

  /**
   * @param {string} name @param {object} object @param {number} waitMs
   * @returns {Promise<unknown>} the first answer
   * @throws {HoldfastError} NO_ANSWER
   */
  async request(name, object, waitMs) {
    const [answer] = await this.requestMany(name, object, waitMs, 1);
    if (answer === undefined) throw new HoldfastError('NO_ANSWER', `no answer within ${waitMs} ms`);
    return answer;
  }

  /**
   * @param {string} name @param {object} object @param {number} waitMs @param {number} count of answers to wait for
   * @returns {Promise<unknown[]>} those that have come by then; none if it is not connected
   */
  async requestMany(name, object, waitMs, count) {
    const data = this.encode(object);
    if (!data) return [];
    /** @type {unknown[]} */
    const answers = [];
    try {
      const options = { strategy: /** @type {const} */ ('count'), maxWait: waitMs, maxMessages: count };
      for await (const message of await this.link.nc.requestMany(this.subjectOf(name), data, options))
        this.received(message, (answer) => void answers.push(answer));
    } catch {
      // Nobody listens, or the connection was lost: there are no more answers.
    }
    return answers;
  }

  /** @returns {Promise<void>} once the server has everything, or it can't be reached */
  async flush() {
    if (this.isConnected) await this.link.nc.flush().catch(() => {});
  }

  async close() {
    if (this.isClosed) return;
    await Promise.all(this.closers.map((listener) => listener()));
    this.isClosed = true;
  }

  /** @param {string} name */
  subjectOf(name) {
    return `${this.prefix}.${name}`;
  }

  /** @param {string} subject @param {object} object @returns {boolean} */
  send(subject, object) {
    const data = this.encode(object);
    if (!data) return false;
    try {
      this.link.nc.publish(subject, data);
    } catch (error) {
      this.onProblem(`a message to other nodes can't be sent: ${messageOf(error)}`);
      return false;
    }
    return true;
  }

  /** @param {object} object @returns {Buffer | null} null if it can't be sent now */
  encode(object) {
    if (!this.isConnected || this.unsentBytes > MOST_UNSENT_BYTES) return null;
    const data = Buffer.from(JSON.stringify(object));
    this.unsentBytes += data.length;
    if (this.unsentBytes > ASK_BYTES && !this.isAsking) void this.ask();
    return data;
  }

  /** Asks the server how far it is, as long as much is on its way. */
  async ask() {
    this.isAsking = true;
    while (this.unsentBytes > ASK_BYTES) {
      const bytes = this.unsentBytes;
      await this.link.nc.flush().catch(() => {}); // if the connection is lost, so are the messages
      this.unsentBytes -= bytes;
    }
    this.isAsking = false;
  }

  /** @param {Msg} message @param {Listener} listener */
  received({ data, reply }, listener) {
    try {
      if (data.length > MOST_MESSAGE_BYTES) throw new Error(`it has ${data.length} bytes`);
      const object = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString());
      listener(object, (answer) => void (reply && this.send(reply, answer)));
    } catch (error) {
      this.onProblem(`a message of another node was ignored: ${messageOf(error)}`);
    }
  }
}
