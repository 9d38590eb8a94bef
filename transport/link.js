/*
 * A connection between the two processes of a handover: one JSON object per line. Both sides may ask; an answer has the id of
 * its question.
 */
import { Asks } from '../lib/asks.js';
import { HoldfastError } from '../lib/errors.js';
import { LineSplitter, lineOf, messageIn } from '../lib/jsonlines.js';

/** What two processes say to each other. One that does not know the version of the other refuses. */
export const PROTOCOL = 1;
const GONE = 'the other process has ended, or closed the connection';
/** Of every such error. */
const PREFIX = "the streams can't be handed over: ";

/** @typedef {import('../lib/jsonlines.js').Message} Message */

export class Link {
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket.setEncoding('utf8');
    this.asks = new Asks(
      (question) => this.send(question),
      (step, why) => failed(`at '${step}', ${why.replace(PREFIX, '')}`),
    );
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => this.asks.close(GONE));
  }

  get isOpen() {
    return !this.socket.destroyed && this.socket.writable;
  }

  /** Bytes that the other side has not read yet. */
  get waitingBytes() {
    return this.socket.writableLength;
  }

  /** @param {Message} message lost if the other side is gone */
  send(message) {
    if (this.isOpen) this.socket.write(lineOf(message));
  }

  /**
   * @param {string} step @param {Record<string, unknown>} fields @param {number} deadlineMs
   * @returns {Promise<any>} the answer
   * @throws {HoldfastError} HANDOVER if there is none in time, or it is a problem
   */
  ask(step, fields, deadlineMs) {
    if (!this.isOpen) this.asks.close(GONE); // before 'close' comes
    return this.asks.ask(step, fields, deadlineMs);
  }

  /**
   * What the other side says, until it leaves; answers go to who asked. The next message is read when the one before was handled.
   * @returns {AsyncGenerator<Message>}
   */
  async *messages() {
    try {
      for await (const line of this.lines()) {
        const message = messageIn(line);
        if (message === null) return;
        if (message.type === 'handedOver')
          this.asks.answered(/** @type {import('../lib/asks.js').Answer & Message} */ (message));
        else yield message;
      }
    } finally {
      this.close();
    }
  }

  /** @returns {AsyncGenerator<string>} */
  async *lines() {
    const lines = new LineSplitter();
    try {
      for await (const chunk of this.socket) yield* lines.take(String(chunk));
    } catch {
      // The connection broke: as if it was closed.
    }
  }

  /** What was sent before still arrives. */
  end() {
    this.socket.end();
  }

  close() {
    this.socket.destroy();
  }

  /** From now on, it does not keep the process alive. */
  unref() {
    this.socket.unref();
  }
}

/** @param {string} why @returns {HoldfastError} */
export function failed(why) {
  return new HoldfastError('HANDOVER', `${PREFIX}${why}`);
}
